//! What the papers state and cannot hold, each shown: docs/errata.md names these tests.

#![allow(clippy::unwrap_used)]

use evenhand_mechanisms::{Mechanism, Options, Problem, Sdrf, User};

/// Paper 001, Proposition 3: SDRF is said to be strategy-proof in the repeated game, whatever the users'
/// discounts. Where demands vary over time it is not: utility is measured relative to the demand of the
/// moment, so it pays to spare one's standing for when a share is worth more.
#[test]
fn stateful_drf_rewards_a_lie_in_the_repeated_game() {
    // Four users of one resource. At t = 0 user 0 wants all of it and nobody else wants any; from then
    // on all want 3/10.
    let utility = |delta: f64, discount: f64, declared_at_0: f64| -> f64 {
        let mut commitments = [0.0; 4];
        let (mut total, mut factor) = (0.0, 1.0 - discount);
        for t in 0..5000 {
            let wanted = |i: usize| match (t, i) {
                (0, 0) => declared_at_0,
                (0, _) => 0.0,
                _ => 0.3,
            };
            let users = (0..4).map(|i| User::new([1.0]).limit(wanted(i)).commitment([commitments[i]]));
            let held = Sdrf.divide(&Problem::new(1, users).unwrap(), &Options::default()).unwrap().tasks;
            let true_demand = if t == 0 { 1.0 } else { 0.3 };
            total += factor * (held[0] / true_demand).min(1.0);
            factor *= discount;
            for (c, o) in commitments.iter_mut().zip(&held) {
                // Causal form of Eq. 3: over-use now is a commitment from the next instant on.
                *c = delta * *c + (1.0 - delta) * (o - 0.25).max(0.0);
            }
        }
        total
    };
    let cases = [(0.9, 0.9, 0.770588, 0.775), (0.5, 0.9, 0.755330, 0.775), (0.9, 0.99, 0.821121, 0.8275)];
    for (delta, discount, truth, lie) in cases {
        let (honest, lying) = (utility(delta, discount, 1.0), utility(delta, discount, 0.25));
        assert!((honest - truth).abs() < 1e-6 && (lying - lie).abs() < 1e-6, "{delta} {discount}: {honest} {lying}");
        assert!(lying > honest);
    }
}

/// Paper 001, Eq. 3 and 6: in the causal form, over-use now counts from the next instant on, and the
/// exponential of Eq. 6 is not an approximation of it but goes through all its points.
#[test]
fn the_causal_recursion_is_equation_6_at_every_grid_point() {
    let (delta, overuse, start) = (0.97_f64, 0.4, 0.1);
    let tau = -1.0 / delta.ln();
    let mut commitment = start;
    for step in 0..200 {
        let closed = overuse + (start - overuse) * (-f64::from(step) / tau).exp();
        assert!((commitment - closed).abs() < 1e-13, "{step}");
        commitment = delta * commitment + (1.0 - delta) * overuse;
    }
}

/// Paper 001, Eq. 4 and 5: "max x" has no maximum if everybody can have all he wants.
#[test]
fn the_water_level_is_unbounded_if_all_are_satisfied() {
    let problem = Problem::new(1, [User::new([1.0]).limit(0.25), User::new([1.0]).limit(0.5)]).unwrap();
    let given = Sdrf.divide(&problem, &Options::default()).unwrap();
    assert_eq!((given.tasks, given.level), (vec![0.25, 0.5], None));
}

/// Paper 001, abstract: nobody would benefit from an equal split. Who used more before would.
#[test]
fn who_used_more_before_gets_less_than_an_equal_split() {
    let problem = Problem::new(1, [User::new([1.0]).commitment([0.2]), User::new([1.0])]).unwrap();
    let given = Sdrf.divide(&problem, &Options::default()).unwrap();
    assert!((given.tasks[0] - 0.4).abs() < 1e-12 && (given.tasks[1] - 0.6).abs() < 1e-12);
}

/// Paper 001, section 7: 22,718 events in 32 million tasks are said to be about 7 in 1,000 tasks; they
/// are 0.7. The other figure of that sentence is right.
#[test]
fn events_per_task_are_ten_times_fewer_than_printed() {
    let per_task = |events: f64| events / 32e6;
    assert!((per_task(22_718.0) * 1000.0 - 0.71).abs() < 0.01);
    assert!((per_task(5_094_167.0) * 10.0 - 1.6).abs() < 0.01);
}
