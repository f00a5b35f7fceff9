//! Figure 7: three processes with different priorities contending for two resources.

use evenhand_processes::{Parameters, Reading};

use super::process_scenarios::{Process, paper, process, scenario};
use super::recorded_runs::{Run, near, percent, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-7",
    title: "three processes, two resources",
    setting: "As printed: red, entitlement 40, 10 s of the CPU; blue, 40, 10 s of the disk; green, 20, 2 s of the CPU, then 8 s of \
              disk and CPU alternately, 0.1 s each. Deterministic.",
    run,
};

pub(super) const PROCESSES: [Process; 3] = [
    process("red", "40", "loop 1; CPU_CS 10 0 NORM"),
    process("blue", "40", "loop 1; DISK_CS 10 0 NORM"),
    process("green", "20", "loop 1; CPU_CS 2 0 NORM; loop 40; DISK_CS 0.1 0 NORM; CPU_CS 0.1 0 NORM"),
];
/// The time in which green alternates and all processes are active.
pub(super) const MIDDLE: std::ops::Range<f64> = 7.0..11.5;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let run = Run::of(scenario(&PROCESSES, paper(settings.seed))?);
    let first = ["red", "green"].map(|c| run.share(c, "CPU_CS", 0.0..5.0));
    let middle = |run: &Run| {
        [("red", "CPU_CS"), ("green", "CPU_CS"), ("blue", "DISK_CS"), ("green", "DISK_CS")]
            .map(|(c, r)| run.share(c, r, MIDDLE))
    };
    let shares = middle(&run);
    let rates = ["red", "blue", "green"].map(|c| run.rate(c, MIDDLE));
    let global = Parameters { reading: Reading::Global, ..paper(settings.seed) };
    let literal = middle(&Run::of(scenario(&PROCESSES, global)?));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "initially blue uses the disk with no contention, while red and green share the CPU by priority",
                format!(
                    "in the first 5 s blue receives {} of the disk, red and green {} of the CPU",
                    percent(run.share("blue", "DISK_CS", 0.0..5.0)),
                    percents(&first)
                ),
                near(&first, &[2.0 / 3.0, 1.0 / 3.0], 0.04) && run.share("blue", "DISK_CS", 0.0..5.0) > 0.999,
            ),
            Verdict::new(
                "then red and blue receive their relative entitlements of 67 % on their resources, and green 33 % on each",
                format!(
                    "CPU: red and green {}; disk: blue and green {}",
                    percents(&shares[..2]),
                    percents(&shares[2..])
                ),
                near(&shares, &[0.67, 0.33, 0.67, 0.33], 0.03),
            ),
            Verdict::new(
                "all three processes make progress at the same overall rate, green with a total of 67 %",
                format!("red, blue and green use {}", percents(&rates)),
                near(&rates, &[0.67; 3], 0.03),
            ),
        ],
        figures: vec![
            run.gantt("figure-7", "Three processes, two resources")?,
            run.cumulative("figure-7", "Three processes, two resources", None)?,
        ],
        notes: vec![format!(
            "the formula as printed contradicts this: with entitlements normalised over all active clients red and green \
             receive {} of the CPU (reading global)",
            percents(&literal[..2])
        )],
    })
}
