//! Speed of the audit in tasks per second on one core, median of five runs.
//!
//! `cargo bench -p evenhand-audit --bench audit [-- FILE…]`: without files, audits a million generated
//! tasks like Google's of 627 users over two days, as fifo and drf run them on 0.75 R; with files, audits those traces
//! (any importable format) by their own starts.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_audit::{Calendar, History, Parties, Property, Window};
use evenhand_model::{AccountTree, Capacity, Quantity, Rational, Weights, Workload, mean_use};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{PoolOptions, Progress, UserTasks, simulate};
use evenhand_workload::Source;
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
use evenhand_workload::import::{ImportOptions, import};

const RUNS: usize = 5;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    println!(
        "{:>40} {:>10} {:>8} {:>10} {:>10} {:>10}",
        "history", "tasks", "users", "property", "M tasks/s", "findings"
    );
    if files.is_empty() {
        generated();
    }
    for file in files {
        let options = ImportOptions { relaxed: true, lenient: true, ..ImportOptions::default() };
        match import(&[Source::from_argument(&file)], &options) {
            Ok(imported) => match &imported.workload.columns().start {
                Some(starts) => measure(&file, &imported.workload, starts, None),
                None => eprintln!("{file}: no task has a start"),
            },
            Err(e) => eprintln!("{e}"),
        }
    }
}

fn generated() {
    let options = GenerateOptions { model: TraceModel::Google2011, tasks: 1_000_000, users: 627, days: 2.0, seed: 1 };
    let workload = generate(&options).expect("the options are right").expanded();
    let factor = Quantity::parse("0.75").expect("a number");
    let capacity = Capacity::multiple(workload.resources(), &mean_use(&workload), &factor).expect("something is used");
    let weights = Weights::equal(workload.users().len());
    for name in ["fifo", "drf"] {
        let setting = PolicyContext::new(&capacity, &weights).decay(None);
        let mut policy = Registry::built_in().build(name, &setting).expect("it is registered");
        let tasks = UserTasks::new(&workload);
        let run = simulate(&workload, &tasks, &capacity, policy.as_mut(), PoolOptions::default(), &Progress::default());
        let starts = run.expect("nothing is cancelled").starts;
        measure(&format!("generated, {name}"), &workload, &starts, Some(&capacity));
    }
}

fn measure(name: &str, workload: &Workload, starts: &[u64], capacity: Option<&Capacity>) {
    let history = match History::with_starts(workload, starts) {
        Ok(history) => history,
        Err(e) => return eprintln!("{name}: {e}"),
    };
    let peak = history.peak_capacity().expect("a peak is more than 0");
    let capacity = capacity.unwrap_or(&peak);
    let weights = Weights::equal(workload.users().len());
    let without_envy: Vec<Property> = Property::ALL.into_iter().filter(|p| *p != Property::EnvyFree).collect();
    for (what, properties) in [("all", &Property::ALL[..]), ("no envy", &without_envy)] {
        let mut rates = Vec::new();
        let mut findings = 0;
        for _ in 0..RUNS {
            let begun = Instant::now();
            let history = History::with_starts(workload, starts).expect("it was one before");
            let audit = history.audit(capacity, &weights, properties, Window::default());
            findings = black_box(audit.expect("equal weights")).findings.len();
            rates.push(workload.len() as f64 / begun.elapsed().as_secs_f64() / 1e6);
        }
        rates.sort_by(f64::total_cmp);
        let (tasks, users) = (workload.len(), workload.users().len());
        println!("{name:>40} {tasks:>10} {users:>8} {what:>10} {:>10.3} {findings:>10}", rates[RUNS / 2]);
    }
    // The entitlements of all users, without accounts.
    let users = workload.users();
    let tree = AccountTree::new(Vec::new(), vec![None; users.len()], vec![Rational::ONE; users.len()]);
    let parties = Parties::users(&tree.expect("a tree of users"), users).expect("equal shares");
    let mut rates = Vec::new();
    let mut complaints = 0;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let history = History::with_starts(workload, starts).expect("it was one before");
        let calendar = Calendar { origin: None, ahead: 0 };
        let found = history.entitlements(capacity, &parties, calendar, Window::default());
        complaints = black_box(found).complaints.len();
        rates.push(workload.len() as f64 / begun.elapsed().as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    let rate = rates[RUNS / 2];
    println!("{name:>40} {:>10} {:>8} {:>10} {rate:>10.3} {complaints:>10}", workload.len(), users.len(), "entitled");
}
