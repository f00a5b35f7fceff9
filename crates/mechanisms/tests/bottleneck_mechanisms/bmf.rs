//! Bottleneck max fairness on random problems.

use std::collections::BTreeSet;

use evenhand_mechanisms::{
    LinearProgram, Mechanism, MechanismOptions, Optimum, Problem, Relation, User, bmf_by_iteration, bmf_solutions,
    mechanism_named,
};
use evenhand_model::Rational;
use proptest::prelude::*;

use crate::random_problems::{Kind, Random, fraction, problems, with_users};
use crate::{divide, findings, holds, near, q};

const ALL: Kind = Kind { users: 6, resources: (1, 4), zeros: true, weights: true, limits: true };

fn bmf() -> &'static dyn Mechanism {
    mechanism_named("bmf").unwrap()
}

/// Reference model: each user in turn bound by each resource it demands, or satisfied; a point for each pattern whose
/// constraints are feasible. Any point of a pattern satisfies the property.
fn patterns_with_points(problem: &Problem<Rational>) -> Vec<Vec<Rational>> {
    let (n, m) = (problem.users(), problem.resource_count());
    let mut points = Vec::new();
    let mut pattern = vec![0_usize; n];
    loop {
        if let Some(point) = point_of(problem, &pattern) {
            points.push(point);
        }
        let Some(turn) = (0..n).find(|i| pattern[*i] < m) else { return points };
        pattern[turn] += 1;
        pattern[..turn].fill(0);
    }
}

