//! Figure 9: four processes with widely different priorities.

use super::process_scenarios::{Process, paper, process, scenario};
use super::recorded_runs::{RUNS, RandomizedRuns, Run, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-9",
    title: "four processes with widely different priorities",
    setting: "As printed: purple 97, the others 1 each; 3 times network 0.5 s, CPU 1 s, disk 2 s. Service times are normal with a \
              deviation of a tenth (not given). All resources in quanta, because in the text purple waits for quanta.",
    run,
};

/// The program of each process, here and in Figure 10.
pub(super) const BODY: &str = "loop 3; NET_CS 0.5 0.05 NORM; CPU_CS 1 0.1 NORM; DISK_CS 2 0.2 NORM";
pub(super) const OTHERS: [&str; 3] = ["blue", "green", "red"];

/// Returns purple and the other three processes with these entitlements.
pub(super) fn four(purple: &'static str, other: &'static str, body: &'static str) -> [Process; 4] {
    let [a, b, c] = OTHERS.map(|name| process(name, other, body));
    [process("purple", purple, body), a, b, c]
}

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let many = RandomizedRuns::of(scenario(&four("97", "1", BODY), paper(settings.seed))?)?;
    let one = Run::first(many.scenario.clone());
    let purple = many.finish("purple");
    let others = OTHERS.map(|c| many.finish(c));
    // Nine requests, and before each at most the rest of another process's quantum.
    let longest = 9.0 * 0.1;
    let waits = || many.ensemble.outcomes.iter().map(|o| o.waited[0].secs_f64());
    let within = waits().filter(|w| *w <= longest).count();
    let used = ["purple", "blue", "green", "red"].map(|c| many.used_by(c, 10.0).0);
    let (low, high) =
        (others.iter().map(|o| o.0).fold(f64::MAX, f64::min), others.iter().map(|o| o.0).fold(0.0, f64::max));
    let disk = OTHERS.map(|c| many.share(c, "DISK_CS", 0.0..many.finish(c).0));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "purple never has to wait for a resource, except to wait for the end of the current quantum",
                format!(
                    "in {within} of {RUNS} runs it waits at most {longest} s for its nine requests; the mean is {:.2} s",
                    waits().sum::<f64>() / RUNS as f64
                ),
                within * 100 >= RUNS * 95,
            ),
            Verdict::new(
                "it finishes its 3 iterations way ahead of the others (10.5 s without any waiting)",
                format!("purple finishes at {:.1} ± {:.1} s, the others at {low:.1} s and later", purple.0, purple.1),
                purple.0 < 11.2 && low > 2.0 * purple.0,
            ),
            Verdict::new(
                "the others enjoy similar performance on average",
                format!("they finish at {:.1}, {:.1} and {:.1} s", others[0].0, others[1].0, others[2].0),
                high < 1.05 * low,
            ),
            Verdict::new(
                "each process still receives at least its entitlement on the bottleneck, the disk",
                format!("blue, green and red (1 % each) receive {} of it until they finish", percents(&disk)),
                disk.iter().all(|share| *share >= 0.01),
            ),
        ],
        figures: vec![
            one.gantt("figure-9", "Priorities 97, 1, 1, 1")?,
            one.cumulative("figure-9", "Priorities 97, 1, 1, 1", None)?,
            many.means("figure-9", "Priorities 97, 1, 1, 1", None),
        ],
        notes: vec![format!(
            "after 10 s purple has used {:.1} s, the others {:.1}, {:.1} and {:.1} s",
            used[0], used[1], used[2], used[3]
        )],
    })
}
