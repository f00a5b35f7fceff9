//! The mechanisms by progressive filling (`max-min`, `drf`, `sdrf`, `asset`) against an event sweep as reference model,
//! and their properties.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Kind, assert_near, dominant_share, exact, extreme, float, mechanism, problems, ratio, users_of};
use evenhand_mechanisms::{MechanismOptions, Problem, User, property_named, search_misreports};
use evenhand_model::Rational;
use evenhand_model::random::Stream;
use proptest::prelude::*;

/// Reference model: the level advances from event to event (a user starts, has all it wants, or a resource saturates),
/// each found by examining all users. Returns the tasks, and the last level at which a resource saturated that some
/// rising user demands.
fn sweep(name: &str, problem: &Problem<Rational>) -> (Vec<Rational>, Option<Rational>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Waiting,
        Rising,
        Stopped,
    }
    let users = users_of(problem);
    let measure = |u: &User<Rational>| match name {
        "asset" => u.demand.iter().fold(Rational::ZERO, |a, d| a + d),
        _ => u.demand.iter().max().unwrap().clone(),
    };
    // Tasks per level.
    let rate: Vec<Rational> = users.iter().map(|u| &u.weight / measure(u)).collect();
    let begin = |u: &User<Rational>| match name {
        "sdrf" => u.commitment.iter().max().cloned().unwrap_or(Rational::ZERO) / &u.weight,
        _ => Rational::ZERO,
    };
    let mut tasks = vec![Rational::ZERO; users.len()];
    let mut rest = vec![Rational::ONE; problem.resource_count()];
    let mut state = vec![State::Waiting; users.len()];
    let (mut level, mut last_full) = (Rational::ZERO, None);
    loop {
        for (i, user) in users.iter().enumerate() {
            if state[i] == State::Waiting && begin(user) <= level {
                state[i] = State::Rising;
            }
            if state[i] == State::Rising && user.limit.as_ref().is_some_and(|most| tasks[i] >= *most) {
                state[i] = State::Stopped;
            }
        }
        let mut slopes = vec![Rational::ZERO; problem.resource_count()];
        let mut steps = Vec::new();
        for (i, user) in users.iter().enumerate() {
            match state[i] {
                State::Stopped => {}
                State::Waiting => steps.push(begin(user) - &level),
                State::Rising => {
                    slopes.iter_mut().zip(&user.demand).for_each(|(s, d)| *s += d * &rate[i]);
                    steps.extend(user.limit.as_ref().map(|most| (most - &tasks[i]) / &rate[i]));
                }
            }
        }
        let rises = |r: &usize| !slopes[*r].is_zero();
        steps.extend((0..slopes.len()).filter(rises).map(|r| &rest[r] / &slopes[r]));
        let Some(step) = steps.into_iter().min() else { return (tasks, last_full) };
        level += &step;
        rest.iter_mut().zip(&slopes).for_each(|(left, s)| *left -= s * &step);
        let full: Vec<usize> = (0..rest.len()).filter(|r| rest[*r].is_zero()).collect();
        if full.iter().any(rises) {
            last_full = Some(level.clone());
        }
        for (i, user) in users.iter().enumerate() {
            if state[i] == State::Rising {
                tasks[i] += &rate[i] * &step;
            }
            if full.iter().any(|r| !user.demand[*r].is_zero()) {
                state[i] = State::Stopped;
            }
        }
    }
}

fn check_against_sweep(name: &str, problem: &Problem<Rational>) {
    let found = exact(name, problem);
    let (tasks, level) = sweep(name, problem);
    assert_eq!(found.tasks, tasks);
    assert_eq!(found.level, level);
    let doubles = problem.to_f64().unwrap();
    assert_near(&doubles, &float(name, &doubles).tasks, &tasks);
}

fn check(properties: &[&str], problem: &Problem<Rational>, tasks: &[Rational]) {
    for name in properties {
        let findings = property_named(name).unwrap().findings_exact(problem, tasks, &Rational::ZERO);
        assert!(findings.is_empty(), "{findings:?}");
    }
}

