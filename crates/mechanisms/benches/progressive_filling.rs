//! Speed of progressive filling: `drf` and `sdrf` for a million users and four resources, against sorting their two
//! million breakpoints, in the same run. Medians.
//!
//! `cargo bench -p evenhand-mechanisms --bench progressive_filling [-- USERS]`

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_mechanisms::{Account, AccountTree, Mechanism, MechanismOptions, Problem, User, mechanism_named};
use evenhand_model::random::Stream;

const RUNS: usize = 15;
const RESOURCES: usize = 4;

fn main() {
    let users = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1_000_000);
    let problem = problem(users);
    let mut stream = Stream::new(2, "numbers", 0);
    let numbers: Vec<f64> = (0..2 * users).map(|_| stream.uniform()).collect();
    let mechanisms = ["drf", "sdrf"].map(|name| mechanism_named(name).expect("it is registered"));
    // In turn, so that other load on the machine affects all of them.
    let mut sorting = Vec::new();
    let mut filling = [const { Vec::new() }; 2];
    for _ in 0..RUNS {
        let mut sorted = numbers.clone();
        sorting.push(milliseconds(|| sorted.sort_unstable_by(f64::total_cmp)));
        black_box(sorted);
        for (times, mechanism) in filling.iter_mut().zip(mechanisms) {
            times.push(milliseconds(|| divide(mechanism, &problem)));
        }
    }
    let sort = median(&mut sorting);
    println!("{users} users, {RESOURCES} resources, median of {RUNS} runs");
    println!("{:>28} {sort:>9.1} ms", format!("sort of {} f64", 2 * users));
    for (times, mechanism) in filling.iter_mut().zip(mechanisms) {
        let time = median(times);
        println!("{:>28} {time:>9.1} ms {:>6.2} of the sort", mechanism.name(), time / sort);
    }
    let accounts = accounts(&problem, users / 1000);
    let mut times: Vec<f64> = (0..3).map(|_| milliseconds(|| divide(mechanisms[0], &accounts))).collect();
    println!("{:>28} {:>9.1} ms", format!("drf, {} accounts", users / 1000), median(&mut times));
}

/// Demands, limits, weights and commitments such that the level lies among the breakpoints.
fn problem(users: usize) -> Problem<f64> {
    let mut stream = Stream::new(1, "users", 0);
    let part = 1.0 / users as f64;
    let all = (0..users).map(|_| {
        let demand: Vec<f64> = (0..RESOURCES).map(|_| 0.05 + stream.uniform()).collect();
        let commitment: Vec<f64> = (0..RESOURCES).map(|_| part * stream.uniform()).collect();
        User::new(demand).weight(0.5 + stream.uniform()).limit(4.0 * part * stream.uniform()).commitment(commitment)
    });
    Problem::new(RESOURCES, all).expect("a problem")
}

/// The same users in accounts of accounts: about a thousand users each, thirty under each account above.
fn accounts(problem: &Problem<f64>, count: usize) -> Problem<f64> {
    let count = count.max(1);
    let above = count.div_ceil(30);
    let account = |a: usize| Account { parent: (a >= above).then(|| a % above), weight: 1.0 + (a % 7) as f64 };
    let user_accounts = (0..problem.users()).map(|user| Some(above + user % count)).collect();
    let tree = AccountTree::new((0..above + count).map(account).collect(), user_accounts).expect("a tree");
    problem.clone().with_accounts(tree).expect("a place for each user")
}

fn divide(mechanism: &dyn Mechanism, problem: &Problem<f64>) {
    let allocation = mechanism.divide(problem, &MechanismOptions::default()).expect("it divides everything");
    assert!(allocation.level.is_some(), "a resource is used up");
    black_box(allocation);
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
