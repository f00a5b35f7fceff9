//! Speed of an update: 1,000 guests of 100 users on one node, four resources. Medians, in nanoseconds a guest.
//!
//! `cargo bench -p evenhand-heaviness --bench update [-- GUESTS USERS]`
//!
//! An update is what an agent does between reading loads and moving weights: takes the loads, works out h_v
//! and the sums of users, from the sums h_u, and h_p.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_heaviness::{
    Cloud, Endowment, Guest, Local, METRICS, Metric, Node, Parameters, precedence, user_heaviness,
};
use evenhand_model::random::Stream;

const RESOURCES: usize = 4;
/// Updates with each of which the loads are others.
const UPDATES: usize = 64;
const RUNS: usize = 15;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (guests, users) = match numbers[..] {
        [guests, users, ..] => (guests, users),
        _ => (1000, 100),
    };
    let mut stream = Stream::new(1, "guests", 0);
    let mut row = |scale: f64| -> Vec<f64> { (0..RESOURCES).map(|_| scale * stream.uniform()).collect() };
    let supply: Vec<f64> = vec![guests as f64; RESOURCES];
    let all = (0..guests).map(|i| {
        let sizes = row(1.0).into_iter().enumerate().map(|(r, s)| (r < 2).then_some(s)).collect();
        Guest { owner: i % users, sizes, load: row(2.0) }
    });
    let mut node =
        Node::new(supply.clone(), vec![1.5, 1.0, 1.0, 1.0], Endowment::Proportional, all.collect()).expect("a node");
    let loads: Vec<Vec<f64>> = (0..guests + UPDATES).map(|_| row(2.0)).collect();
    let quotas = (0..users).map(|_| row(10.0).into_iter().map(Some).collect()).collect();
    let cloud = Cloud::new(node.supply().to_vec(), quotas).expect("a cloud");
    println!("{guests} guests, {users} users, {RESOURCES} resources: ns a guest and update, median of {RUNS} runs");
    for metric in METRICS {
        let built = (metric.build)(&Parameters::default()).expect("the defaults");
        let mut times: Vec<f64> = (0..RUNS).map(|_| run(built.as_ref(), &cloud, &mut node, &loads)).collect();
        times.sort_unstable_by(f64::total_cmp);
        println!("{:>14} {:>8.1}", metric.name, times[RUNS / 2] / guests as f64);
    }
}

/// Nanoseconds an update.
fn run(metric: &dyn Metric<f64>, cloud: &Cloud<f64>, node: &mut Node<f64>, loads: &[Vec<f64>]) -> f64 {
    let mut local = Local::default();
    let (mut users, mut out) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for update in 0..UPDATES {
        for guest in 0..node.guests() {
            node.set_load(guest, &loads[guest + update]).expect("a load");
        }
        local.update(metric, cloud, node).expect("known users");
        user_heaviness(metric, cloud, &local.sums, &mut users);
        precedence(node, &local.guests, &users, &mut out);
        black_box(&out);
    }
    begun.elapsed().as_nanos() as f64 / UPDATES as f64
}
