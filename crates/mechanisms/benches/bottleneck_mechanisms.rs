//! Speed of bottleneck-aware allocation and bottleneck max fairness, as medians of several runs; and how often iterated
//! levels converge.
//!
//! `cargo bench -p evenhand-mechanisms --bench bottleneck_mechanisms [-- pass|baa|bmf|convergence …]`
//!
//! * `pass`: bottleneck-aware allocation of a million users of two resources, against one pass over the data (the sum
//!   of each resource's demands).
//! * `baa`: the same with limits; and of more resources.
//! * `bmf`: ten thousand users and eight resources.
//! * `convergence`: random problems by the number of users and resources.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_mechanisms::{Baa, Mechanism, MechanismOptions, Problem, User, bmf_by_iteration};

const RUNS: usize = 31;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|n| n == name);
    if wanted("pass") {
        pass();
    }
    if wanted("baa") {
        baa();
    }
    if wanted("bmf") {
        bmf();
    }
    if wanted("convergence") {
        convergence();
    }
}

/// A stream of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How demands are drawn.
#[derive(Clone, Copy)]
enum Demands {
    /// Each between 0.05 and 1.05.
    Even,
    /// Each between 0.01 and 1, evenly in its logarithm; a fifth is 0.
    Uneven,
    /// Sixteenths; a fifth is 0. Many ties.
    Sixteenths,
}

fn problem(random: &mut Random, n: usize, m: usize, demands: Demands, limited: f64) -> Problem<f64> {
    let mut users = Vec::with_capacity(n);
    for _ in 0..n {
        let mut demand: Vec<f64> = (0..m)
            .map(|_| {
                let (u, zero) = (random.unit(), random.unit() < 0.2);
                match demands {
                    Demands::Even => 0.05 + u,
                    _ if zero => 0.0,
                    Demands::Uneven => 100_f64.powf(u - 1.0),
                    Demands::Sixteenths => (u * 16.0).ceil().max(1.0) / 16.0,
                }
            })
            .collect();
        if demand.iter().all(|d| *d == 0.0) {
            demand[0] = 1.0;
        }
        let user = User::new(demand).weight((random.unit() * 8.0).ceil().max(1.0) / 4.0);
        users.push(if random.unit() < limited { user.limit(4.0 * random.unit() / n as f64) } else { user });
    }
    Problem::new(m, users).expect("the users are right")
}

/// The median time of several runs, in milliseconds.
fn median<T>(mut run: impl FnMut() -> T) -> f64 {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        black_box(run());
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn pass() {
    let mut random = Random(1);
    let options = MechanismOptions::default();
    let n = 1_000_000;
    let p = problem(&mut random, n, 2, Demands::Even, 0.0);
    let pass = median(|| (0..n).map(|i| p.demand(i)).fold([0.0, 0.0], |sums, d| [sums[0] + d[0], sums[1] + d[1]]));
    // The minimum for any mechanism: read weights too, and write an answer into fresh memory.
    let write = median(|| (0..n).map(|i| p.demand(i)[0] + p.demand(i)[1] * p.weight(i)).collect::<Vec<f64>>());
    let divide = median(|| Baa.divide(&p, &options).expect("levels"));
    println!(
        "baa, {n} users of 2 resources: {divide:.2} ms; one pass over the demands {pass:.2} ms, ratio {:.2}; one",
        divide / pass
    );
    println!("pass over demands and weights that writes a number a user {write:.2} ms, ratio {:.2}", divide / write);
}

fn baa() {
    let mut random = Random(1);
    let options = MechanismOptions::default();
    let n = 1_000_000;
    let p = problem(&mut random, n, 2, Demands::Even, 0.3);
    let divide = median(|| Baa.divide(&p, &options).expect("levels"));
    println!("baa, {n} users of 2 resources, three in ten with limits: {divide:.2} ms");
    for m in [3, 4, 8] {
        let p = problem(&mut random, 100_000, m, Demands::Even, 0.0);
        let divide = median(|| Baa.divide(&p, &options).expect("levels"));
        println!("baa, 100000 users of {m} resources: {divide:.2} ms");
    }
}

fn bmf() {
    let mut random = Random(2);
    for (name, demands) in [("even", Demands::Even), ("uneven", Demands::Uneven), ("tied", Demands::Sixteenths)] {
        for limited in [0.0, 0.3] {
            let mut times: Vec<f64> = Vec::new();
            for _ in 0..15 {
                let p = problem(&mut random, 10_000, 8, demands, limited);
                let begun = Instant::now();
                match black_box(bmf_by_iteration(&p)) {
                    Ok(_) => times.push(begun.elapsed().as_secs_f64() * 1e3),
                    Err(e) => println!("{e}"),
                }
            }
            times.sort_by(f64::total_cmp);
            let (Some(worst), count) = (times.last(), times.len()) else { continue };
            let middle = times[count / 2];
            println!(
                "bmf, 10000 users of 8 resources, {name} demands, {limited} limited: {middle:.1} ms, at most {worst:.1} ms, {count} of 15"
            );
        }
    }
}

fn convergence() {
    let mut random = Random(3);
    for (name, demands) in [("even", Demands::Even), ("uneven", Demands::Uneven), ("tied", Demands::Sixteenths)] {
        for limited in [0.0, 0.3] {
            for (n, tries) in [(4, 1000), (10, 1000), (100, 300), (1000, 100), (4000, 20)] {
                let failed: Vec<usize> = (1..=8)
                    .map(|m| {
                        let failed =
                            |_: &usize| bmf_by_iteration(&problem(&mut random, n, m, demands, limited)).is_err();
                        (0..tries).filter(failed).count()
                    })
                    .collect();
                println!(
                    "{name} demands, {limited} limited, {n} users: failed of {tries} for 1 to 8 resources {failed:?}"
                );
            }
        }
    }
}
