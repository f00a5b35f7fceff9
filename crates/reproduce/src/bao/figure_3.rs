//! Figure 3: which class has how much of the memory as users come.

use super::arrivals::{Curve, SETTING, Which, draw, restated, verdicts};
use crate::{Experiment, Outcome, ReproduceError, Settings};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { paper: "bao", figure: "figure-3", title: "ratio of memory utilization", setting: SETTING, run };

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let restated = restated(settings)?;
    // The paper's colours: D blue, S yellow.
    let curves = [
        Curve { label: "D", series: 1, of: |after| after.held[1][0] },
        Curve { label: "S", series: 5, of: |after| after.held[1][1] },
    ];
    let mut outcome = Outcome::default();
    for restated in &restated {
        outcome.verdicts.extend(verdicts(restated, Which::Memory));
        outcome.drawn.push(draw(3, "Ratio of memory utilization", restated, "share of what was brought", &curves));
    }
    Ok(outcome)
}
