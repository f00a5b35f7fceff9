//! The search for misreports finds none under strategy-proof mechanisms, and is deterministic.

#![allow(clippy::unwrap_used)]

use evenhand_mechanisms::{MechanismOptions, MisreportSearch, Problem, User, mechanism_named, search_misreports};

fn search(mechanism: &str, problem: &Problem<f64>, tries: u64) -> MisreportSearch {
    search_misreports(mechanism_named(mechanism).unwrap(), problem, &MechanismOptions::default(), 1, tries, None)
        .unwrap()
}

#[test]
fn drf_and_sdrf_have_no_profitable_misreport() {
    let users = [User::new([0.1, 0.3]).limit(2.0), User::new([0.2, 0.0]), User::new([0.3, 0.05]).weight(3.0)];
    let problem = Problem::new(2, users).unwrap();
    assert_eq!(search("drf", &problem, 1000).best, None);
    assert_eq!(search("sdrf", &problem, 1000).best, None);
}

#[test]
fn equal_seeds_give_equal_results() {
    let problem = Problem::new(2, [User::new([0.1, 0.3]), User::new([0.2, 0.1])]).unwrap();
    let (first, second) = (search("drf", &problem, 100), search("drf", &problem, 100));
    assert_eq!(first, second);
    assert_eq!((first.tried, first.refused), (200, 0));
}
