//! Worked examples with exact answers, from the papers and corrections of them.

#![allow(clippy::unwrap_used)]

use evenhand_mechanisms::{Allocation, Mechanism, MechanismOptions, Problem, User, mechanism_named};
use evenhand_model::{Quantity, Rational};

fn q(text: &str) -> Rational {
    Quantity::parse(text).unwrap().exact().clone()
}

fn row(text: &str) -> Vec<Rational> {
    text.split_whitespace().map(q).collect()
}

/// Creates users by their demands, in units of `capacity`.
fn problem(capacity: &str, demands: &[&str]) -> Vec<User<Rational>> {
    let capacity = row(capacity);
    let share = |d: &&str| row(d).iter().zip(&capacity).map(|(d, c)| d / c).collect::<Vec<_>>();
    demands.iter().map(|d| User::new(share(d))).collect()
}

fn divide(name: &str, users: Vec<User<Rational>>) -> Allocation<Rational> {
    let problem = Problem::new(users[0].demand.len(), users).unwrap();
    let mechanism: &dyn Mechanism = mechanism_named(name).unwrap();
    mechanism.divide_exact(&problem, &MechanismOptions::default()).unwrap()
}

#[test]
fn the_drf_papers_example() {
    let users = problem("9 18", &["1 4", "3 1"]);
    assert_eq!(divide("drf", users.clone()).tasks, row("3 2"));
    assert_eq!(divide("drf", users.clone()).level, Some(q("2/3")));
    assert_eq!(divide("asset", users.clone()).tasks, row("63/25 54/25"));
    let limited = vec![users[0].clone().limit(q("2")), users[1].clone()];
    assert_eq!(divide("drf", limited).tasks, row("2 7/3"));
    let weighted = vec![users[0].clone().weight(q("2")), users[1].clone()];
    assert_eq!(divide("drf", weighted.clone()).tasks, row("54/13 18/13"));
    assert_eq!(divide("drf", weighted).level, Some(q("6/13")));
}

#[test]
fn drf_continues_where_demands_are_zero() {
    assert_eq!(divide("drf", problem("1 1", &["1 0", "1/2 1", "0 1"])).tasks, row("3/4 1/2 1/2"));
    assert_eq!(divide("drf", problem("1 1", &["1 0", "1 1", "0 1/2", "0 1"])).tasks, row("2/3 1/3 2/3 1/3"));
}

#[test]
fn asset_fairness_gives_less_than_an_equal_split() {
    assert_eq!(divide("asset", problem("30 30", &["1 3", "1 1"])).tasks, row("6 12"));
}

#[test]
fn sdrf_equation_5() {
    let users = |commitments: [&str; 3]| -> Vec<User<Rational>> {
        let users = problem("1 1", &["0.6 0.1", "0.2 0.8", "0.3 0.3"]).into_iter().zip(commitments);
        users.map(|(u, c)| u.limit(q("1")).commitment(row(c))).collect()
    };
    // Tasks: the dominant share over the dominant demand.
    let free = divide("sdrf", users(["0 0", "0 0", "0 0"]));
    assert_eq!(
        (free.tasks, free.level),
        (vec![q("14/25") / q("0.6"), q("14/25") / q("0.8"), q("1")], Some(q("14/25")))
    );
    let committed = divide("sdrf", users(["1/5 1/10", "0 0", "0 1/20"]));
    let expected = vec![q("3/7") / q("0.6"), q("22/35") / q("0.8"), q("1")];
    assert_eq!((committed.tasks, committed.level), (expected, Some(q("22/35"))));
    let weighted = problem("1 1", &["1 1/2", "1/2 1"]);
    let weighted = vec![
        weighted[0].clone().weight(q("2/3")).limit(q("1")).commitment(row("1/10 0")),
        weighted[1].clone().weight(q("1/3")).limit(q("1")),
    ];
    let weighted = divide("sdrf", weighted);
    assert_eq!((weighted.tasks, weighted.level), (row("39/50 11/25"), Some(q("33/25"))));
}

#[test]
fn one_resource_with_commitments() {
    let users = |commitments: [&str; 4]| -> Vec<User<Rational>> {
        let users = problem("1", &["1/2", "3/20", "1/5", "3/5"]).into_iter().zip(commitments);
        users.map(|(u, c)| u.limit(q("1")).commitment(row(c))).collect()
    };
    let held = |tasks: Vec<Rational>| -> Vec<Rational> {
        tasks.into_iter().zip(row("1/2 3/20 1/5 3/5")).map(|(x, d)| x * d).collect()
    };
    assert_eq!(held(divide("sdrf", users(["0"; 4])).tasks), row("13/40 3/20 1/5 13/40"));
    assert_eq!(held(divide("sdrf", users(["1/10", "0", "1/4", "0"])).tasks), row("3/10 3/20 3/20 2/5"));
    assert_eq!(held(divide("max-min", users(["0"; 4])).tasks), row("13/40 3/20 1/5 13/40"));
}
