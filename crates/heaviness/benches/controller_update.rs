//! Measures the integral controller: one update of 1,000 workloads on a node, in nanoseconds for each workload. Medians.
//!
//! `cargo bench -p evenhand-heaviness --bench controller_update [-- WORKLOADS]`

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_heaviness::controller::{IntegralController, IntegralSettings, cgroup_weight};

const UPDATES: usize = 64;
const RUNS: usize = 15;

fn main() {
    let workloads: usize = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1000);
    println!("{workloads} workloads: ns for each workload and update, median of {RUNS} runs");
    // Heaviness oscillates around 1, so that weights move within their range; or far enough that many reach its ends.
    for (name, height) in [("within the range", 0.1), ("at its ends", 30.0)] {
        let heaviness: Vec<Vec<f64>> = (0..UPDATES)
            .map(|t| {
                (0..workloads).map(|g| 1.0 + height * ((g * 7919 + t * 104_729) % 99_991) as f64 / 99_991.0).collect()
            })
            .collect();
        let activity: Vec<f64> = (0..workloads).map(|g| (g % 5) as f64).collect();
        let mut controller = IntegralController::new(IntegralSettings::default()).expect("the defaults");
        (0..workloads).for_each(|_| {
            controller.add();
        });
        let mut run = || {
            let begun = Instant::now();
            for h in &heaviness {
                controller.update(h, &activity).expect("numbers");
                controller.weights().for_each(|w| {
                    black_box(cgroup_weight(w));
                });
            }
            begun.elapsed().as_nanos() as f64 / (UPDATES * workloads) as f64
        };
        let mut times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
        times.sort_unstable_by(f64::total_cmp);
        println!("{name:>18} {:>8.1}", times[RUNS / 2]);
    }
}
