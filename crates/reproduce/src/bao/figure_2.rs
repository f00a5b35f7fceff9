//! Figure 2: which class has how much of the CPU as users come.

use super::arrivals::{Curve, SETTING, Which, draw, restated, verdicts};
use crate::{Experiment, Outcome, ReproduceError, Settings};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { paper: "bao", figure: "figure-2", title: "ratio of CPU utilization", setting: SETTING, run };

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let restated = restated(settings)?;
    // The paper's colours: D blue, S yellow.
    let curves = [
        Curve { label: "D", series: 1, of: |after| after.held[0][0] },
        Curve { label: "S", series: 5, of: |after| after.held[0][1] },
    ];
    let mut outcome = Outcome::default();
    for restated in &restated {
        outcome.verdicts.extend(verdicts(restated, Which::Cpu));
        outcome.drawn.push(draw(2, "Ratio of CPU utilization", restated, "share of what was brought", &curves));
    }
    Ok(outcome)
}