const ONE_RESOURCE: Kind = Kind { width: 1, commitments: false, ..Kind::ANY };
const POSITIVE: Kind = Kind { zeros: false, commitments: false, ..Kind::ANY };

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn drf_is_the_sweep(problem in problems(Kind::ANY, "drf")) {
        check_against_sweep("drf", &problem);
    }

    #[test]
    fn sdrf_is_the_sweep(problem in problems(Kind::ANY, "sdrf")) {
        check_against_sweep("sdrf", &problem);
    }

    #[test]
    fn asset_is_the_sweep(problem in problems(Kind::ANY, "asset")) {
        check_against_sweep("asset", &problem);
    }

    #[test]
    fn max_min_is_the_sweep_and_drf_of_one_resource(problem in problems(ONE_RESOURCE, "max-min")) {
        check_against_sweep("max-min", &problem);
        // Without commitments sdrf, and with one resource asset, are the same.
        for name in ["drf", "sdrf", "asset"] {
            prop_assert_eq!(exact(name, &problem).tasks, exact("max-min", &problem).tasks);
        }
    }

    #[test]
    fn many_users_take_the_same_way(problem in problems(Kind { users: 60, ..Kind::ANY }, "sdrf")) {
        check_against_sweep("sdrf", &problem);
        check_against_sweep("drf", &problem);
    }

    #[test]
    fn doubles_hold_extreme_ratios(problem in extreme(8, 4)) {
        let precise = problem.to_exact();
        for name in ["drf", "sdrf", "asset"] {
            let (tasks, _) = sweep(name, &precise);
            prop_assert_eq!(&exact(name, &precise).tasks, &tasks);
            assert_near(&problem, &float(name, &problem).tasks, &tasks);
        }
    }

    /// Feasibility, Pareto efficiency, sharing incentive and envy-freeness.
    #[test]
    fn drf_has_its_fairness_properties(problem in problems(Kind { commitments: false, ..Kind::ANY }, "drf")) {
        let tasks = exact("drf", &problem).tasks;
        check(&["feasible", "pareto", "sharing_incentive", "envy_free"], &problem, &tasks);
        let tasks = exact("asset", &problem).tasks;
        check(&["feasible", "pareto"], &problem, &tasks);
    }

    #[test]
    fn sdrf_has_its_fairness_properties(problem in problems(Kind { zeros: false, ..Kind::ANY }, "sdrf")) {
        let tasks = exact("sdrf", &problem).tasks;
        // The rest holds by the form of the answer.
        check(&["feasible", "pareto"], &problem, &tasks);
        // A user without commitment has its entitlement of every resource, or all it wants.
        for (i, x) in tasks.iter().enumerate() {
            if problem.commitment(i).is_none_or(|c| c.iter().all(Rational::is_zero)) {
                let due = problem.entitlement(i) / problem.dominant_demand(i);
                let due = problem.limit(i).map_or(due.clone(), |most| due.min(most.clone()));
                prop_assert!(*x >= due);
            }
        }
    }

    /// Without commitments, sdrf is drf.
    #[test]
    fn sdrf_without_commitments_is_drf(problem in problems(Kind { commitments: false, ..Kind::ANY }, "drf")) {
        prop_assert_eq!(exact("sdrf", &problem), exact("drf", &problem));
    }

    /// A user whose commitment grows by D gets no more, all others no less, and the level rises by at most D over its
    /// weight.
    #[test]
    fn a_commitment_benefits_the_other_users(
        problem in problems(Kind { zeros: false, ..Kind::ANY }, "sdrf"), who in 0..8_usize, more in 1..=10_u64
    ) {
        let who = who % problem.users();
        let mut users = users_of(&problem);
        let old = users[who].commitment.iter().max().cloned().unwrap_or(Rational::ZERO);
        users[who].commitment = vec![old + ratio(more, 20); problem.resource_count()];
        let weight = users[who].weight.clone();
        let changed = Problem::new(problem.resource_count(), users).unwrap();
        let (before, after) = (exact("sdrf", &problem), exact("sdrf", &changed));
        for i in 0..problem.users() {
            match i == who {
                true => prop_assert!(after.tasks[i] <= before.tasks[i]),
                false => prop_assert!(after.tasks[i] >= before.tasks[i]),
            }
        }
        if let (Some(before), Some(after)) = (before.level, after.level) {
            prop_assert!(after >= before && after - before <= ratio(more, 20) / weight);
        }
    }

    /// The unit of tasks does not matter. Those of resources cannot, since a problem is in shares of capacity.
    #[test]
    fn larger_tasks_are_fewer(problem in problems(Kind::ANY, "drf"), factors in proptest::collection::vec(1..=9_u64, 8)) {
        let mut users = users_of(&problem);
        for (user, f) in users.iter_mut().zip(&factors) {
            user.demand.iter_mut().for_each(|d| *d *= Rational::from(*f));
            user.limit = user.limit.take().map(|most| most / Rational::from(*f));
        }
        let scaled = Problem::new(problem.resource_count(), users).unwrap();
        for name in ["drf", "sdrf", "asset"] {
            let (before, after) = (exact(name, &problem), exact(name, &scaled));
            prop_assert_eq!(before.level, after.level);
            for (i, x) in before.tasks.into_iter().enumerate() {
                prop_assert_eq!(x / Rational::from(factors[i]), after.tasks[i].clone());
            }
        }
    }

    /// Neither the order of users and resources nor an unused resource matters.
    #[test]
    fn order_does_not_matter(
        (problem, order) in problems(Kind::ANY, "drf").prop_flat_map(|p| {
            let order = Just((0..p.users()).collect::<Vec<_>>()).prop_shuffle();
            (Just(p), order)
        }),
        turn in 0..4_usize,
    ) {
        let users = users_of(&problem);
        let permuted = order.iter().map(|i| {
            let mut user = users[*i].clone();
            let width = user.demand.len();
            user.demand.rotate_left(turn % width);
            user.demand.push(Rational::ZERO);
            if !user.commitment.is_empty() {
                user.commitment.rotate_left(turn % width);
                user.commitment.push(Rational::ZERO);
            }
            user
        });
        let permuted = Problem::new(problem.resource_count() + 1, permuted).unwrap();
        for name in ["drf", "sdrf", "asset"] {
            let (before, after) = (exact(name, &problem), exact(name, &permuted));
            prop_assert_eq!(before.level, after.level);
            for (place, i) in order.iter().enumerate() {
                prop_assert_eq!(&after.tasks[place], &before.tasks[*i]);
            }
        }
    }

    /// Equal users without limits are equivalent to one user with the sum of their weights.
    #[test]
    fn equal_users_are_one(problem in problems(Kind { limits: false, commitments: false, ..Kind::ANY }, "drf"), w in 1..=8_u64) {
        let mut users = users_of(&problem);
        let copy = User { weight: ratio(w, 4), ..users[0].clone() };
        users.push(copy.clone());
        let apart = Problem::new(problem.resource_count(), users.clone()).unwrap();
        users.pop();
        users[0].weight += copy.weight;
        let together = Problem::new(problem.resource_count(), users).unwrap();
        for name in ["drf", "asset"] {
            let (apart, together) = (exact(name, &apart), exact(name, &together));
            prop_assert_eq!(&apart.tasks[0] + apart.tasks.last().unwrap(), together.tasks[0].clone());
            prop_assert_eq!(&apart.tasks[1..problem.users()], &together.tasks[1..]);
        }
    }

    /// If every user demands some of every resource, no user loses when another leaves.
    #[test]
    fn no_user_loses_when_another_leaves(problem in problems(POSITIVE, "drf"), who in 0..8_usize) {
        prop_assume!(problem.users() > 1);
        let who = who % problem.users();
        let mut users = users_of(&problem);
        users.remove(who);
        let without = exact("drf", &Problem::new(problem.resource_count(), users).unwrap());
        let mut with = exact("drf", &problem);
        with.tasks.remove(who);
        prop_assert!(without.tasks.iter().zip(&with.tasks).all(|(without, with)| without >= with));
        if let (Some(without), Some(with)) = (without.level, with.level) {
            prop_assert!(without >= with);
        }
    }
}

