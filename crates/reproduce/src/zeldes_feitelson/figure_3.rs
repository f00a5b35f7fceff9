//! Figure 3: four processes with different priorities contending for a resource.

use evenhand_processes::{Parameters, TieBreak};

use super::process_scenarios::{Process, paper, process, scenario};
use super::recorded_runs::{Run, near, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-3",
    title: "four processes, one resource",
    setting: "As printed: entitlements 10, 20, 30 and 40, 10 s of the CPU each. Deterministic. Ties are resolved in favour of \
              the process that is farthest behind since its arrival; the paper leaves them to local considerations.",
    run,
};

const BODY: &str = "loop 1; CPU_CS 10 0 NORM";
const PROCESSES: [Process; 4] = [
    process("red", "10", BODY),
    process("green", "20", BODY),
    process("purple", "30", BODY),
    process("blue", "40", BODY),
];
const ENTITLEMENTS: [f64; 4] = [0.1, 0.2, 0.3, 0.4];

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let run = Run::of(scenario(&PROCESSES, paper(settings.seed))?);
    let names = PROCESSES.map(|p| p.name);
    let finish = names.map(|c| run.finish(c));
    let shares = |run: &Run| names.map(|c| run.share(c, "CPU_CS", 0.0..24.0));
    let all = shares(&run);
    // As each one ends, the CPU is divided among the rest.
    let mut worst: f64 = 0.0;
    for (gone, from) in [(1, finish[3]), (2, finish[2]), (3, finish[1])] {
        let left = 4 - gone;
        let sum: f64 = ENTITLEMENTS[..left].iter().sum();
        for c in 0..left {
            worst = worst.max((run.share(names[c], "CPU_CS", from..finish[left - 1]) - ENTITLEMENTS[c] / sum).abs());
        }
    }
    let fifo = Run::of(scenario(&PROCESSES, Parameters { ties: TieBreak::Fifo, ..paper(settings.seed) })?);
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "shares follow the priorities of 10 %, 20 %, 30 % and 40 %",
                format!("in the first 24 s they receive {}", percents(&all)),
                near(&all, &ENTITLEMENTS, 0.005),
            ),
            Verdict::new(
                "the one with the highest allocation terminates first, and then the others in decreasing order",
                format!("blue at {} s, purple {} s, green {} s, red {} s", finish[3], finish[2], finish[1], finish[0]),
                finish.windows(2).all(|pair| pair[0] > pair[1]) && near(&finish, &[40.0, 35.0, 30.0, 25.0], 0.2),
            ),
            Verdict::new(
                "as each one terminates, the CPU is divided among the rest according to their designated shares",
                format!("the largest difference in any interval is {}", percents(&[worst])),
                worst <= 0.03,
            ),
        ],
        figures: vec![
            run.gantt("figure-3", "Four processes, one resource")?,
            run.cumulative("figure-3", "Four processes, one resource", None)?,
        ],
        notes: vec![format!(
            "this depends on the tie rule: with first come, first served the shares are {}, because with a sliding window an \
             imbalance of one quantum in the first window repeats forever",
            percents(&shares(&fifo))
        )],
    })
}
