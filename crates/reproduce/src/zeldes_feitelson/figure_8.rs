//! Figure 8: the scenario of Figure 7 with other priorities, deterministic and randomised.

use super::figure_7::PROCESSES;
use super::process_scenarios::{Process, paper, process, scenario};
use super::recorded_runs::{RUNS, RandomizedRuns, Run, near, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

const SETTING: &str = "The processes of Figure 7 with other entitlements, deterministic; and once more with a normal deviation of \
                       a tenth of each 0.1 s, 100 runs (the paper does not give it).";

pub(crate) static A: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-8a",
    title: "three processes, two resources, equal priorities",
    setting: SETTING,
    run: |settings| run("figure-8a", "Equal priorities", ["33.3"; 3], 12.1, settings),
};

pub(crate) static B: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-8b",
    title: "three processes, two resources, green with twice the priority",
    setting: SETTING,
    run: |settings| run("figure-8b", "Green with twice the priority", ["25", "25", "50"], 11.1, settings),
};

const RANDOM: [&str; 3] = [
    "loop 1; CPU_CS 10 0 NORM",
    "loop 1; DISK_CS 10 0 NORM",
    "loop 1; CPU_CS 2 0 NORM; loop 40; DISK_CS 0.1 0.01 NORM; CPU_CS 0.1 0.01 NORM",
];
/// The time in which green alternates and all processes are active.
const MIDDLE: std::ops::Range<f64> = 6.5..10.5;

fn run(
    name: &str,
    title: &str,
    entitlements: [&'static str; 3],
    green_done: f64,
    settings: &Settings,
) -> Result<Outcome, ReproduceError> {
    let with = |programs: [&'static str; 3]| -> Vec<Process> {
        let each = PROCESSES.iter().zip(entitlements).zip(programs);
        each.map(|((p, entitlement), program)| process(p.name, entitlement, program)).collect()
    };
    let run = Run::of(scenario(&with(PROCESSES.map(|p| p.program)), paper(settings.seed))?);
    let many = RandomizedRuns::of(scenario(&with(RANDOM), paper(settings.seed))?)?;
    let names = ["red", "blue", "green"];
    let green = [("CPU_CS"), ("DISK_CS")].map(|r| run.share("green", r, MIDDLE));
    let rates = names.map(|c| run.rate(c, MIDDLE));
    let finish = names.map(|c| run.finish(c));
    let random = names.map(|c| many.rate(c, MIDDLE));
    let is_equal = entitlements[0] == entitlements[2];
    let statement = if is_equal {
        "green receives the same allocation as the others on each resource"
    } else {
        "green, with twice the priority, does not get more than the others on each resource: alternating, it leaves each \
         idle half of the time, and the others pick up the slack"
    };
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                statement,
                format!("green receives {} of CPU and disk", percents(&green)),
                near(&green, &[0.5; 2], 0.03),
            ),
            Verdict::new(
                "green's total rate of progress is double that of the others",
                format!("red, blue and green use {}", percents(&rates)),
                near(&rates, &[0.5, 0.5, 1.0], 0.03),
            ),
            Verdict::new(
                "red, blue and green finish as in the graph (with these shares at 16, 14 and about 11 to 12 s)",
                format!("at {}, {} and {} s", finish[0], finish[1], finish[2]),
                near(&finish, &[16.0, 14.0, green_done], 0.2),
            ),
            Verdict::new(
                "if randomization is introduced, green is cut back, and makes progress at about the same rate as the other two",
                format!("the means of {RUNS} runs for red, blue and green are {}", percents(&random)),
                random[2] < 0.8 && near(&random, &[random[2]; 3], 0.1),
            ),
        ],
        figures: vec![
            run.gantt(name, title)?,
            run.cumulative(name, title, None)?,
            many.means(name, &format!("{title}, randomised"), None),
        ],
        notes: Vec::new(),
    })
}
