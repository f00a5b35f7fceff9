//! Worked examples of markets, bottlenecks and complaints, with answers from papers or by hand.

#![allow(clippy::unwrap_used)]

use evenhand_mechanisms::{
    Account, AccountTree, Allocation, Bbf, Ceei, EnvyFree, Feasible, Finding, Measure, Mechanism, MechanismError,
    MechanismOptions, NoJustifiedComplaint, ParetoEfficient, Problem, Property, User,
};
use evenhand_model::{Quantity, Rational};

fn q(text: &str) -> Rational {
    Quantity::parse(text).unwrap().exact().clone()
}

fn row(text: &str) -> Vec<Rational> {
    text.split_whitespace().map(q).collect()
}

fn users(demands: &[&str]) -> Vec<User<Rational>> {
    demands.iter().map(|d| User::new(row(d))).collect()
}

fn problem(users: Vec<User<Rational>>) -> Problem<Rational> {
    Problem::new(users[0].demand.len(), users).unwrap()
}

fn market(problem: &Problem<Rational>) -> Allocation<f64> {
    Ceei.divide(&problem.to_f64().unwrap(), &MechanismOptions::default()).unwrap()
}

fn exact(problem: &Problem<Rational>) -> Vec<Rational> {
    Bbf.divide_exact(problem, &MechanismOptions::default()).unwrap().tasks
}

fn complaints(problem: &Problem<Rational>, tasks: &str) -> Vec<Finding<Rational>> {
    NoJustifiedComplaint.findings_exact(problem, &row(tasks), &Rational::ZERO)
}

#[track_caller]
fn near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance * e.abs().max(1e-9), "{found:?}, expected {expected:?}");
    }
}

/// The DRF paper's example in section 4.2.
#[test]
fn the_drf_papers_market() {
    let problem = problem(users(&["1/9 4/18", "3/9 1/18"]));
    let given = market(&problem);
    near(&given.tasks, &[45.0 / 11.0, 18.0 / 11.0], 1e-12);
    // Both spend a half: 45/11 (p/9 + 2q/9) = 18/11 (p/3 + q/18) = 1/2.
    near(&given.prices, &[0.9, 0.1], 1e-12);
    assert!(given.duality_gap.unwrap() < 1e-13);
}

/// The equilibrium is irrational, the best point of its pattern is not.
#[test]
fn an_irrational_equilibrium() {
    let problem = problem(users(&["1 1/4", "1 1/2", "1/4 1"]));
    let given = market(&problem);
    let p = (13.0_f64 / 27.0).sqrt();
    near(&given.prices, &[p, 1.0 - p], 1e-12);
    let third = 4.0 / 3.0;
    near(&given.tasks, &[third / (3.0 * p + 1.0), third / 2.0 / (p + 1.0), third / (4.0 - 3.0 * p)], 1e-12);
    near(&given.tasks, &[0.432666400, 0.393571715, 0.695047543], 2e-9);
    assert_eq!(exact(&problem), row("22/45 1/3 32/45"));
    let refused = Ceei.divide_exact(&problem, &MechanismOptions::default());
    assert!(matches!(refused, Err(MechanismError::IrrationalAnswer { mechanism: "ceei", .. })));
}

/// Allocations without justified complaints are not unique, and not all are envy-free.
#[test]
fn allocations_without_complaints_are_many() {
    let problem = problem(users(&["1", "1", "1/10"]).into_iter().map(|u| u.limit(q("1"))).collect());
    for tasks in ["1/2 2/5 1", "9/20 9/20 1"] {
        assert_eq!(complaints(&problem, tasks), []);
    }
    let envy = |tasks| EnvyFree.findings_exact(&problem, &row(tasks), &Rational::ZERO);
    let of_1 = &envy("1/2 2/5 1")[0];
    assert_eq!((of_1.who, of_1.against, &of_1.has, &of_1.due), (Some(1), Some(0), &q("2/5"), &q("1/2")));
    assert_eq!(envy("1/2 2/5 1").len(), 1);
    assert_eq!(envy("9/20 9/20 1"), []);
    // All points have the largest sum of shares; then the worst-off user is best off.
    assert_eq!(exact(&problem), row("9/20 9/20 1"));
}

