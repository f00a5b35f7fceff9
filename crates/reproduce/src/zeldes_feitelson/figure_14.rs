//! Figure 14: processes with complementary requirements.

use evenhand_model::{Span, Time};
use evenhand_processes::{Scenario, SteadyInterval, compare_offline};

use super::process_scenarios::{client, until};
use super::recorded_runs::{RUNS, RandomizedRuns, Run, percent, percents};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-14",
    title: "complementary requirements: no oscillation, no process is left behind",
    setting: "As printed: equal entitlements; P1 0.1 s of CPU and 0.014 s of network, P2 0.017 and 0.1 s, P3 0.1 s of each. \
              Deviation of a twentieth (not given). Resources serve to completion: in quanta, randomness breaks the \
              bottlenecks (see the note). 100 s; shares are of the last 80 s.",
    run,
};

const TIME: std::ops::Range<f64> = 20.0..100.0;
const NAMES: [&str; 3] = ["P1", "P2", "P3"];

fn three(ending: &str, part: f64, seed: u64) -> Result<Scenario, ReproduceError> {
    let request = |name: &str, mean: f64| {
        // Seconds, with microseconds as decimals.
        format!("{name}{ending} {mean} {:.6} NORM", mean * part)
    };
    let needs = [(0.1, 0.014), (0.017, 0.1), (0.1, 0.1)];
    let clients = NAMES.iter().zip(needs).map(|(name, (cpu, net))| {
        client(name, "1", &format!("loop 1000000; {}; {}", request("CPU", cpu), request("NET", net)))
    });
    Ok(Scenario::new(clients.collect::<Result<_, _>>()?, Vec::new(), until(100, seed))?)
}

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let many = RandomizedRuns::of(three("", 0.05, settings.seed)?)?;
    let one = Run::first(many.scenario.clone());
    let busy = ["CPU", "NET"].map(|r| many.busy(r, TIME));
    let flags = ["CPU", "NET"].map(|r| one.flagged(r, TIME));
    let cpu = NAMES.map(|c| many.share(c, "CPU", TIME));
    let net = NAMES.map(|c| many.share(c, "NET", TIME));
    let largest = [0, 1, 2].map(|c: usize| cpu[c].max(net[c]));
    let exact = three("_CS", 0.0, settings.seed)?;
    let steady =
        SteadyInterval::in_last_phases(&exact, Time::ZERO + Span::from_secs(20), Time::ZERO + Span::from_secs(100));
    let comparison =
        compare_offline(&exact, &steady, exact.resolution()).map_err(|e| ReproduceError::Setup(e.to_string()))?;
    let quanta = RandomizedRuns::of(three("_CS", 0.05, settings.seed)?)?;
    let of_quanta = ["CPU_CS", "NET_CS"].map(|r| quanta.busy(r, TIME));
    let behind = quanta.share("P3", "CPU_CS", TIME);
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "both the CPU and network become bottlenecks, and retain this status",
                format!(
                    "their utilization is {}; they count as bottlenecks {} of the time",
                    percents(&busy),
                    percents(&flags)
                ),
                busy.iter().all(|b| *b > 0.9) && flags.iter().all(|f| *f > 0.95),
            ),
            Verdict::new(
                "the third process tends to get ahead of the other two rather than not receiving its due entitlement (1/3)",
                format!(
                    "P1, P2 and P3 receive {} of the CPU and {} of the network in the mean of {RUNS} runs",
                    percents(&cpu),
                    percents(&net)
                ),
                largest[2] >= 1.0 / 3.0 && largest[2] >= 0.97 * largest[0].min(largest[1]),
            ),
            Verdict::new(
                "each receives at least its entitlement on at least one bottleneck",
                format!("the largest shares are {}", percents(&largest)),
                largest.iter().all(|share| *share >= 1.0 / 3.0),
            ),
        ],
        figures: vec![
            one.gantt("figure-14", "Complementary requirements")?,
            one.cumulative("figure-14", "Complementary requirements", None)?,
            many.means("figure-14", "Complementary requirements", None),
        ],
        notes: vec![
            format!(
                "this holds for resources that serve to completion; in quanta of 0.1 s a service slightly longer than the quantum \
                 queues twice, the utilization of CPU and network is only {}, and P3 receives {} of the CPU",
                percents(&of_quanta),
                percent(behind)
            ),
            format!(
                "deterministic, the long-run shares are those of the off-line division (bmf) to within {}",
                percent(comparison.difference)
            ),
        ],
    })
}
