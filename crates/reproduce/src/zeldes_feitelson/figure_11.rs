//! Figure 11: a ring of resources, where several different solutions are possible.

use evenhand_model::Span;
use evenhand_processes::{Client, Scenario, ensemble};

use super::process_scenarios::{client, until};
use super::recorded_runs::{Run, percent};
use crate::{Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "figure-11",
    title: "a ring of four resources: several solutions are possible",
    setting: "As printed: 8 processes of equal entitlements in pairs, 4 resources; each pair uses 3 consecutive ones, 0.1 s each. \
              Deterministic, and with a normal deviation of 0.03 s (not given) on resources that serve to completion; 60 s. \
              Shares are of the last 50 s.",
    run,
};

const TIME: std::ops::Range<f64> = 10.0..60.0;
const RESOURCES: [&str; 4] = ["R1", "R2", "R3", "R4"];

fn ring(ending: &str, width: &str, seed: u64) -> Result<Scenario, ReproduceError> {
    let mut clients: Vec<Client> = Vec::new();
    for pair in 0..4 {
        for member in ["a", "b"] {
            let step = |k: usize| format!("{}{ending} 0.1 {width} NORM", RESOURCES[(pair + k) % 4]);
            let body = format!("loop 100000; {}", [0, 1, 2].map(step).join("; "));
            clients.push(client(&format!("{}{member}", pair + 1), "1", &body)?);
        }
    }
    Ok(Scenario::new(clients, Vec::new(), until(60, seed))?)
}

fn spread(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, 0.0), |(low, high), v| (low.min(*v), f64::max(high, *v)))
}

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let exact = Run::of(ring("_CS", "0", settings.seed)?);
    let random = Run::of(ring("", "0.03", settings.seed)?);
    let rates = |run: &Run| run.scenario.clients().iter().map(|c| run.rate(&c.name, TIME)).collect::<Vec<_>>();
    let (low, high) = spread(&rates(&exact));
    let busy = spread(&RESOURCES.map(|r| exact.busy(&format!("{r}_CS"), TIME)));
    let of_random = spread(&rates(&random));
    let busy_random = spread(&RESOURCES.map(|r| random.busy(r, TIME)));
    let flags = spread(&RESOURCES.map(|r| random.flagged(r, TIME)));
    // Means over many runs, in which other processes are favoured by chance.
    let many = ensemble(&random.scenario, 20, Some(Span::from_secs(10))).curves;
    let means: Vec<f64> = many
        .iter()
        .flat_map(|curves| &curves.total)
        .map(|points| (points.last().map_or(0.0, |s| s.mean) - points.get(1).map_or(0.0, |s| s.mean)) / 50.0)
        .collect();
    let of_many = spread(&means);
    let in_quanta = Run::of(ring("_CS", "0.01", settings.seed)?);
    let busy_quanta = spread(&RESOURCES.map(|r| in_quanta.busy(&format!("{r}_CS"), TIME)));
    Ok(Outcome {
        verdicts: vec![
            Verdict::new(
                "deterministic service times lead to the symmetric solution, with all resources utilized 100 % of the time",
                format!(
                    "resources are busy {} to {} of the time, processes are served {} to {} (1/6 on each of 3)",
                    percent(busy.0),
                    percent(busy.1),
                    percent(low),
                    percent(high)
                ),
                busy.0 > 0.995 && low > 0.48 && high < 0.52,
            ),
            Verdict::new(
                "randomised, none of the resources maintain their bottleneck status without some gaps and idle periods",
                format!(
                    "they count as bottlenecks {} to {} of the time and are busy {} to {}",
                    percent(flags.0),
                    percent(flags.1),
                    percent(busy_random.0),
                    percent(busy_random.1)
                ),
                flags.1 < 1.0 && busy_random.1 < 1.0,
            ),
            Verdict::new(
                "the progress made by the 8 processes is found to be at largely the same rate",
                format!(
                    "{} to {} in one run, {} to {} in the mean of 20",
                    percent(of_random.0),
                    percent(of_random.1),
                    percent(of_many.0),
                    percent(of_many.1)
                ),
                of_random.1 < 1.1 * of_random.0,
            ),
        ],
        figures: vec![
            random.gantt("figure-11", "A ring of resources, randomised")?,
            random.cumulative("figure-11", "A ring of resources, randomised", None)?,
            exact.cumulative("figure-11-deterministic", "A ring of resources, deterministic", None)?,
        ],
        notes: vec![format!(
            "this holds for resources that serve to completion; in quanta of 0.1 s, a service slightly longer than the quantum \
             queues twice, and even with a deviation of 0.01 s resources are busy only {} to {} of the time",
            percent(busy_quanta.0),
            percent(busy_quanta.1)
        )],
    })
}
