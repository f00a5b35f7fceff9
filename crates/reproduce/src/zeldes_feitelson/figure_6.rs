//! Figure 6: absence for longer than the grace period.

use super::recorded_runs::percent;
use super::returns_to_cpu::{alternate, mean, returns};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-6",
    title: "absence for longer than the grace period",
    setting: "As printed: red, entitlement 70, uses the CPU for 2 s, then suspends for 4 s on average; blue, 30, only the CPU. \
              Times of red are normal with a deviation of a tenth (not given). One run of 60 s.",
    run,
};

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let run = alternate("loop 1000; CPU_CS 2 0.2 NORM; idle 4 0.4 NORM", None, settings.seed)?;
    let returns = returns(&run);
    let whole = || returns.iter().filter(|r| r.at + 1.0 <= run.end());
    let usual = mean(returns.iter().map(|r| r.exclusive));
    let latest = returns.iter().map(|r| r.exclusive).fold(0.0, f64::max);
    let share = mean(whole().map(|r| run.share("red", "CPU_CS", r.at..r.at + 1.0)));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "when the process returns it has to share the CPU with the blue process",
                format!(
                    "blue's next quantum starts {usual:.2} s later in the mean of {} returns, at most {latest:.1} s later",
                    returns.len()
                ),
                returns.len() > 3 && usual <= 0.5,
            ),
            Verdict::new(
                "by their entitlements of 70 % and 30 %",
                format!("red receives {} of the first second after a return", percent(share)),
                (share - 0.7).abs() <= 0.1,
            ),
        ],
        figures: vec![
            run.gantt("figure-6", "Absence for longer than the grace period")?,
            run.cumulative("figure-6", "Absence for longer than the grace period", Some(0))?,
        ],
        notes: Vec::new(),
    })
}
