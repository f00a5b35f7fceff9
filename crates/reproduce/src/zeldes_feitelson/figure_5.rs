//! Figure 5: the grace period lets the ideal allocation grow while a resource is not used.

use evenhand_model::Span;

use super::recorded_runs::percent;
use super::returns_to_cpu::{LONG_RUN, alternate, mean, returns};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-5",
    title: "absence for less than the grace period",
    setting: "As printed: red, entitlement 70, uses the CPU for 2 s, then the disk for 0.5 s; blue, 30, only the CPU. Service \
              times of red are normal with a deviation of a tenth (not given). One run of 60 s.",
    run,
};

const RED: &str = "loop 1000; CPU_CS 2 0.2 NORM; DISK_CS 0.5 0.05 NORM";

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let run = alternate(RED, None, settings.seed)?;
    let returns = returns(&run);
    let exclusive = mean(returns.iter().map(|r| r.exclusive));
    let long = returns.iter().filter(|r| r.exclusive >= 0.1999).count();
    let short = returns.iter().filter(|r| r.exclusive < 1.5).count();
    let share = run.share("red", "CPU_CS", LONG_RUN);
    let without = alternate(RED, Some(Span::ZERO), settings.seed)?.share("red", "CPU_CS", LONG_RUN);
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "when the process returns it gets exclusive access for a short while in order to make up for the deficit",
                format!(
                    "red has exclusive access for {exclusive:.2} s in the mean of {} returns; for at least two quanta after \
                     {long} of them, for less than 1.5 s of its 2 s after {short}",
                    returns.len()
                ),
                !returns.is_empty() && long * 4 >= returns.len() * 3 && short * 2 >= returns.len(),
            ),
            Verdict::new(
                "the grace period lets red's allocation grow during its absence (entitlement 70 %)",
                format!("red receives {} of the CPU, and {} without a grace period", percent(share), percent(without)),
                (share - 0.7).abs() < 0.03 && without < share - 0.05,
            ),
        ],
        figures: vec![
            run.gantt("figure-5", "Absence for less than the grace period")?,
            run.cumulative("figure-5", "Absence for less than the grace period", Some(0))?,
        ],
        notes: Vec::new(),
    })
}