/// Utilization and levels of the worked examples, beside the tasks in `worked_examples.rs`.
#[test]
fn worked_examples_to_the_last_resource() {
    let user = |cpu: (u64, u64), memory: (u64, u64)| User::new([ratio(cpu.0, cpu.1), ratio(memory.0, memory.1)]);
    let drf_paper = Problem::new(2, [user((1, 9), (4, 18)), user((3, 9), (1, 18))]).unwrap();
    let asset = exact("asset", &drf_paper);
    assert_eq!(asset.level, Some(ratio(21, 25)));
    assert_eq!(drf_paper.loads(&asset.tasks), [Rational::ONE, ratio(306, 25 * 18)]);

    // Asset fairness has no sharing incentive: the second has 12 of the 15 tasks half of everything gives.
    let unequal = Problem::new(2, [user((1, 30), (3, 30)), user((1, 30), (1, 30))]).unwrap();
    let tasks = exact("asset", &unequal).tasks;
    let findings = property_named("sharing_incentive").unwrap().findings_exact(&unequal, &tasks, &Rational::ZERO);
    assert_eq!(findings.iter().map(|f| (f.who, f.amount())).collect::<Vec<_>>(), [(Some(1), ratio(3, 1))]);

    let theta = [user((6, 10), (1, 10)), user((2, 10), (8, 10)), user((3, 10), (3, 10))];
    let sdrf = |commitments: [Rational; 3]| {
        let users = theta.iter().zip(commitments).map(|(u, c)| u.clone().limit(Rational::ONE).commitment(vec![c; 2]));
        let problem = Problem::new(2, users).unwrap();
        let found = exact("sdrf", &problem);
        (found.level, problem.loads(&found.tasks))
    };
    let zero = Rational::ZERO;
    assert_eq!(
        sdrf([zero.clone(), zero.clone(), zero.clone()]),
        (Some(ratio(14, 25)), vec![Rational::ONE, ratio(143, 150)])
    );
    assert_eq!(sdrf([ratio(1, 5), zero, ratio(1, 20)]), (Some(ratio(22, 35)), vec![ratio(31, 35), Rational::ONE]));

    let single = |commitments: [Rational; 4]| {
        let demands = [(1, 2), (3, 20), (1, 5), (3, 5)].map(|(a, b)| User::new([ratio(a, b)]).limit(Rational::ONE));
        let users = demands.into_iter().zip(commitments).map(|(u, c)| u.commitment([c]));
        exact("sdrf", &Problem::new(1, users).unwrap()).level
    };
    let zero = || Rational::ZERO;
    assert_eq!(single([zero(), zero(), zero(), zero()]), Some(ratio(13, 40)));
    assert_eq!(single([ratio(1, 10), zero(), ratio(1, 4), zero()]), Some(ratio(2, 5)));
}