#[test]
fn complaints_name_user_and_resource() {
    let problem = problem(users(&["1 1/4", "1 1/2", "1/4 1"]));
    let complaint = |who, on, has: &str| Finding {
        property: "no_justified_complaint",
        who: Some(who),
        against: None,
        on: Some(on),
        has: q(has),
        due: q("1/3"),
        measure: Measure::Share,
    };
    // Only the first resource is saturated. User 2 holds enough, but of the other.
    assert_eq!(complaints(&problem, "6/10 3/10 4/10"), [complaint(1, 0, "3/10"), complaint(2, 0, "1/10")]);
    // Both are: every user is measured where it holds most.
    assert_eq!(complaints(&problem, "4/5 0 4/5"), [complaint(1, 0, "0")]);
    // Nothing is saturated: every user complains, even about a share that is larger than due.
    assert_eq!(
        complaints(&problem, "1/2 1/10 1/2"),
        [complaint(0, 0, "1/2"), complaint(1, 0, "1/10"), complaint(2, 1, "1/2")]
    );
    // A tolerance forgives a small lack of both kinds.
    let almost = row("22/45 1/3 31/45");
    assert_eq!(NoJustifiedComplaint.findings_exact(&problem, &almost, &Rational::ZERO).len(), 3);
    assert_eq!(NoJustifiedComplaint.findings_exact(&problem, &almost, &q("1/20")), []);
    // Entitlements follow weights.
    let mut weighted = users(&["1", "1"]);
    weighted[0].weight = q("3");
    let weighted = self::problem(weighted);
    assert_eq!(complaints(&weighted, "3/4 1/4"), []);
    let found = complaints(&weighted, "1/2 1/2");
    assert_eq!((found.len(), found[0].who, &found[0].due), (1, Some(0), &q("3/4")));
}

/// Zeldes and Feitelson (2013), Figure 11: four pairs in a ring, each using three of four resources.
#[test]
fn the_ring_has_seven_solutions() {
    let demands: Vec<Vec<Rational>> = (0..8)
        .map(|client| (0..4).map(|r| if (r + 4 - client / 2) % 4 < 3 { q("1") } else { q("0") }).collect())
        .collect();
    let ring = problem(demands.iter().map(|d| User::new(d.clone()).limit(q("1/3"))).collect());
    let mut passed = 0;
    for small in 0..16_u32 {
        let tasks: Vec<Rational> =
            (0..8).map(|client| if small >> (client / 2) & 1 == 1 { q("1/8") } else { q("3/16") }).collect();
        let is_feasible = Feasible.findings_exact(&ring, &tasks, &Rational::ZERO).is_empty();
        let is_quiet = NoJustifiedComplaint.findings_exact(&ring, &tasks, &Rational::ZERO).is_empty();
        assert_eq!(is_feasible && is_quiet, small.count_ones() == 2, "{tasks:?}");
        passed += u32::from(is_feasible && is_quiet);
        if small.count_ones() == 2 {
            let mut loads = ring.loads(&tasks);
            loads.sort();
            assert_eq!(loads, row("7/8 7/8 1 1"));
        }
    }
    assert_eq!(passed, 6);
    assert_eq!(complaints(&ring, "1/6 1/6 1/6 1/6 1/6 1/6 1/6 1/6"), []);
    near(&market(&ring).tasks, &[1.0 / 6.0; 8], 1e-12);
    // All four resources have a price; of the points with equal sums, that where all are equal.
    let point = exact(&ring);
    assert_eq!(NoJustifiedComplaint.findings_exact(&ring, &point, &Rational::ZERO), []);
    assert_eq!(ring.loads(&point), row("1 1 1 1"));
    assert_eq!(point, row("1/6 1/6 1/6 1/6 1/6 1/6 1/6 1/6"));
}

/// A misreport can be profitable in a market.
#[test]
fn a_profitable_misreport() {
    let truth = market(&problem(users(&["1/4 1", "1 1/2"]))).tasks;
    let misreport = market(&problem(users(&["3/4 1", "1 1/2"]))).tasks;
    near(&truth, &[4.0 / 7.0, 6.0 / 7.0], 1e-12);
    // With the true demand (1/4, 1), what x tasks of (3/4, 1) hold runs x tasks.
    near(&misreport[..1], &[2.0 / 3.0], 1e-12);
}

