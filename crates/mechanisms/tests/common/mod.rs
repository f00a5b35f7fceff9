//! Random problems of the kinds that break mechanisms: ties, zeros, equal users, limits at breakpoints.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use evenhand_mechanisms::{
    Account, AccountTree, Allocation, Mechanism, MechanismOptions, Problem, User, mechanism_named,
};
use evenhand_model::Rational;
use proptest::prelude::*;

pub fn ratio(a: u64, b: u64) -> Rational {
    Rational::from(a) / Rational::from(b)
}

pub fn mechanism(name: &str) -> &'static dyn Mechanism {
    mechanism_named(name).unwrap()
}

pub fn exact(name: &str, problem: &Problem<Rational>) -> Allocation<Rational> {
    mechanism(name).divide_exact(problem, &MechanismOptions::default()).unwrap()
}

pub fn float(name: &str, problem: &Problem<f64>) -> Allocation<f64> {
    mechanism(name).divide(problem, &MechanismOptions::default()).unwrap()
}

pub fn users_of(problem: &Problem<Rational>) -> Vec<User<Rational>> {
    (0..problem.users()).map(|i| problem.user(i)).collect()
}

/// Returns the dominant share that a user has.
pub fn dominant_share(problem: &Problem<Rational>, tasks: &[Rational], user: usize) -> Rational {
    problem.dominant_demand(user) * &tasks[user]
}

/// Kind of random problem.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub users: usize,
    pub width: usize,
    pub zeros: bool,
    pub limits: bool,
    pub weights: bool,
    pub commitments: bool,
}

impl Kind {
    pub const ANY: Kind = Kind { users: 8, width: 4, zeros: true, limits: true, weights: true, commitments: true };
}

fn row(kind: Kind, width: usize) -> BoxedStrategy<Vec<Rational>> {
    let demand = if kind.zeros { prop_oneof![1 => Just(0_u64), 4 => 1..=10_u64].boxed() } else { (1..=10_u64).boxed() };
    proptest::collection::vec(demand, width)
        .prop_map(|mut row| {
            if row.iter().all(|d| *d == 0) {
                row[0] = 1;
            }
            row.into_iter().map(|d| ratio(d, 10)).collect()
        })
        .boxed()
}

fn user(kind: Kind, width: usize) -> BoxedStrategy<User<Rational>> {
    let limit = match kind.limits {
        true => prop_oneof![
            3 => Just(None),
            3 => (1..=10_u64).prop_map(|k| Some(ratio(k, 10))),
            1 => Just(Some(Rational::ZERO)),
            1 => (1..=5_u64).prop_map(|k| Some(Rational::from(k)))
        ]
        .boxed(),
        false => Just(None).boxed(),
    };
    let weight = if kind.weights { (1..=8_u64).boxed() } else { Just(4_u64).boxed() };
    let commitment = match kind.commitments {
        true => prop_oneof![
            1 => Just(Vec::new()),
            2 => proptest::collection::vec((0..=6_u64).prop_map(|k| ratio(k, 20)), width)
        ]
        .boxed(),
        false => Just(Vec::new()).boxed(),
    };
    (row(kind, width), limit, weight, commitment)
        .prop_map(|(demand, limit, weight, commitment)| User { weight: ratio(weight, 4), demand, limit, commitment })
        .boxed()
}

/// Generates problems with equal users among them; with limits, also some whose limit is exactly what they would get
/// without one (under the mechanism `at_break`).
pub fn problems(kind: Kind, at_break: &'static str) -> BoxedStrategy<Problem<Rational>> {
    let width = 1..=kind.width;
    width
        .prop_flat_map(move |width| {
            let users = proptest::collection::vec(user(kind, width), 1..=kind.users);
            (users, proptest::collection::vec(0..6_u8, kind.users)).prop_map(move |(mut users, fate)| {
                for i in 1..users.len() {
                    if fate[i] == 0 {
                        users[i] = users[i - 1].clone();
                    }
                }
                let drawn = Problem::new(width, users.clone()).unwrap();
                if kind.limits && fate.contains(&1) {
                    let unlimited: Vec<_> = users.iter().cloned().map(|u| User { limit: None, ..u }).collect();
                    let tasks = exact(at_break, &Problem::new(width, unlimited).unwrap()).tasks;
                    for i in 0..users.len() {
                        if fate[i] == 1 {
                            users[i].limit = Some(tasks[i].clone());
                        }
                    }
                    return Problem::new(width, users).unwrap();
                }
                drawn
            })
        })
        .boxed()
}

/// Generates problems with ratios of up to 1e18 between demands, weights and limits; all numbers are doubles.
pub fn extreme(users: usize, width: usize) -> BoxedStrategy<Problem<f64>> {
    let number = || (1.0..10.0_f64, -9..=0_i32).prop_map(|(m, e)| m * 10_f64.powi(e));
    let large = || (1.0..10.0_f64, -9..=8_i32).prop_map(|(m, e)| m * 10_f64.powi(e));
    (1..=width)
        .prop_flat_map(move |width| {
            let demand = proptest::collection::vec(prop_oneof![1 => Just(0.0), 4 => number()], width);
            let user = (demand, large(), proptest::option::of(large()));
            proptest::collection::vec(user, 1..=users).prop_map(move |users| {
                let users = users.into_iter().map(|(mut demand, weight, limit)| {
                    if demand.iter().all(|d| *d == 0.0) {
                        demand[0] = 1.0;
                    }
                    User { weight, demand, limit, commitment: Vec::new() }
                });
                Problem::new(width, users).unwrap()
            })
        })
        .boxed()
}

/// Places the users of problems in trees: up to six accounts, some without users, up to six deep.
pub fn with_trees(problems: BoxedStrategy<Problem<Rational>>) -> BoxedStrategy<Problem<Rational>> {
    let accounts = proptest::collection::vec((0..8_usize, 1..=8_u64), 0..=6);
    let user_accounts = proptest::collection::vec(0..8_usize, 16);
    (problems, accounts, user_accounts)
        .prop_map(|(problem, accounts, user_accounts)| {
            let one_of = |draw: usize, of: usize| (draw > 1 && of > 0).then(|| draw % of.max(1));
            let count = accounts.len();
            let accounts = accounts.into_iter().enumerate();
            let accounts =
                accounts.map(|(a, (parent, weight))| Account { parent: one_of(parent, a), weight: ratio(weight, 4) });
            let tree = AccountTree::new(
                accounts.collect(),
                (0..problem.users()).map(|u| one_of(user_accounts[u], count)).collect(),
            );
            problem.with_accounts(tree.unwrap()).unwrap()
        })
        .boxed()
}

/// Returns whether two numbers agree within 1e-9 of the larger.
pub fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Asserts that results in `f64` are within 1e-9 of the exact ones. A user who starts to rise just where the level ends
/// (`sdrf`) has the difference of two equal numbers: a dominant share of up to 1e-14 counts as 0.
pub fn assert_near(problem: &Problem<f64>, float: &[f64], exact: &[Rational]) {
    for (i, (x, y)) in float.iter().zip(exact).enumerate() {
        let is_zero = problem.commitment(i).is_some() && (y.is_zero() && x * problem.dominant_demand(i) < 1e-14);
        assert!(is_zero || near(*x, evenhand_model::to_f64(y)), "user {i}: {x} in f64, exactly {y}");
    }
}
