//! Figure 4: three processes using different resources.

use evenhand_processes::{Parameters, Reading};

use super::process_scenarios::{Process, paper, process, scenario};
use super::recorded_runs::{RUNS, RandomizedRuns, Run, near, percent, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-4",
    title: "three processes on different resources enjoy a higher effective entitlement",
    setting: "As printed: blue 70, green 20, red 10; 5 times the CPU for 0.1 s, then the network (blue) or the disk (green, \
              red) for 10 s. Service times are normal; the paper does not give their deviation, here a tenth of the \
              mean. All resources in quanta.",
    run,
};

const DISK: &str = "loop 5; CPU_CS 0.1 0.01 NORM; DISK_CS 10 1 NORM";
const PROCESSES: [Process; 3] = [
    process("blue", "70", "loop 5; CPU_CS 0.1 0.01 NORM; NET_CS 10 1 NORM"),
    process("green", "20", DISK),
    process("red", "10", DISK),
];
/// The time in which all processes are active.
const TOGETHER: std::ops::Range<f64> = 5.0..40.0;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let many = RandomizedRuns::of(scenario(&PROCESSES, paper(settings.seed))?)?;
    let one = Run::first(many.scenario.clone());
    let disk = |many: &RandomizedRuns| ["green", "red"].map(|c| many.share(c, "DISK_CS", TOGETHER));
    let (net, shares) = (many.share("blue", "NET_CS", TOGETHER), disk(&many));
    let total = ["blue", "green", "red"].map(|c| many.used_by(c, f64::MAX).0);
    let deviation = |second| {
        let of = |c| many.used_by(c, second).1;
        of("blue").max(of("green")).max(of("red"))
    };
    let (early, late) = (deviation(20.0), deviation(f64::MAX));
    let global = Parameters { reading: Reading::Global, ..paper(settings.seed) };
    let literal = disk(&RandomizedRuns::of(scenario(&PROCESSES, global)?)?);
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "blue receives nearly 100 % of the network, despite having an entitlement of only 70 %",
                format!("it receives {}", percent(net)),
                net > 0.97,
            ),
            Verdict::new(
                "green and red receive approximately 67 % and 33 % of the disk",
                format!("they receive {}", percents(&shares)),
                near(&shares, &[0.67, 0.33], 0.03),
            ),
            Verdict::new(
                "the average of multiple runs does come out right (50.5 s of use each)",
                format!(
                    "the means of {RUNS} runs are {:.1} s for blue, {:.1} s for green and {:.1} s for red",
                    total[0], total[1], total[2]
                ),
                near(&total, &[50.5; 3], 1.0),
            ),
            Verdict::new(
                "in the initial part, when all processes are active, there are no variations between runs",
                format!("the standard deviation of use is at most {early:.2} s after 20 s, and {late:.2} s at the end"),
                early < late / 4.0,
            ),
        ],
        figures: vec![
            one.gantt("figure-4", "Three processes, different resources")?,
            one.cumulative("figure-4", "Three processes, different resources", None)?,
            many.means("figure-4", "Three processes, different resources", None),
        ],
        notes: vec![format!(
            "the formula as printed, with entitlements normalised over all active clients, contradicts the figure: the \
             shares of the disk are then {} (reading global); here entitlements are normalised on each resource",
            percents(&literal)
        )],
    })
}
