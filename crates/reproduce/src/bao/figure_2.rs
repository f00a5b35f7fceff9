//! Figure 2: the CPU shares of both classes as users arrive.

use super::arrivals::{Curve, FigureResource, SETTING, draw, restatements, verdicts};
use crate::{Experiment, Outcome, ReproduceError, Settings};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { paper: "bao", figure: "figure-2", title: "ratio of CPU utilization", setting: SETTING, run };

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let restatements = restatements(settings)?;
    // The paper's colours: D blue, S yellow.
    let curves = [
        Curve { label: "D", series: 1, of: |state| state.held[0][0] },
        Curve { label: "S", series: 5, of: |state| state.held[0][1] },
    ];
    let mut outcome = Outcome::default();
    for restatement in &restatements {
        outcome.verdicts.extend(verdicts(restatement, FigureResource::Cpu));
        outcome.figures.push(draw(
            2,
            "Ratio of CPU utilization",
            restatement,
            "share of the contributed capacity",
            &curves,
        ));
    }
    Ok(outcome)
}