/// Zeldes and Feitelson (2013), Figure 7, as an allocation at one instant: the market differs from the paper's outcome, and
/// neither gives rise to complaints.
#[test]
fn figure_7() {
    let weights = row("2/5 2/5 1/5");
    let users = users(&["1 0", "0 1", "1 1"]).into_iter().zip(weights);
    let problem = problem(users.map(|(u, w)| u.weight(w).limit(q("1"))).collect());
    let given = market(&problem);
    near(&given.tasks, &[0.8, 0.8, 0.2], 1e-12);
    near(&given.prices, &[0.5, 0.5], 1e-12);
    for tasks in ["4/5 4/5 1/5", "2/3 2/3 1/3"] {
        assert_eq!(complaints(&problem, tasks), []);
    }
    assert_eq!(complaints(&problem, "9/10 9/10 1/10").len(), 1);
    assert_eq!(exact(&problem), row("4/5 4/5 1/5"));
}

#[test]
fn limits() {
    // Every user can have all it wants; then all prices are 0.
    let some = users(&["1 1/2", "1/2 1"]).into_iter().map(|u| u.limit(q("1/4"))).collect();
    let some = problem(some);
    let given = market(&some);
    assert_eq!((given.tasks, given.prices), (vec![0.25, 0.25], vec![0.0, 0.0]));
    assert_eq!(exact(&some), row("1/4 1/4"));
    // All that is wanted fits exactly.
    let just: Vec<User<Rational>> = users(&["1/3 1/2", "2/3 1/2"]).into_iter().map(|u| u.limit(q("1"))).collect();
    near(&market(&problem(just.clone())).tasks, &[1.0, 1.0], 1e-12);
    assert_eq!(exact(&problem(just)), row("1 1"));
    // A user who wants nothing does not take part, whatever its weight.
    let mut out = users(&["1", "1", "1"]);
    out[1] = out[1].clone().limit(q("0")).weight(q("100"));
    let out = problem(out);
    near(&market(&out).tasks, &[0.5, 0.0, 0.5], 1e-12);
    assert_eq!(exact(&out)[1], q("0"));
    assert_eq!(NoJustifiedComplaint.findings_exact(&out, &exact(&out), &Rational::ZERO), []);
    // No users.
    let empty = Problem::<Rational>::new(2, []).unwrap();
    assert!(exact(&empty).is_empty());
    let given = market(&empty);
    assert_eq!((given.tasks, given.prices), (vec![], vec![0.0, 0.0]));
}

#[test]
fn unsupported_problems_are_refused() {
    let options = MechanismOptions::default();
    let small = problem(vec![User::new(vec![q("1") / q("10000000000").pow(100)])]);
    assert!(matches!(Bbf.divide_exact(&small, &options), Err(MechanismError::OutOfRange { mechanism: "bbf", .. })));
    let account = Account { parent: None, weight: q("1") };
    let tree = AccountTree::new(vec![account], vec![Some(0), None]).unwrap();
    let tree = problem(users(&["1", "1"])).with_accounts(tree).unwrap();
    let refused = |found| assert!(matches!(found, Err(MechanismError::AccountsUnsupported { .. })));
    refused(Ceei.divide_exact(&tree, &options));
    refused(Bbf.divide_exact(&tree, &options));
    for mechanism in [&Ceei as &dyn Mechanism, &Bbf] {
        let float = mechanism.divide(&tree.to_f64().unwrap(), &options);
        assert!(matches!(float, Err(MechanismError::AccountsUnsupported { .. })));
    }
    let tiny = Problem::new(1, [User::new([1e-320])]).unwrap();
    assert!(matches!(Ceei.divide(&tiny, &options), Err(MechanismError::OutOfRange { mechanism: "ceei", .. })));
    let apart = Problem::new(1, [User::new([1.0]).weight(1e-300), User::new([1.0]).weight(1e300)]).unwrap();
    assert!(matches!(Bbf.divide(&apart, &options), Err(MechanismError::OutOfRange { mechanism: "bbf", .. })));
}

/// Weights of 1 to 1e12, each alone on a resource and all together on another.
#[test]
fn prices_of_all_magnitudes() {
    let users = (0..5).map(|i| {
        let mut demand = vec![0.0; 6];
        demand[i] = 1.0;
        demand[5] = 1e-6;
        User::new(demand).weight(10_f64.powi(3 * i as i32))
    });
    let problem = Problem::new(6, users).unwrap();
    let given = Bbf.divide(&problem, &MechanismOptions::default()).unwrap();
    near(&given.tasks, &[1.0; 5], 1e-12);
    for i in 0..5 {
        near(&given.prices[i..=i], &[problem.entitlement(i)], 1e-11);
    }
    assert_eq!(given.prices[5], 0.0);
    assert!(ParetoEfficient.findings(&problem, &given.tasks, 1e-12).is_empty());
}
