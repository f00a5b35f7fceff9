//! Worked examples with exact answers.

use evenhand_mechanisms::{
    Account, AccountTree, Measure, MechanismError, MechanismOptions, Problem, User, bmf_by_iteration, bmf_solutions,
    mechanism_named,
};
use evenhand_model::Rational;

use crate::{divide, findings, holds, near, problem, q, row, try_divide, users};

/// Clients that use one resource at a time have at most 1 / sum_j r_ij tasks.
fn sequential(users: Vec<User<Rational>>, weights: &str) -> Problem<Rational> {
    let limit = |u: &User<Rational>| q("1") / u.demand.iter().fold(Rational::ZERO, |a, d| a + d);
    let users = users.into_iter().zip(row(weights)).map(|(u, w)| {
        let most = limit(&u);
        u.limit(most).weight(w)
    });
    problem(users.collect())
}

/// Known for two solutions. They are the ends of a line of them: the third resource's equation is the mean of the other
/// two, so with each user bound elsewhere all three hold for (1 - 3t/2, t, t), and every user has the largest share of
/// its bottleneck for 2/5 <= t <= 4/9.
#[test]
fn bonald_and_roberts_example() {
    let p = problem(users("1 1 1", &["1 1 1", "1 1/2 3/4", "1/2 1 3/4"]));
    let all = bmf_solutions(&p).unwrap();
    assert_eq!(all.points, vec![row("1/3 4/9 4/9"), row("2/5 2/5 2/5")]);
    assert_eq!(all.families, 1);
    let between = row("37/100 42/100 42/100");
    assert_eq!(p.loads(&between), row("1 1 1"));
    holds("bottleneck_max_fair", &p, &between);
    for beyond in [row("31/100 46/100 46/100"), row("415/1000 39/100 39/100")] {
        assert_eq!(p.loads(&beyond), row("1 1 1"));
        assert!(!findings("bottleneck_max_fair", &p, &beyond).is_empty());
    }
    // The worst-off user: 1/3 of everything in one, 2/5 in the other.
    let given = divide("bmf", &p);
    assert_eq!(given.tasks, row("2/5 2/5 2/5"));
    assert_eq!(given.levels, vec![Some(q("2/5")); 3]);
    for point in &all.points {
        holds("bottleneck_max_fair", &p, point);
    }
}

/// The scenarios of Zeldes and Feitelson (2013), off line: weighted bottleneck max fairness of clients that use one
/// resource at a time.
#[test]
fn figures_of_zeldes_and_feitelson_off_line() {
    let figure_7 = users("1 1", &["1 0", "0 1", "1 1"]);
    let cases = [
        (sequential(figure_7.clone(), "40 40 20"), "2/3 2/3 1/3"),
        (sequential(figure_7.clone(), "1 1 1"), "1/2 1/2 1/2"),
        (sequential(figure_7, "25 25 50"), "1/2 1/2 1/2"),
        (sequential(users("1 1 1", &["1 2 0", "1 0 2", "1 0 0"]), "33 67 100"), "22/133 1/3 200/399"),
        (sequential(users("1 1", &["100 14", "17 100", "1 1"]), "1 1 1"), "83/18062 43/9031 4150/9031"),
    ];
    for (p, expected) in cases {
        assert_eq!(divide("bmf", &p).tasks, row(expected));
        assert_eq!(bmf_solutions(&p).unwrap().points, vec![row(expected)]);
        holds("bottleneck_max_fair", &p, &row(expected));
    }
}

