//! Speed of the simulator: dispatches a second on one core, for the paper's Figure 11 (8 clients, 4
//! resources), deterministic and random, under every scheduler; for 1,000 clients on 16 resources; and
//! 1,000 runs of Figure 9 on all cores. Medians.
//!
//! `cargo bench -p evenhand-processes --bench dispatch [-- few|many|runs]`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and its input is its own")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_model::Time;
use evenhand_processes::{Client, Parameters, Program, SCHEDULERS, Scenario, ensemble};

const RUNS: usize = 5;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|c| c == part);
    for width in ["0", "0.01"].into_iter().filter(|_| is_chosen("few")) {
        for scheduler in SCHEDULERS {
            let few = ring(8, 4, width, scheduler.name, 20_000);
            rate(&format!("8 clients, 4 resources, width {width}, {}", scheduler.name), &few);
        }
    }
    for width in ["0", "0.01"].into_iter().filter(|_| is_chosen("many")) {
        let many = ring(1000, 16, width, "bottleneck", 1_000);
        rate(&format!("1000 clients, 16 resources, width {width}, bottleneck"), &many);
    }
    if !is_chosen("runs") {
        return;
    }
    let scenario = figure_9();
    let mut times: Vec<f64> = (0..RUNS).map(|_| seconds(|| ensemble(&scenario, 1000, None))).collect();
    println!("{:>60} {:>8.3} s", "1000 runs of Figure 9, all cores", median(&mut times));
}

/// Figure 11 with any numbers: each client cycles through three consecutive resources.
fn ring(clients: usize, resources: usize, width: &str, scheduler: &str, horizon: u64) -> Scenario {
    let all = (0..clients).map(|i| {
        let first = i * resources / clients;
        let steps: Vec<String> =
            (0..3).map(|k| format!("R{:02}_CS 0.1 {width} NORM\n", (first + k) % resources)).collect();
        client(&format!("c{i}"), 1, &format!("loop 1000000000\n{}", steps.concat()))
    });
    let parameters =
        Parameters { scheduler: scheduler.into(), horizon: Some(Time::from_secs(horizon)), ..Parameters::default() };
    Scenario::new(all.collect(), vec![], parameters).unwrap()
}

fn figure_9() -> Scenario {
    let body = "loop 3\nNET_CS 0.5 0.05 NORM\nCPU_CS 1 0.1 NORM\nDISK_CS 2 0.2 NORM\n";
    let clients = [("purple", 97), ("blue", 1), ("green", 1), ("red", 1)].map(|(name, e)| client(name, e, body));
    Scenario::new(clients.to_vec(), vec![], Parameters::default()).unwrap()
}

fn client(name: &str, entitlement: usize, body: &str) -> Client {
    Client::new(name, Program::parse(name, &format!("# Priority:\n{entitlement}\n# Requests:\n{body}")).unwrap())
}

fn rate(what: &str, scenario: &Scenario) {
    let mut dispatches = 0;
    let mut recalculations = 0;
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            seconds(|| {
                let outcome = scenario.run();
                (dispatches, recalculations) = (outcome.dispatches, outcome.recalculations);
                outcome
            })
        })
        .collect();
    let time = median(&mut times);
    let per_second = dispatches as f64 / time / 1e6;
    println!("{what:>60} {per_second:>8.2} million dispatches/s ({dispatches}, {recalculations} recalculations)");
}

fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let begun = Instant::now();
    black_box(work());
    begun.elapsed().as_secs_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
