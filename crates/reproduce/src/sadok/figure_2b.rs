//! Figure 2b: a greedy and a sporadic user under stateful max-min fairness.

use evenhand_report::chart::Caption;

use super::greedy_and_sporadic_users::{SETTING, days, peak};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-2b",
    title: "stateful max-min fairness: greedy user A, sporadic user B",
    setting: SETTING,
    run,
};

fn run(_: &Settings) -> Result<Outcome, ReproduceError> {
    let (stateful, plain) = (peak("sdrf")?, peak("max-min")?);
    let caption = Caption {
        name: "sadok-figure-2b".into(),
        title: "Stateful max-min fairness: greedy A, sporadic B".into(),
        description: "B receives more than A during the peak, is done sooner, and frees the system for A.".into(),
    };
    let meanwhile = stateful.meanwhile();
    let share = |at: Option<&[f64; 2]>| at.map_or("nothing".into(), |[_, b]| format!("{:.1} %", 100.0 * b));
    let (first, last) = (share(meanwhile.first()), share(meanwhile.last()));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "B receives more of the resource than A",
                format!("B has {first} when the peak begins and {last} when it ends"),
                !meanwhile.is_empty() && meanwhile.iter().all(|[a, b]| b > a),
            ),
            Verdict::new(
                "B completes its tasks sooner than under max-min",
                format!("after {} instead of {}", days(stateful.done()), days(plain.done())),
                stateful.done() < plain.done(),
            ),
            Verdict::new(
                "so the system is free for A sooner, with little impact on A's work",
                format!(
                    "A then has {} of the resource; up to the time at which B is done under max-min, A has received {:.4} days \
                     of it, against {:.4} under max-min",
                    stateful.afterwards(),
                    stateful.had_by(plain.done()),
                    plain.had_by(plain.done())
                ),
                stateful.afterwards() == 1.0 && stateful.had_by(plain.done()) > 0.999 * plain.had_by(plain.done()),
            ),
        ],
        figures: vec![stateful.draw(caption)],
        notes: Vec::new(),
    })
}