/// Figure 11: the ring has seven allocations without justified complaints, but only one is bottleneck max fair.
#[test]
fn the_ring_of_figure_11() {
    let pairs = ["1 1 1 0", "0 1 1 1", "1 0 1 1", "1 1 0 1"];
    let twice: Vec<&str> = pairs.iter().flat_map(|p| [*p, *p]).collect();
    let p = problem(users("1 1 1 1", &twice));
    assert_eq!(bmf_solutions(&p).unwrap().points, vec![vec![q("1/6"); 8]]);
    assert_eq!(divide("bmf", &p).tasks, vec![q("1/6"); 8]);
    // One of the paper's: resources 2 and 3 saturated, the pairs that use both have 3/16, the others 1/8.
    let other = row("1/8 1/8 3/16 3/16 3/16 3/16 1/8 1/8");
    let found = findings("bottleneck_max_fair", &p, &other);
    let who: Vec<_> = found.iter().map(|f| (f.who.unwrap(), f.against, f.on.unwrap())).collect();
    assert_eq!(who, [(0, Some(2), 2), (1, Some(2), 2), (6, Some(2), 3), (7, Some(2), 3)]);
    assert!(found.iter().all(|f| f.has == q("1/8") && f.due == q("3/16") && f.measure == Measure::SharePerWeight));
}

#[test]
fn bottleneck_max_fairness_is_not_strategy_proof() {
    let truth = problem(users("1 1", &["1/4 1", "1 1/2"]));
    assert_eq!(divide("bmf", &truth).tasks[0], q("4/7"));
    let misreport = problem(users("1 1", &["1/2 1", "1 1/2"]));
    assert_eq!(divide("bmf", &misreport).tasks[0], q("2/3"));
}

#[test]
fn a_user_without_bottleneck_is_compared_on_the_next_resource() {
    let p = problem(vec![
        User::new(row("1 0")),
        User::new(row("1/2 1/4")).weight(q("2")),
        User::new(row("0 1/2")).limit(q("1/2")),
    ]);
    let found = findings("bottleneck_max_fair", &p, &row("1/2 1/2 1/4"));
    // CPU: 3/4 used; memory: 1/4.
    let seen: Vec<_> = found.iter().map(|f| (f.who, f.against, f.on, f.has.clone(), f.due.clone())).collect();
    let expected = [
        (Some(0), None, Some(0), q("1/2"), q("3/4")),
        (Some(1), None, Some(0), q("1/8"), q("1/4")),
        (Some(2), None, Some(1), q("1/8"), q("1/4")),
    ];
    assert_eq!(seen, expected);
    // The first user has nearly all of the CPU, on which the second's share is nearest to the largest one.
    let found = findings("bottleneck_max_fair", &p, &row("9/10 1/5 1/2"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].who, found[0].against, found[0].on), (Some(1), Some(0), Some(0)));
    assert_eq!((found[0].has.clone(), found[0].due.clone()), (q("1/20"), q("9/10")));
}

/// Infinitely many solutions: the levels of the second and third resource are free between their bounds.
#[test]
fn patterns_with_infinitely_many_points() {
    // Column maxima make a circulant matrix of levels singular: 1 + 1/2 (w + w^-1) is 0 for four in a ring
    // of rows (1, 1/2, 0, 1/2): users need the next and the last resource half as much.
    let p = problem(users("1 1 1 1", &["1 1/2 0 1/2", "1/2 1 1/2 0", "0 1/2 1 1/2", "1/2 0 1/2 1"]));
    let all = bmf_solutions(&p).unwrap();
    assert_eq!(all.families, 1);
    for point in &all.points {
        holds("bottleneck_max_fair", &p, point);
        holds("feasible", &p, point);
    }
    assert!(all.points.contains(&row("1/2 1/2 1/2 1/2")));
    assert_eq!(divide("bmf", &p).tasks, row("1/2 1/2 1/2 1/2"));
    // Another point of that family.
    holds("bottleneck_max_fair", &p, &row("2/5 3/5 2/5 3/5"));
    let float = mechanism_named("bmf").unwrap().divide(&p.to_f64().unwrap(), &MechanismOptions::default()).unwrap();
    assert_eq!(float.tasks, vec![0.5; 4]);
}

