//! Figure 1b: a greedy and a sporadic user under max-min fairness.

use evenhand_report::chart::Caption;

use super::greedy_and_sporadic_users::{SETTING, days, peak};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-1b",
    title: "max-min fairness: greedy user A, sporadic user B",
    setting: SETTING,
    run,
};

fn run(_: &Settings) -> Result<Outcome, ReproduceError> {
    let peak = peak("max-min")?;
    let caption = Caption {
        name: "sadok-figure-1b".into(),
        title: "Max-min fairness: greedy A, sporadic B".into(),
        description: "B, who never used the system before, gets no more than A during the peak.".into(),
    };
    let halves = peak.meanwhile().iter().all(|[a, b]| a == b);
    Ok(Outcome {
        verdicts: vec![Verdict::new(
            "although B never used the system before, B receives as much as A during the peak",
            match peak.meanwhile().first() {
                Some([a, b]) => format!("A {a}, B {b} of the resource until B is done, after {}", days(peak.done())),
                None => "B is never present".into(),
            },
            halves && peak.done().is_finite(),
        )],
        figures: vec![peak.draw(caption)],
        notes: Vec::new(),
    })
}
