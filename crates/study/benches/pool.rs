//! Speed of the pool simulation: tasks a second on one core, median of five runs.
//!
//! `cargo bench -p evenhand-study --bench pool [-- POLICY… FILE…]`: without files two days like
//! Google's of 627 users; with files, those traces (anything that can be imported).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_model::{Capacity, Quantity, Weights, Workload, mean_use};
use evenhand_policies::{Decay, PolicyContext, Registration, Registry};
use evenhand_simulator::{PoolOptions, Progress, UserTasks, simulate};
use evenhand_workload::Source;
use evenhand_workload::import::{ImportOptions, import};

const RUNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let registry = Registry::built_in();
    let (names, files): (Vec<String>, Vec<String>) = arguments.into_iter().partition(|a| registry.get(a).is_ok());
    let policies = registry
        .policies()
        .iter()
        .filter(|p| names.is_empty() || names.iter().any(|n| n == p.name))
        .collect::<Vec<_>>();
    if files.is_empty() {
        measure("generated", &generated(), &policies);
    }
    for file in files {
        let options = ImportOptions { relaxed: true, lenient: true, ..ImportOptions::default() };
        match import(&[Source::from_argument(&file)], &options) {
            Ok(imported) => measure(&file, &imported.workload.expanded(), &policies),
            Err(e) => eprintln!("{e}"),
        }
    }
}

fn generated() -> Workload {
    use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
    let options = GenerateOptions { model: TraceModel::Google2011, tasks: 2_000_000, users: 627, days: 2.0, seed: 1 };
    generate(&options).expect("the options are right")
}

fn measure(name: &str, workload: &Workload, policies: &[&Registration]) {
    println!(
        "{name}: {} tasks of {} users, {} resources",
        workload.len(),
        workload.users().len(),
        workload.resources().len()
    );
    let tasks = UserTasks::new(workload);
    let r = mean_use(workload);
    let weights = Weights::equal(workload.users().len());
    let decay = Quantity::parse("0.999999").ok().and_then(|q| Decay::from_delta(&q).ok());
    println!("{:>14} {:>9} {:>12} {:>14}", "policy", "capacity", "M tasks/s", "decisions/task");
    for factor in ["0.5", "1.0"] {
        let quantity = Quantity::parse(factor).expect("a number");
        let capacity = Capacity::multiple(workload.resources(), &r, &quantity).expect("something is used");
        for policy in policies {
            let mut rates = Vec::new();
            let mut decisions = 0;
            for _ in 0..RUNS {
                let mut policy = policy.build(&PolicyContext::new(&capacity, &weights).decay(decay)).expect("a policy");
                let begun = Instant::now();
                let run = simulate(
                    workload,
                    &tasks,
                    &capacity,
                    policy.as_mut(),
                    PoolOptions::default(),
                    &Progress::default(),
                );
                rates.push(workload.len() as f64 / begun.elapsed().as_secs_f64() / 1e6);
                decisions = black_box(run.expect("nothing is cancelled")).decisions;
            }
            rates.sort_by(f64::total_cmp);
            let per_task = decisions as f64 / workload.len() as f64;
            println!("{:>14} {factor:>9} {:>12.2} {per_task:>14.2}", policy.name, rates[RUNS / 2]);
        }
    }
}