#[test]
fn the_example_of_bao_with_its_classes_corrected() {
    let p = problem(users("100 200", &["0.2 0.8", "0.4 0.6", "0.7 0.3", "0.9 0.1"]));
    let given = divide("baa", &p);
    assert_eq!(given.tasks, row("125 62.5 250/7 250/9"));
    // Levels are shares of capacity: 25 of 100 CPUs, 100 of 200 of memory.
    assert_eq!(given.levels, vec![Some(q("1/4")), Some(q("1/2"))]);
    assert_eq!(p.loads(&given.tasks), vec![q("1"), q("19025/126") / q("200")]);
    holds("baa_local_rules", &p, &given.tasks);
}

#[test]
fn baa_with_both_resources_full() {
    let p = problem(users("100 100", &["0.1 0.9", "0.2 0.8", "0.8 0.2", "0.9 0.1"]));
    let given = divide("baa", &p);
    assert_eq!(given.tasks, row("800/17 900/17 900/17 800/17"));
    assert_eq!(given.levels, vec![Some(q("36/85")); 2]);
    assert_eq!(p.loads(&given.tasks), row("1 1"));
}

#[test]
fn baa_is_not_pareto_efficient_where_demands_are_zero() {
    let p = problem(users("1 1", &["1 0", "1 0", "1 0", "0 1", "2/5 3/5"]));
    let given = divide("baa", &p);
    assert_eq!(given.levels, vec![Some(q("1/4")), Some(q("3/8"))]);
    assert_eq!(p.loads(&given.tasks), row("1 3/4"));
    let found = findings("pareto", &p, &given.tasks);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].who, found[0].amount()), (Some(3), q("1/4")));
    holds("baa_local_rules", &p, &given.tasks);
}

/// Contrary to the papers' theorem: client 1 reports 2/5 of its work on the first resource instead of 9/10.
#[test]
fn baa_is_not_strategy_proof() {
    let truth = problem(users("1 2", &["1/5 4/5", "9/10 1/10"]));
    let truthful = divide("baa", &truth).tasks;
    assert_eq!(truthful[1], q("4/7"));
    let misreport = problem(users("1 2", &["1/5 4/5", "2/5 3/5"]));
    let reported = divide("baa", &misreport).tasks;
    let bundle: Vec<Rational> = misreport.demand(1).iter().map(|d| d * &reported[1]).collect();
    let gained = bundle.iter().zip(truth.demand(1)).map(|(b, d)| b / d).min().unwrap();
    assert_eq!(gained, q("20/27"));
    assert!((evenhand_model::to_f64(&(gained / &truthful[1])) - 1.296).abs() < 5e-4);
}

#[test]
fn baa_of_three_resources_with_and_without_the_sharing_incentive() {
    let p = problem(users("1 1 1", &[".3 .3 .1", ".3 .8 .9", ".9 .8 .8"]));
    let sum = |tasks: &[Rational]| p.loads(tasks).into_iter().fold(Rational::ZERO, |a, l| a + l);
    let without = try_divide("baa", &p, MechanismOptions { sharing_incentive: Some(false) }).unwrap();
    assert_eq!(without.levels, vec![Some(q("81/217")), None, Some(q("72/217"))]);
    assert_eq!(sum(&without.tasks), q("82/31"));
    assert_eq!(findings("sharing_incentive", &p, &without.tasks)[0].who, Some(1));
    let with = divide("baa", &p);
    assert_eq!(with.levels, vec![Some(q("19/51")), None, Some(q("1/3"))]);
    assert_eq!(sum(&with.tasks), q("1214/459"));
    holds("sharing_incentive", &p, &with.tasks);
}

/// When the user who limited a class is satisfied, dividing again for the highest utilization alone would reduce the
/// other class, below its satisfied users and below an equal split.
#[test]
fn levels_of_baa_never_fall_when_a_user_is_satisfied() {
    // Four users of the CPU only; two need memory, the first of them nearly as much CPU.
    let mut all = users("1 1", &["1 0", "1 0", "1 0", "1 0", "9/10 1", "1/10 1"]);
    let free = divide("baa", &problem(all.clone()));
    let mark = free.tasks[4].clone();
    // All but the first and the last get one per cent less than they had.
    for i in [1, 2, 3, 4] {
        all[i] = all[i].clone().limit(&free.tasks[i] * q("99/100"));
    }
    let p = problem(all);
    let given = divide("baa", &p);
    assert!(given.tasks[0] >= free.tasks[0], "{:?} {:?}", free, given);
    assert!(given.tasks[5] >= free.tasks[5] && given.tasks[4] < mark);
    for property in ["feasible", "sharing_incentive", "envy_free", "baa_local_rules"] {
        holds(property, &p, &given.tasks);
    }
}

