//! Bottleneck max fairness and bottleneck-aware allocation.

#![allow(clippy::unwrap_used)]

mod baa;
mod bmf;
mod random_problems;
mod worked_examples;

use evenhand_mechanisms::{
    Allocation, Finding, Mechanism, MechanismError, MechanismOptions, Problem, User, mechanism_named, property_named,
};
use evenhand_model::{Quantity, Rational};

fn q(text: &str) -> Rational {
    Quantity::parse(text).unwrap().exact().clone()
}

fn row(text: &str) -> Vec<Rational> {
    text.split_whitespace().map(q).collect()
}

/// Creates users by their demands, in units of `capacity`.
fn users(capacity: &str, demands: &[&str]) -> Vec<User<Rational>> {
    let capacity = row(capacity);
    let share = |d: &&str| row(d).iter().zip(&capacity).map(|(d, c)| d / c).collect::<Vec<_>>();
    demands.iter().map(|d| User::new(share(d))).collect()
}

fn problem(users: Vec<User<Rational>>) -> Problem<Rational> {
    Problem::new(users[0].demand.len(), users).unwrap()
}

fn try_divide(
    name: &str,
    problem: &Problem<Rational>,
    options: MechanismOptions,
) -> Result<Allocation<Rational>, MechanismError> {
    let mechanism: &dyn Mechanism = mechanism_named(name).unwrap();
    mechanism.divide_exact(problem, &options)
}

fn divide(name: &str, problem: &Problem<Rational>) -> Allocation<Rational> {
    try_divide(name, problem, MechanismOptions::default()).unwrap()
}

/// Returns the violations, in exact numbers and without tolerance.
fn findings(property: &str, problem: &Problem<Rational>, tasks: &[Rational]) -> Vec<Finding<Rational>> {
    property_named(property).unwrap().findings_exact(problem, tasks, &Rational::ZERO)
}

fn holds(property: &str, problem: &Problem<Rational>, tasks: &[Rational]) {
    let found = findings(property, problem, tasks);
    assert!(found.is_empty(), "{property}: {found:?}\nof {tasks:?}\nin {problem:?}");
}

fn near(float: f64, exact: &Rational) -> bool {
    let exact = evenhand_model::to_f64(exact);
    (float - exact).abs() <= 1e-9 * exact.abs().max(float.abs())
}
