//! Measures one update: 1,000 workloads of 100 users on one node, four resources. Medians, in nanoseconds for each workload.
//!
//! `cargo bench -p evenhand-heaviness --bench heaviness_update [-- WORKLOADS USERS]`
//!
//! An update is what an agent does between reading loads and setting weights: it computes h_v and the users' sums from the
//! loads, then h_u from the sums, and h_p.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_heaviness::{
    Cloud, Endowment, METRICS, Metric, Node, NodeHeaviness, Parameters, RunningWorkload, combined_heaviness,
    user_heaviness,
};
use evenhand_model::random::Stream;

const RESOURCES: usize = 4;
/// The number of updates, each with different loads.
const UPDATES: usize = 64;
const RUNS: usize = 15;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (workloads, users) = match numbers[..] {
        [workloads, users, ..] => (workloads, users),
        _ => (1000, 100),
    };
    let mut stream = Stream::new(1, "workloads", 0);
    let mut row = |scale: f64| -> Vec<f64> { (0..RESOURCES).map(|_| scale * stream.uniform()).collect() };
    let supply: Vec<f64> = vec![workloads as f64; RESOURCES];
    let all = (0..workloads).map(|i| {
        let sizes = row(1.0).into_iter().enumerate().map(|(r, s)| (r < 2).then_some(s)).collect();
        RunningWorkload { owner: i % users, sizes, load: row(2.0) }
    });
    let mut node =
        Node::new(supply.clone(), vec![1.5, 1.0, 1.0, 1.0], Endowment::Proportional, all.collect()).expect("a node");
    let loads: Vec<Vec<f64>> = (0..workloads + UPDATES).map(|_| row(2.0)).collect();
    let quotas = (0..users).map(|_| row(10.0).into_iter().map(Some).collect()).collect();
    let cloud = Cloud::new(node.supply().to_vec(), quotas).expect("a cloud");
    println!(
        "{workloads} workloads, {users} users, {RESOURCES} resources: ns for each workload and update, median of {RUNS} runs"
    );
    for metric in METRICS {
        let built = (metric.build)(&Parameters::default()).expect("the defaults");
        let mut times: Vec<f64> = (0..RUNS).map(|_| run(built.as_ref(), &cloud, &mut node, &loads)).collect();
        times.sort_unstable_by(f64::total_cmp);
        println!("{:>14} {:>8.1}", metric.name, times[RUNS / 2] / workloads as f64);
    }
}

/// Returns nanoseconds for each update.
fn run(metric: &dyn Metric<f64>, cloud: &Cloud<f64>, node: &mut Node<f64>, loads: &[Vec<f64>]) -> f64 {
    let mut local = NodeHeaviness::default();
    let (mut users, mut out) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for update in 0..UPDATES {
        for workload in 0..node.workloads() {
            node.set_load(workload, &loads[workload + update]).expect("a load");
        }
        local.update(metric, cloud, node).expect("known users");
        user_heaviness(metric, cloud, &local.sums, &mut users);
        combined_heaviness(node, &local.workloads, &users, &mut out);
        black_box(&out);
    }
    begun.elapsed().as_nanos() as f64 / UPDATES as f64
}