#[test]
fn local_rules_name_the_user_with_the_larger_share() {
    let p = problem(vec![
        User::new(row("1 1/2")),
        User::new(row("1 1/4")).weight(q("2")),
        User::new(row("1/2 1")),
        User::new(row("1 1")).limit(q("1/100")),
    ]);
    let found = findings("baa_local_rules", &p, &row("1/10 1/2 1/10 1/100"));
    // CPU for the weight: 1/10, 1/4, 1/20; memory: 1/20, 1/16, 1/10.
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].who, found[0].against, found[0].on), (Some(0), Some(1), Some(0)));
    assert_eq!((found[0].has.clone(), found[0].due.clone()), (q("1/10"), q("1/4")));
    let found = findings("baa_local_rules", &p, &row("1/2 1 1/5 1/100"));
    assert_eq!((found[0].who, found[0].against, found[0].on), (Some(2), Some(0), Some(1)));
    assert_eq!((found[0].has.clone(), found[0].due.clone()), (q("1/5"), q("1/4")));
}

#[test]
fn accounts_are_unsupported() {
    let tree = AccountTree::new(vec![Account { parent: None, weight: q("1") }], vec![Some(0), None]).unwrap();
    let p = problem(users("1 1", &["1 0", "1 1"])).with_accounts(tree).unwrap();
    for name in ["bmf", "baa"] {
        let error = try_divide(name, &p, MechanismOptions::default());
        assert_eq!(error, Err(MechanismError::AccountsUnsupported { mechanism: name }));
        let float = mechanism_named(name).unwrap().divide(&p.to_f64().unwrap(), &MechanismOptions::default());
        assert_eq!(float, Err(MechanismError::AccountsUnsupported { mechanism: name }));
    }
    assert!(bmf_solutions(&p).is_err() && bmf_by_iteration(&p.to_f64().unwrap()).is_err());
}

#[test]
fn no_users_and_no_demand() {
    for name in ["bmf", "baa"] {
        let empty = Problem::<Rational>::new(2, []).unwrap();
        assert_eq!(divide(name, &empty).tasks, Vec::<Rational>::new());
        // A user who wants nothing gets nothing, and does not limit others.
        let p = problem(vec![User::new(row("1 1/2")).limit(q("0")), User::new(row("1/3 1"))]);
        assert_eq!(divide(name, &p).tasks, row("0 1"));
        // All users satisfied: no level determines anything.
        let p = problem(vec![User::new(row("1 1/2")).limit(q("1/4")), User::new(row("1/3 1")).limit(q("1/4"))]);
        let given = divide(name, &p);
        assert_eq!((given.tasks, given.levels), (row("1/4 1/4"), vec![None, None]));
    }
}

/// Exact answers where there are too many patterns to enumerate.
#[test]
fn exact_points_of_larger_problems() {
    let users = |n: u64| {
        (0..n).map(|i| {
            let d = |r: u64| Rational::from_parts(((i * (7 + 2 * r) + r * r * 5) % 11 + 1).into(), 16u64.into());
            User::new([d(0), d(1), d(2), d(3)]).weight(Rational::from_parts((i % 3 + 1).into(), 4u64.into()))
        })
    };
    let p = Problem::new(4, users(200)).unwrap();
    let exact = divide("bmf", &p);
    let float = mechanism_named("bmf").unwrap().divide(&p.to_f64().unwrap(), &MechanismOptions::default()).unwrap();
    assert!(float.tasks.iter().zip(&exact.tasks).all(|(f, e)| near(*f, e)));
    holds("bottleneck_max_fair", &p, &exact.tasks);
}