/// With zero demands, a user can lose when others leave.
#[test]
fn with_zero_demands_a_user_can_lose_when_others_leave() {
    let one = |a: u64, b: u64| User::new([Rational::from(a), Rational::from(b)]);
    let all = Problem::new(2, [one(1, 0), one(1, 0), one(1, 1), one(0, 1)]).unwrap();
    let third = ratio(1, 3);
    let found = exact("drf", &all);
    assert_eq!(found.tasks, [third.clone(), third.clone(), third, ratio(2, 3)]);
    let rest = Problem::new(2, [one(1, 1), one(0, 1)]).unwrap();
    assert_eq!(exact("drf", &rest).tasks, [ratio(1, 2), ratio(1, 2)]);
    // The last one had 2/3 and has 1/2 now that two have left.
    assert!(dominant_share(&all, &found.tasks, 3) > ratio(1, 2));
}

/// A resource that saturated before does not count again when the others get all they want: the level is where filling
/// stopped a user.
#[test]
fn the_level_is_the_last_at_which_a_user_was_stopped() {
    let users = [
        User::new([Rational::ONE, Rational::ZERO]),
        User::new([Rational::ZERO, ratio(1, 4)]).weight(ratio(1, 2)).limit(Rational::from(3_u64)),
    ];
    let found = exact("drf", &Problem::new(2, users).unwrap());
    assert_eq!(found.tasks, [Rational::ONE, Rational::from(3_u64)]);
    assert_eq!(found.level, Some(Rational::ONE));
}

