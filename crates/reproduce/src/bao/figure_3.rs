//! Figure 3: the memory shares of both classes as users arrive.

use super::arrivals::{Curve, FigureResource, SETTING, draw, restatements, verdicts};
use crate::{Experiment, Outcome, ReproduceError, Settings};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { paper: "bao", figure: "figure-3", title: "ratio of memory utilization", setting: SETTING, run };

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let restatements = restatements(settings)?;
    // The paper's colours: D blue, S yellow.
    let curves = [
        Curve { label: "D", series: 1, of: |state| state.held[1][0] },
        Curve { label: "S", series: 5, of: |state| state.held[1][1] },
    ];
    let mut outcome = Outcome::default();
    for restatement in &restatements {
        outcome.verdicts.extend(verdicts(restatement, FigureResource::Memory));
        outcome.figures.push(draw(
            3,
            "Ratio of memory utilization",
            restatement,
            "share of the contributed capacity",
            &curves,
        ));
    }
    Ok(outcome)
}
