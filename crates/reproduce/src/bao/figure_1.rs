//! Figure 1: utilisation of CPU and memory as users come.

use super::arrivals::{After, Curve, Restated, SETTING, draw, how_often, percent, restated};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { paper: "bao", figure: "figure-1", title: "CPU and memory utilization", setting: SETTING, run };

/// What "close to 100 %" is taken for.
const CLOSE: f64 = 0.95;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let restated = restated(settings)?;
    let curves = [
        Curve { label: "CPU", series: 1, of: |after| after.used(0) },
        Curve { label: "memory", series: 2, of: |after| after.used(1) },
    ];
    let mut outcome = Outcome::default();
    for restated in &restated {
        outcome.verdicts.push(verdict(restated));
        outcome.drawn.push(draw(1, "CPU and memory utilization", restated, "share of what was brought", &curves));
    }
    outcome.notes.extend(restated.first().and_then(|t1| t1.after.last()).map(why));
    Ok(outcome)
}

/// What keeps the resources apart.
fn why(end: &After) -> String {
    let [of_d, of_s] = end.slants;
    format!(
        "the rule between the classes ((2.8) and (2.9)) ties their levels together: a level of S is at least {} of that of \
         D, and a level of D at least {} of that of S, since somebody of each class needs so much of the other \
         resource; the more users, the nearer both are to 100 %, where BAA is DRF",
        percent(of_d),
        percent(of_s)
    )
}

fn verdict(restated: &Restated) -> Verdict {
    let is_close = |share: f64| share >= CLOSE;
    let (often, _) = how_often(&restated.after, |_| true, |after| (0..2).all(|r| is_close(after.used(r))));
    let mean = |r: usize| restated.after.iter().map(|after| after.used(r)).sum::<f64>() / restated.after.len() as f64;
    Verdict::new(
        format!("{}: BAA with time often ensures the utilization of two resources close to 100 %", restated.name),
        format!(
            "both are at least {} used after {} of the arrivals; on average CPU {}, memory {}",
            percent(CLOSE),
            percent(often),
            percent(mean(0)),
            percent(mean(1))
        ),
        often > 0.5,
    )
}