/// Every user gets all it wants: the paper's maximum does not exist, and the demands are the allocation.
#[test]
fn sdrf_of_little_demand_is_the_demand() {
    let wants = |limit: u64, commitment: u64| {
        User::new([ratio(1, 10), ratio(1, 20)]).limit(Rational::from(limit)).commitment(vec![ratio(commitment, 4); 2])
    };
    let found = exact("sdrf", &Problem::new(2, [wants(2, 0), wants(3, 4), wants(0, 8)]).unwrap());
    assert_eq!(found.tasks, [2_u64, 3, 0].map(Rational::from));
    assert_eq!(found.level, None);
}

/// No misreport is profitable under drf (also with zero demands) or, in one stage, under sdrf.
#[test]
fn drf_and_a_stage_of_sdrf_are_strategy_proof() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = problems(Kind { users: 4, width: 3, ..Kind::ANY }, "sdrf");
    let mut tried = 0;
    for seed in 0..60 {
        let problem = strategy.new_tree(&mut runner).unwrap().current().to_f64().unwrap();
        for name in ["drf", "sdrf"] {
            let search =
                search_misreports(mechanism(name), &problem, &MechanismOptions::default(), seed, 200, None).unwrap();
            assert!(search.best.is_none(), "{name}: {search:?} of {problem:?}");
            tried += search.tried;
        }
    }
    assert!(tried > 20_000, "{tried}");
}

/// With many users the level is first bracketed by a sample at equal distances, which can be made to under- or
/// overestimate; the answer must be the same.
#[test]
fn a_misleading_sample_does_not_change_the_answer() {
    const USERS: usize = 40_000;
    for heavy in 0..3_usize {
        let mut stream = Stream::new(7, "users", heavy as u64);
        let users: Vec<User<f64>> = (0..USERS)
            .map(|i| {
                let factor = match heavy {
                    1 if i % 4 == 0 => 50.0,
                    2 if i % 4 != 0 => 50.0,
                    _ => 1.0,
                };
                let demand: Vec<f64> = (0..3).map(|_| 0.01 + stream.uniform()).collect();
                let limit = 6.0 * factor * stream.uniform() / USERS as f64;
                let commitment = vec![stream.uniform() / USERS as f64; 3];
                User { weight: 0.5 + stream.uniform(), demand, limit: Some(limit), commitment }
            })
            .collect();
        let problem = Problem::new(3, users).unwrap();
        for name in ["drf", "sdrf"] {
            let found = float(name, &problem);
            let level = found.level.unwrap();
            for (i, x) in found.tasks.iter().enumerate() {
                let begin = if name == "sdrf" { problem.commitment(i).unwrap()[0] / problem.weight(i) } else { 0.0 };
                let rate = problem.weight(i) / problem.dominant_demand(i);
                let due = ((level - begin).max(0.0) * rate).min(*problem.limit(i).unwrap());
                assert!((x - due).abs() <= 1e-9 * due, "{name} {heavy}: user {i} has {x}, at the level {due}");
            }
            let most = problem.loads(&found.tasks).into_iter().fold(0.0, f64::max);
            assert!((most - 1.0).abs() < 1e-9, "{name} {heavy}: {most}");
        }
    }
}

#[test]
fn equal_input_gives_equal_bits() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..50 {
        let problem = extreme(30, 4).new_tree(&mut runner).unwrap().current();
        let bits = || float("drf", &problem).tasks.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(), bits());
    }
}
