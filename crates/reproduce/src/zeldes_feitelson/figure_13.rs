//! Figure 13: the focus shifts from one bottleneck to another.

use super::process_scenarios::{Process, process, scenario, until};
use super::recorded_runs::{RandomizedRuns, Run, percent, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-13",
    title: "the focus shifts from one bottleneck to another",
    setting: "Entitlements 50, 25, 12.5 and 12.5. The first uses the CPU 80 % of its time, disk and network 10 % each (0.8, 0.1 and \
              0.1 s); the others first CPU and disk (0.25 s each, 20, 10 and 10 times: not given, chosen so that all change at about \
              20 s), then 0.15 s of each and 0.7 s of the network. Deviation of a tenth. All resources in quanta; 80 s.",
    run,
};

const PROCESSES: [Process; 4] = [
    process("blue", "50", "loop 100000; CPU_CS 0.8 0.08 NORM; DISK_CS 0.1 0.01 NORM; NET_CS 0.1 0.01 NORM"),
    process(
        "green",
        "25",
        "loop 20; CPU_CS 0.25 0.025 NORM; DISK_CS 0.25 0.025 NORM; \
         loop 100000; CPU_CS 0.15 0.015 NORM; DISK_CS 0.15 0.015 NORM; NET_CS 0.7 0.07 NORM",
    ),
    process("red", "12.5", SMALL),
    process("purple", "12.5", SMALL),
];
const SMALL: &str = "loop 10; CPU_CS 0.25 0.025 NORM; DISK_CS 0.25 0.025 NORM; \
                     loop 100000; CPU_CS 0.15 0.015 NORM; DISK_CS 0.15 0.015 NORM; NET_CS 0.7 0.07 NORM";
const FIRST: std::ops::Range<f64> = 4.0..14.0;
const SECOND: std::ops::Range<f64> = 30.0..80.0;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let many = RandomizedRuns::of(scenario(&PROCESSES, until(80, settings.seed))?)?;
    let one = Run::first(many.scenario.clone());
    let names = PROCESSES.map(|p| p.name);
    let cpu = |time: &std::ops::Range<f64>| names.map(|c| many.share(c, "CPU_CS", time.clone()));
    let (first, second) = (cpu(&FIRST), cpu(&SECOND));
    let net = names.map(|c| many.share(c, "NET_CS", SECOND));
    let flags = [FIRST, SECOND].map(|time| ["CPU_CS", "NET_CS"].map(|r| one.flagged(r, time.clone())));
    let busy = [FIRST, SECOND].map(|time| ["CPU_CS", "NET_CS"].map(|r| many.busy(r, time.clone())));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "the CPU is the bottleneck in the first part of the simulation",
                format!(
                    "the utilization of CPU and network is {}; they count as bottlenecks {} of that time",
                    percents(&busy[0]),
                    percents(&flags[0])
                ),
                busy[0][0] > 0.9 && flags[0][0] > 2.0 / 3.0 && flags[0][1] == 0.0,
            ),
            Verdict::new(
                "but the network becomes the bottleneck in the later part",
                format!(
                    "the utilization of CPU and network is {}; they count as bottlenecks {} of that time",
                    percents(&busy[1]),
                    percents(&flags[1])
                ),
                busy[1][1] > 0.9 && busy[1][1] > busy[1][0] && flags[1][1] > 0.5 && flags[1][1] > flags[1][0],
            ),
            Verdict::new(
                "leading to a change in relative allocations",
                format!(
                    "the CPU shares of blue, green, red and purple are first {}, then {}; the later network shares are {}",
                    percents(&first),
                    percents(&second),
                    percents(&net)
                ),
                second[0] > first[0] + 0.05 && (1..4).all(|c| second[c] < first[c]),
            ),
        ],
        figures: vec![
            one.gantt("figure-13", "A bottleneck that moves")?,
            one.cumulative("figure-13", "A bottleneck that moves", None)?,
            many.means("figure-13", "A bottleneck that moves", None),
        ],
        notes: vec![format!(
            "no client is entitled to more than it can use: blue needs the network for a tenth of its time, so the other three \
             share the remainder; green, entitled to twice as much, receives {} and red {}, because a surplus is divided in \
             equal parts",
            percent(net[1]),
            percent(net[2])
        )],
    })
}
