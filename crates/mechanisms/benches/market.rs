//! Speed of the market mechanisms: milliseconds a problem on one core, median of runs.
//!
//! `cargo bench -p evenhand-mechanisms --bench market`

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use evenhand_mechanisms::{
    Mechanism, MechanismOptions, NoJustifiedComplaint, Problem, Property, User, mechanism_named,
};
use evenhand_model::Rational;

const RUNS: usize = 11;

fn main() {
    println!("{:>8} {:>7} {:>10} {:>10} {:>16} {:>10}", "", "users", "resources", "demands", "median ms", "gap");
    for (users, width) in [(1_000, 8), (10_000, 8), (100_000, 4)] {
        for kind in [Kind::All, Kind::Limited, Kind::Far] {
            let problem = problem(users, width, kind, 1);
            for name in ["ceei", "bbf"] {
                let mechanism = mechanism(name);
                let mut gap = None;
                let median = median(RUNS, || {
                    let given = mechanism.divide(&problem, &MechanismOptions::default()).expect("a certified answer");
                    // bbf has checked its answer; ceei is checked here, so that both certify it.
                    if name == "ceei" {
                        assert!(NoJustifiedComplaint.findings(&problem, &given.tasks, 1e-9).is_empty());
                    }
                    gap = black_box(given).duality_gap;
                });
                let gap = gap.unwrap_or(f64::NAN);
                println!("{name:>8} {users:>7} {width:>10} {:>10} {median:>16.3} {gap:>10.1e}", kind.name());
            }
        }
    }
    for (users, width) in [(100, 4), (300, 4), (100, 8)] {
        for kind in [Kind::All, Kind::Limited] {
            let problem = exact(&problem(users, width, kind, 2));
            let median = median(3, || {
                black_box(
                    mechanism("bbf").divide_exact(&problem, &MechanismOptions::default()).expect("an exact point"),
                );
            });
            println!("{:>8} {users:>7} {width:>10} {:>10} {median:>16.3}", "exact", kind.name());
        }
    }
}

fn mechanism(name: &str) -> &'static dyn Mechanism {
    mechanism_named(name).expect("it is registered")
}

fn median(runs: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}

#[derive(Clone, Copy)]
enum Kind {
    /// Every user demands some of every resource, without limits.
    All,
    /// A third of the demands are 0; half of the users have limits, about at what they get.
    Limited,
    /// Demands over nine orders of magnitude, weights over six.
    Far,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::All => "all",
            Kind::Limited => "limited",
            Kind::Far => "far apart",
        }
    }
}

fn problem(users: usize, width: usize, kind: Kind, seed: u64) -> Problem<f64> {
    let mut state = seed;
    // splitmix64: the same problems on every machine, without a dependency.
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let users_made = (0..users).map(|_| {
        let mut demand: Vec<f64> = (0..width)
            .map(|_| match kind {
                Kind::All => 0.01 + next(),
                Kind::Limited if next() < 1.0 / 3.0 => 0.0,
                Kind::Limited => (1.0 + (next() * 10.0).floor()) / 10.0,
                Kind::Far => 10_f64.powf(9.0 * next() - 4.5),
            })
            .collect();
        if demand.iter().all(|d| *d == 0.0) {
            demand[0] = 0.5;
        }
        let user = User::new(demand);
        match kind {
            Kind::Limited if next() < 0.5 => user.limit(2.0 * next() / users as f64),
            Kind::Far => user.weight(10_f64.powf(6.0 * next())),
            _ => user,
        }
    });
    Problem::new(width, users_made).expect("a problem")
}

/// The same in fractions with small denominators, as people write them.
fn exact(problem: &Problem<f64>) -> Problem<Rational> {
    let thousandths = |x: f64| Rational::from_parts(((x * 1e3).ceil() as i64).into(), 1_000_u64.into());
    let users = (0..problem.users()).map(|i| {
        let user = User::new(problem.demand(i).iter().map(|d| thousandths(*d)).collect::<Vec<_>>());
        match problem.limit(i) {
            Some(most) => user.limit(thousandths(*most)),
            None => user,
        }
    });
    Problem::new(problem.resource_count(), users).expect("a problem")
}
