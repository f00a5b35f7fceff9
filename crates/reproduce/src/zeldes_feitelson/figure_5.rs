//! Figure 5: the grace period lets the ideal allocation grow while a resource is not used.

use evenhand_model::Span;

use super::returns::{LONG_RUN, alternate, mean, returns};
use super::runs::percent;
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-5",
    title: "away for less than the grace period",
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
                "when he returns he gets exclusive access for a short while in order to make up for the deficit",
                format!(
                    "red has the CPU to itself for {exclusive:.2} s in the mean of {} returns, for at least two \
                     quanta at {long}, for less than 1.5 s of its 2 s at {short}",
                    returns.len()
                ),
                !returns.is_empty() && long * 4 >= returns.len() * 3 && short * 2 >= returns.len(),
            ),
            Verdict::new(
                "the grace period lets red's allocation grow while it is away (entitlement 70 %)",
                format!("red has {} of the CPU, and {} without a grace period", percent(share), percent(without)),
                (share - 0.7).abs() < 0.03 && without < share - 0.05,
            ),
        ],
        drawn: vec![
            run.gantt("figure-5", "Away for less than the grace period")?,
            run.cumulative("figure-5", "Away for less than the grace period", Some(0))?,
        ],
        notes: Vec::new(),
    })
}
