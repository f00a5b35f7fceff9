//! Figure 1: utilisation of CPU and memory as users arrive.

use super::arrivals::{ArrivalState, Curve, Restatement, SETTING, draw, how_often, percent, restatements};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { paper: "bao", figure: "figure-1", title: "CPU and memory utilization", setting: SETTING, run };

/// The utilisation that counts as "close to 100 %".
const CLOSE: f64 = 0.95;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let restatements = restatements(settings)?;
    let curves = [
        Curve { label: "CPU", series: 1, of: |state| state.used(0) },
        Curve { label: "memory", series: 2, of: |state| state.used(1) },
    ];
    let mut outcome = Outcome::default();
    for restatement in &restatements {
        outcome.verdicts.push(verdict(restatement));
        outcome.figures.push(draw(
            1,
            "CPU and memory utilization",
            restatement,
            "share of the contributed capacity",
            &curves,
        ));
    }
    outcome.notes.extend(restatements.first().and_then(|t1| t1.states.last()).map(explanation));
    Ok(outcome)
}

/// Explains why the utilisations of the resources differ.
fn explanation(end: &ArrivalState) -> String {
    let [of_d, of_s] = end.cross_demands;
    format!(
        "the rule between the classes ((2.8) and (2.9)) links their levels: the level of S is at least {} of that of \
         D, and the level of D at least {} of that of S, because some user of each class needs that fraction of the other \
         resource; with more users both fractions approach 100 %, where BAA equals DRF",
        percent(of_d),
        percent(of_s)
    )
}

fn verdict(restatement: &Restatement) -> Verdict {
    let is_close = |share: f64| share >= CLOSE;
    let states = &restatement.states;
    let (often, _) = how_often(states, |_| true, |state| (0..2).all(|r| is_close(state.used(r))));
    let mean = |r: usize| states.iter().map(|state| state.used(r)).sum::<f64>() / states.len() as f64;
    Verdict::new(
        format!("{}: BAA with time often ensures the utilization of two resources close to 100 %", restatement.name),
        format!(
            "the utilization of both is at least {} after {} of the arrivals; the means are {} for CPU and {} for memory",
            percent(CLOSE),
            percent(often),
            percent(mean(0)),
            percent(mean(1))
        ),
        often > 0.5,
    )
}