/// Returns a point where resource `pattern[i]` is saturated and i has the largest share per weight of it, or (m) i has
/// all it wants.
fn point_of(problem: &Problem<Rational>, pattern: &[usize]) -> Option<Vec<Rational>> {
    let (n, m) = (problem.users(), problem.resource_count());
    let mut program = LinearProgram::new(n);
    for j in 0..m {
        let row: Vec<Rational> = (0..n).map(|i| problem.demand(i)[j].clone()).collect();
        let bound = if pattern.contains(&j) { Relation::Equal } else { Relation::AtMost };
        program.constrain(row, bound, q("1"));
    }
    for (i, j) in pattern.iter().enumerate() {
        let unit = |k: usize, factor: Rational| {
            let mut row = vec![Rational::ZERO; n];
            row[k] = factor;
            row
        };
        match problem.limit(i) {
            Some(limit) if *j == m => program.constrain(unit(i, q("1")), Relation::Equal, limit.clone()),
            None if *j == m => return None,
            Some(limit) => program.constrain(unit(i, q("1")), Relation::AtMost, limit.clone()),
            None => {}
        }
        if *j < m {
            for k in (0..n).filter(|k| *k != i) {
                let mut row = unit(i, &problem.demand(i)[*j] / problem.weight(i));
                row[k] = -(&problem.demand(k)[*j] / problem.weight(k));
                program.constrain(row, Relation::AtLeast, Rational::ZERO);
            }
        }
    }
    match program.solve() {
        Optimum::Found(point) => Some(point),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The property and those that follow from it hold exactly; and f64 agrees.
    #[test]
    fn it_is_bottleneck_max_fair(problem in problems(ALL)) {
        let given = divide("bmf", &problem);
        for property in ["feasible", "bottleneck_max_fair", "pareto", "sharing_incentive", "envy_free"] {
            holds(property, &problem, &given.tasks);
        }
        let full = problem.loads(&given.tasks).contains(&q("1"));
        let satisfied = (0..problem.users()).all(|i| problem.limit(i) == Some(&given.tasks[i]));
        prop_assert!(full || satisfied);
        let float = bmf().divide(&problem.to_f64().unwrap(), &MechanismOptions::default()).unwrap();
        for (f, e) in float.tasks.iter().zip(&given.tasks) {
            prop_assert!(near(*f, e), "{} {:?}", f, e);
        }
        prop_assert_eq!(float.levels.len(), given.levels.len());
        for (f, e) in float.levels.iter().zip(&given.levels) {
            prop_assert_eq!(f.is_some(), e.is_some());
            prop_assert!(f.iter().zip(e).all(|(f, e)| near(*f, e)));
        }
        // Equal input gives equal bits.
        prop_assert_eq!(bmf().divide(&problem.to_f64().unwrap(), &MechanismOptions::default()).unwrap().tasks, float.tasks);
    }

    /// Levels determine the tasks of all users.
    #[test]
    fn levels_determine_tasks(problem in problems(ALL)) {
        let given = divide("bmf", &problem);
        for (i, x) in given.tasks.iter().enumerate() {
            let at = |(level, d): (&Option<Rational>, &Rational)| match level {
                Some(level) if !d.is_zero() => Some(level * problem.weight(i) / d),
                _ => None,
            };
            let by_levels = given.levels.iter().zip(problem.demand(i)).filter_map(at);
            let least = by_levels.chain(problem.limit(i).cloned()).min();
            prop_assert_eq!(least.as_ref(), Some(x));
        }
    }

    /// Neither the order of users and resources nor the size of a task matters.
    #[test]
    fn order_and_units_do_not_matter(problem in problems(ALL), turn in 0..6_usize, by in 1..40_u64) {
        let (n, m) = (problem.users(), problem.resource_count());
        let given = bmf_solutions(&problem).unwrap();
        let other = with_users(&problem, |i, _| {
            let mut user = problem.user((i + turn) % n);
            let factor = fraction(if (i + turn) % n == 0 { by } else { 1 }, 7);
            user.demand.rotate_left(turn % m);
            user.demand.iter_mut().for_each(|d| *d = &*d * &factor);
            user.limit = user.limit.map(|x| x / &factor);
            user
        });
        let points = |problem: &Problem<Rational>, solutions: Vec<Vec<Rational>>| -> BTreeSet<Vec<Rational>> {
            let shares = |x: Vec<Rational>| x.iter().enumerate().map(|(i, x)| x * problem.dominant_demand(i)).collect();
            solutions.into_iter().map(shares).collect()
        };
        let turned = bmf_solutions(&other).unwrap();
        prop_assert_eq!(turned.families, given.families);
        let back = points(&other, turned.points).into_iter().map(|mut x| { x.rotate_right(turn % n); x });
        prop_assert_eq!(back.collect::<BTreeSet<_>>(), points(&problem, given.points));
    }

    /// An unused resource changes nothing; equal users can be merged into one with the sum of their weights.
    #[test]
    fn unused_resources_and_merged_users(problem in problems(Kind { limits: false, ..ALL })) {
        let given = bmf_solutions(&problem).unwrap();
        let wider = (0..problem.users()).map(|i| {
            let mut user = problem.user(i);
            user.demand.insert(1, Rational::ZERO);
            user
        });
        let wider = Problem::new(problem.resource_count() + 1, wider).unwrap();
        prop_assert_eq!(&bmf_solutions(&wider).unwrap(), &given);
        let mut merged: Vec<(User<Rational>, Vec<usize>)> = Vec::new();
        for i in 0..problem.users() {
            let user = problem.user(i);
            match merged.iter_mut().find(|(other, _)| other.demand == user.demand) {
                Some((other, of)) => {
                    other.weight = &other.weight + &user.weight;
                    of.push(i);
                }
                None => merged.push((user, vec![i])),
            }
        }
        let whole = Problem::new(problem.resource_count(), merged.iter().map(|(user, _)| user.clone())).unwrap();
        let sum = |x: &Vec<Rational>| -> Vec<Rational> {
            merged.iter().map(|(_, of)| of.iter().fold(Rational::ZERO, |a, i| a + &x[*i])).collect()
        };
        let sums: BTreeSet<Vec<Rational>> = given.points.iter().map(sum).collect();
        prop_assert_eq!(bmf_solutions(&whole).unwrap().points.into_iter().collect::<BTreeSet<_>>(), sums);
    }

    /// With one resource the result is max-min fair.
    #[test]
    fn one_resource(problem in problems(Kind { users: 8, resources: (1, 1), ..ALL })) {
        let given = divide("bmf", &problem);
        prop_assert_eq!(&given.tasks, &divide("max-min", &problem).tasks);
        prop_assert_eq!(&given.tasks, &divide("drf", &problem).tasks);
        prop_assert_eq!(bmf_solutions(&problem).unwrap().points.len(), 1);
    }

    /// A limit at exactly what a user has anyway keeps the allocation among the solutions.
    #[test]
    fn limits_exactly_at_the_breakpoint(problem in problems(ALL), who in 0..6_usize) {
        let given = bmf_solutions(&problem).unwrap();
        let who = who % problem.users();
        for point in given.points {
            let limited = with_users(&problem, |i, user| if i == who { user.limit(point[who].clone()) } else { user });
            prop_assert!(bmf_solutions(&limited).unwrap().points.contains(&point)
                || bmf_solutions(&limited).unwrap().families > 0);
            holds("bottleneck_max_fair", &limited, &point);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// All (m + 1)^n patterns have their points among those found.
    #[test]
    fn no_point_is_missed(problem in problems(Kind { users: 4, resources: (1, 3), ..ALL })) {
        let found = bmf_solutions(&problem).unwrap();
        prop_assert!(!found.points.is_empty());
        for point in &found.points {
            holds("bottleneck_max_fair", &problem, point);
            holds("feasible", &problem, point);
        }
        for point in patterns_with_points(&problem) {
            holds("bottleneck_max_fair", &problem, &point);
            prop_assert!(found.families > 0 || found.points.contains(&point), "{:?} {:?}", found, point);
        }
        // In the solution chosen, the worst-off user is at least as well off as in any other.
        let worst = |x: &[Rational]| {
            (0..x.len()).map(|i| &x[i] * problem.dominant_demand(i) / problem.weight(i)).min().unwrap()
        };
        let given = divide("bmf", &problem).tasks;
        prop_assert!(found.points.iter().all(|x| worst(x) <= worst(&given)));
    }

    /// Iterated levels reach one of the points.
    #[test]
    fn iterated_levels_reach_a_point(problem in problems(ALL)) {
        let found = bmf_solutions(&problem).unwrap();
        let reached = bmf_by_iteration(&problem.to_f64().unwrap()).unwrap();
        let same = |x: &Vec<Rational>| x.iter().zip(&reached.tasks).all(|(e, f)| near(*f, e));
        prop_assert!(found.families > 0 || found.points.iter().any(same), "{:?} {:?}", found, reached);
    }

    /// Ratios of 1e-9 to 1e9 between demands and between weights, against the exact answer for the same numbers.
    #[test]
    fn extreme_ratios(seed in any::<u64>(), n in 1..5_usize, m in 1..4_usize) {
        let mut random = Random(seed);
        let mut spread = || 10_f64.powi(random.below(19) as i32 - 9) * (1.0 + random.unit());
        let users: Vec<User<f64>> =
            (0..n).map(|_| User::new((0..m).map(|_| spread()).collect::<Vec<_>>()).weight(spread())).collect();
        let problem = Problem::new(m, users).unwrap();
        let exact = divide("bmf", &problem.to_exact());
        let float = bmf().divide(&problem, &MechanismOptions::default()).unwrap();
        prop_assert!(findings("bottleneck_max_fair", &problem.to_exact(), &exact.tasks).is_empty());
        for (f, e) in float.tasks.iter().zip(&exact.tasks) {
            prop_assert!(near(*f, e), "{} {}", f, evenhand_model::to_f64(e));
        }
    }
}

/// Convergence on random problems; benches/bottleneck_mechanisms.rs counts more and larger ones.
#[test]
fn iteration_nearly_always_converges() {
    let mut random = Random(1);
    let (mut tried, mut failed) = (0, 0);
    for _ in 0..1500 {
        let (n, m) = (1 + random.below(40) as usize, 1 + random.below(8) as usize);
        let mut user = |_| {
            let demand: Vec<f64> =
                (0..m).map(|j| if j > 0 && random.below(5) == 0 { 0.0 } else { 0.05 + random.unit() }).collect();
            let user = User::new(demand).weight((1 + random.below(8)) as f64 / 4.0);
            if random.below(3) == 0 { user.limit(3.0 * random.unit() / n as f64) } else { user }
        };
        let problem = Problem::new(m, (0..n).map(&mut user).collect::<Vec<_>>()).unwrap();
        tried += 1;
        failed += usize::from(bmf_by_iteration(&problem).is_err());
    }
    println!("iteration failed on {failed} of {tried}");
    assert!(failed * 200 <= tried, "{failed} of {tried}");
}
