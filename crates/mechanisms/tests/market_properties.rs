//! Properties of every market: those of the equilibrium and of exact points, with other solvers as reference models.

#![allow(clippy::unwrap_used)]

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use evenhand_mechanisms::{
    Allocation, Asset, Bbf, Ceei, Drf, EnvyFree, Feasible, MaxMin, Mechanism, MechanismOptions, NoJustifiedComplaint,
    ParetoEfficient, Problem, Property, SharingIncentive, User,
};
use evenhand_model::{Rational, to_f64};
use proptest::prelude::*;
use proptest::{collection::vec, option};

fn market(problem: &Problem<f64>) -> Allocation<f64> {
    Ceei.divide(problem, &MechanismOptions::default()).unwrap()
}

fn exact(problem: &Problem<Rational>) -> Vec<Rational> {
    Bbf.divide_exact(problem, &MechanismOptions::default()).unwrap().tasks
}

fn float(problem: &Problem<Rational>) -> Problem<f64> {
    problem.to_f64().unwrap()
}

fn q(n: i64, d: u64) -> Rational {
    Rational::from_parts(n.into(), d.into())
}

/// Number of tasks that a user wants.
#[derive(Clone, Debug)]
enum Wanted {
    Any,
    /// So many tenths of an equal part of its dominant resource.
    Tenths(i64),
    /// Exactly what the equilibrium would give it, as an f64.
    AtBreak,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![4 => Just(Wanted::Any), 2 => (0..30_i64).prop_map(Wanted::Tenths), 1 => Just(Wanted::AtBreak)]
}

fn demand(width: usize) -> impl Strategy<Value = Vec<Rational>> {
    let tenths = prop_oneof![1 => Just(0_i64), 4 => 1..11_i64];
    vec(tenths, width).prop_map(|mut tenths| {
        if tenths.iter().all(|t| *t == 0) {
            tenths[0] = 3;
        }
        tenths.into_iter().map(|t| q(t, 10)).collect()
    })
}

/// Demands in tenths with zeros, weights in quarters, some users twice, limits of all kinds.
fn problems(widths: std::ops::Range<usize>) -> impl Strategy<Value = Problem<Rational>> {
    let user = |width| (demand(width), 1..9_i64, wanted(), option::weighted(0.2, 0..8_usize));
    let users = widths.prop_flat_map(move |width| (vec(user(width), 1..9), any::<bool>()));
    users.prop_map(|(specs, equal)| {
        let n = specs.len() as i64;
        let mut users: Vec<User<Rational>> = Vec::new();
        let mut at_break = Vec::new();
        for (i, (demand, weight, wanted, copy)) in specs.into_iter().enumerate() {
            if let Some(copy) = copy.filter(|t| *t < i) {
                users.push(users[copy].clone());
                continue;
            }
            let dominant = demand.iter().max().unwrap().clone();
            let user = User::new(demand).weight(if equal { q(1, 1) } else { q(weight, 4) });
            users.push(match wanted {
                Wanted::Tenths(tenths) => user.limit(q(tenths, 10) / q(n, 1) / dominant),
                _ => user,
            });
            if matches!(wanted, Wanted::AtBreak) {
                at_break.push(i);
            }
        }
        let width = users[0].demand.len();
        let free = market(&float(&Problem::new(width, users.clone()).unwrap())).tasks;
        for i in at_break {
            users[i].limit = Some(Rational::try_from(free[i]).unwrap());
        }
        Problem::new(width, users).unwrap()
    })
}

fn has_equal_weights(problem: &Problem<f64>) -> bool {
    (0..problem.users()).all(|i| problem.weight(i) == problem.weight(0))
}

/// Returns sum e_i log x_i over the users who want something.
fn objective(problem: &Problem<f64>, tasks: &[f64]) -> f64 {
    let takes_part = |i: &usize| problem.limit(*i).is_none_or(|most| *most > 0.0);
    (0..tasks.len()).filter(takes_part).map(|i| problem.entitlement(i) * tasks[i].ln()).sum()
}

#[track_caller]
fn near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance * f.abs().max(e.abs()), "{found:?}, expected {expected:?}");
    }
}

/// Asserts the conditions of Karush, Kuhn and Tucker, and every property that follows from them.
fn assert_equilibrium(problem: &Problem<f64>, given: &Allocation<f64>) {
    let loads = problem.loads(&given.tasks);
    for (p, load) in given.prices.iter().zip(&loads) {
        assert!(*p >= 0.0 && (*p == 0.0 || *load >= 1.0 - 1e-9), "{given:?} {loads:?}");
    }
    let mut spent = 0.0;
    for (i, x) in given.tasks.iter().enumerate() {
        let cost: f64 = problem.demand(i).iter().zip(&given.prices).map(|(d, p)| d * p * x).sum();
        let budget = problem.entitlement(i);
        assert!(cost <= budget * (1.0 + 1e-9));
        let has_all = problem.limit(i).is_some_and(|most| *x >= most * (1.0 - 1e-9));
        assert!(has_all || cost >= budget * (1.0 - 1e-9), "user {i} of {problem:?}: {given:?}");
        spent += cost;
    }
    let prices: f64 = given.prices.iter().sum();
    assert!((prices - spent).abs() <= 1e-9 * prices && prices <= 1.0 + 1e-9);
    let gap = given.duality_gap.unwrap();
    assert!((0.0..1e-9).contains(&gap), "{gap}");
    assert!(Feasible.findings(problem, &given.tasks, 1e-12).is_empty());
    let properties: [&dyn Property; 3] = [&NoJustifiedComplaint, &ParetoEfficient, &SharingIncentive];
    for property in properties {
        assert_eq!(property.findings(problem, &given.tasks, 1e-9), [], "{problem:?}");
    }
    if has_equal_weights(problem) {
        assert_eq!(EnvyFree.findings(problem, &given.tasks, 1e-8), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_equilibrium(problem in problems(1..5)) {
        let problem = float(&problem);
        assert_equilibrium(&problem, &market(&problem));
        let same = Bbf.divide(&problem, &MechanismOptions::default()).unwrap();
        prop_assert_eq!(same, market(&problem));
    }

    /// The duality gap is an upper bound: no feasible allocation is better by more.
    #[test]
    fn no_feasible_allocation_is_better_than_the_gap_allows(problem in problems(1..5), mix in vec(0.0..1.0_f64, 8)) {
        let problem = float(&problem);
        let given = market(&problem);
        let best = objective(&problem, &given.tasks);
        let others: [&dyn Mechanism; 2] = [&Drf, &Asset];
        for other in others {
            let other = other.divide(&problem, &MechanismOptions::default()).unwrap().tasks;
            prop_assert!(objective(&problem, &other) <= best + given.duality_gap.unwrap() + 1e-12);
            // Near the equilibrium too: as far as from there towards the other point.
            for step in [1e-3, 1e-6] {
                let mixed: Vec<f64> = given.tasks.iter().zip(&other).zip(&mix)
                    .map(|((x, y), m)| (x + step * m * (y - x)).min(*x) + step * (1.0 - m) * (y - x).min(0.0)).collect();
                prop_assert!(objective(&problem, &mixed) <= best + given.duality_gap.unwrap() + 1e-12);
                let towards: Vec<f64> = given.tasks.iter().zip(&other).map(|(x, y)| x + step * (y - x)).collect();
                prop_assert!(objective(&problem, &towards) <= best + given.duality_gap.unwrap() + 1e-12);
            }
        }
    }

    /// Reference model: every price multiplied by its load, repeatedly.
    #[test]
    fn tatonnement_converges_to_the_same_value(problem in problems(1..4)) {
        let problem = float(&problem);
        let n = problem.users();
        let mut prices = vec![1.0; problem.resource_count()];
        let buy = |prices: &[f64]| -> Vec<f64> {
            (0..n).map(|i| {
                let cost: f64 = problem.demand(i).iter().zip(prices).map(|(d, p)| d * p).sum();
                (problem.entitlement(i) / cost).min(problem.limit(i).copied().unwrap_or(f64::INFINITY))
            }).collect()
        };
        for _ in 0..3000 {
            let loads = problem.loads(&buy(&prices));
            for (p, load) in prices.iter_mut().zip(loads) {
                *p *= load;
            }
        }
        let mut tasks = buy(&prices);
        let over = problem.loads(&tasks).into_iter().fold(1.0, f64::max);
        tasks.iter_mut().for_each(|x| *x /= over);
        let given = market(&problem);
        let (slow, fast) = (objective(&problem, &tasks), objective(&problem, &given.tasks));
        prop_assert!(slow <= fast + given.duality_gap.unwrap() + 1e-12 && slow >= fast - 2e-3, "{} {}", slow, fast);
    }

    #[test]
    fn neither_order_nor_units_matter(problem in problems(1..5), scale in 1..40_i64, turn in 0..4_usize) {
        let problem = float(&problem);
        let given = market(&problem);
        let (n, width) = (problem.users(), problem.resource_count());
        let scale = scale as f64 / 7.0;
        let turned = (0..n).rev().map(|i| {
            let mut user = problem.user(i);
            user.demand.rotate_left(turn % width);
            user.demand.iter_mut().for_each(|d| *d *= scale);
            user.limit = user.limit.map(|most| most / scale);
            user.weight *= 3.0;
            user
        });
        let turned = market(&Problem::new(width, turned.collect::<Vec<_>>()).unwrap());
        let back: Vec<f64> = turned.tasks.iter().rev().map(|x| x * scale).collect();
        near(&back, &given.tasks, 1e-8);
        // An unused resource has price 0 and changes nothing.
        let wider = (0..n).map(|i| {
            let mut user = problem.user(i);
            user.demand.insert(0, 0.0);
            user
        });
        let wider = market(&Problem::new(width + 1, wider.collect::<Vec<_>>()).unwrap());
        prop_assert_eq!(wider.prices[0], 0.0);
        near(&wider.tasks, &given.tasks, 1e-8);
    }

    /// Users with the same demand and without limit are equivalent to one user with the sum of their weights.
    #[test]
    fn equal_users_are_one_user_of_their_weight(demands in vec(demand(3), 2..6), weights in vec(1..9_i64, 6)) {
        let user = |i: usize, weight: i64| {
            let demand: Vec<f64> = demands[i].iter().map(to_f64).collect();
            User::new(demand).weight(weight as f64)
        };
        let mut users: Vec<User<f64>> = (0..demands.len()).map(|i| user(i, weights[i])).collect();
        users.push(user(0, weights[5]));
        let apart = market(&Problem::new(3, users.clone()).unwrap()).tasks;
        users.pop();
        users[0] = user(0, weights[0] + weights[5]);
        let mut merged = apart;
        let copy = merged.pop().unwrap();
        merged[0] += copy;
        near(&merged, &market(&Problem::new(3, users).unwrap()).tasks, 1e-8);
    }

    /// With one resource it is weighted max-min fairness.
    #[test]
    fn one_resource(problem in problems(1..2)) {
        let expected = MaxMin.divide_exact(&problem, &MechanismOptions::default()).unwrap().tasks;
        let expected: Vec<f64> = expected.iter().map(to_f64).collect();
        near(&market(&float(&problem)).tasks, &expected, 1e-9);
    }

    #[test]
    fn exact_points_leave_no_complaint(problem in problems(1..5)) {
        let tasks = exact(&problem);
        let properties: [&dyn Property; 4] = [&Feasible, &NoJustifiedComplaint, &ParetoEfficient, &SharingIncentive];
        for property in properties {
            prop_assert_eq!(property.findings_exact(&problem, &tasks, &Rational::ZERO), []);
        }
        // Its sum of dominant shares is at least that of the equilibrium, which has the same pattern.
        let given = market(&float(&problem)).tasks;
        let shares = |i: usize| to_f64(problem.dominant_demand(i));
        let (best, of_given): (f64, f64) =
            ((0..tasks.len()).map(|i| to_f64(&tasks[i]) * shares(i)).sum(), (0..tasks.len()).map(|i| given[i] * shares(i)).sum());
        prop_assert!(best >= of_given - 1e-9, "{} {}", best, of_given);
    }

    #[test]
    fn exact_points_scale_with_units(problem in problems(1..4), scale in 1..40_i64) {
        let scale = q(scale, 7);
        let scaled = (0..problem.users()).map(|i| {
            let mut user = problem.user(i);
            user.demand.iter_mut().for_each(|d| *d *= &scale);
            user.limit = user.limit.map(|most| most / &scale);
            user
        });
        // Where rounding decides between two patterns units may matter: only where limits are far.
        let free = (0..problem.users()).all(|i| problem.limit(i).is_none());
        if free {
            let scaled = Problem::new(problem.resource_count(), scaled.collect::<Vec<_>>()).unwrap();
            let back: Vec<Rational> = exact(&scaled).into_iter().map(|x| x * &scale).collect();
            prop_assert_eq!(back, exact(&problem));
        }
    }

    /// Demands over eighteen orders of magnitude, weights over twelve, and limits exactly at the equilibrium.
    #[test]
    fn numbers_far_apart(
        users in vec((vec(option::weighted(0.8, (-9..10_i32, 1.0..10.0_f64)), 4), -6..7_i32, option::weighted(0.3, 0.0..2.0_f64)), 1..9),
        at_break in vec(any::<bool>(), 8),
    ) {
        let n = users.len() as f64;
        let users = users.into_iter().map(|(demand, weight, limit)| {
            let mut demand: Vec<f64> = demand.iter().map(|d| d.map_or(0.0, |(e, f)| f * 10_f64.powi(e))).collect();
            if demand.iter().all(|d| *d == 0.0) {
                demand[3] = 1e-9;
            }
            let dominant = demand.iter().copied().fold(0.0, f64::max);
            let user = User::new(demand).weight(10_f64.powi(weight));
            match limit {
                Some(limit) => user.limit(limit / dominant / n),
                None => user,
            }
        });
        let mut users: Vec<User<f64>> = users.collect();
        for _ in 0..2 {
            let problem = Problem::new(4, users.clone()).unwrap();
            let given = market(&problem);
            assert_equilibrium(&problem, &given);
            let tasks = exact(&problem.to_exact());
            prop_assert_eq!(NoJustifiedComplaint.findings_exact(&problem.to_exact(), &tasks, &Rational::ZERO), []);
            for ((user, x), _) in users.iter_mut().zip(given.tasks).zip(&at_break).filter(|(_, at)| **at) {
                user.limit = Some(x);
            }
        }
    }
}

/// Solves the same program in exponential cones: max sum e_i t_i with (t_i, 1, x_i) in the cone t <= log x. Also
/// returns whether the solver reached the accuracy requested.
fn by_clarabel(problem: &Problem<f64>) -> (Vec<f64>, bool) {
    let (n, width) = (problem.users(), problem.resource_count());
    let (mut rows, mut columns, mut values, mut right) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut put = |row: usize, column: usize, value: f64| {
        rows.push(row);
        columns.push(column);
        values.push(value);
    };
    let limited: Vec<usize> = (0..n).filter(|i| problem.limit(*i).is_some()).collect();
    // In dominant shares, so that its absolute tolerances mean something.
    let dominant = |i: usize| *problem.dominant_demand(i);
    for r in 0..width {
        (0..n).for_each(|i| put(r, i, problem.demand(i)[r] / dominant(i)));
        right.push(1.0);
    }
    for (k, &i) in limited.iter().enumerate() {
        put(width + k, i, 1.0);
        right.push(problem.limit(i).unwrap() * dominant(i));
    }
    let linear = right.len();
    for i in 0..n {
        put(linear + 3 * i, n + i, -1.0);
        put(linear + 3 * i + 2, i, -1.0);
        right.extend([0.0, 1.0, 0.0]);
    }
    let factors = CscMatrix::new_from_triplets(right.len(), 2 * n, rows, columns, values);
    let cost: Vec<f64> = (0..2 * n).map(|v| if v < n { 0.0 } else { -problem.entitlement(v - n) }).collect();
    let mut cones = vec![SupportedConeT::NonnegativeConeT(linear)];
    cones.extend((0..n).map(|_| SupportedConeT::ExponentialConeT()));
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-11,
        tol_gap_rel: 1e-11,
        tol_feas: 1e-11,
        ..DefaultSettings::default()
    };
    let none = CscMatrix::zeros((2 * n, 2 * n));
    let mut solver = DefaultSolver::new(&none, &cost, &factors, &right, &cones, settings).unwrap();
    solver.solve();
    let status = solver.solution.status;
    assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    ((0..n).map(|i| solver.solution.x[i] / dominant(i)).collect(), status == SolverStatus::Solved)
}

fn assert_agrees(problem: &Problem<f64>) {
    let given = market(problem);
    let (mut other, is_solved) = by_clarabel(problem);
    // Its point may exceed a bound a little; a part of it fits.
    let loads = problem.loads(&other).into_iter();
    let limits = (0..other.len()).filter_map(|i| problem.limit(i).map(|most| other[i] / most));
    let over = loads.chain(limits).fold(1.0, f64::max);
    other.iter_mut().for_each(|x| *x /= over);
    let lack = objective(problem, &given.tasks) - objective(problem, &other);
    // As accurate as its status: where limits are at the breakpoint it often ends as AlmostSolved.
    let accuracy = if is_solved { 1e-7 } else { 1e-4 };
    assert!((-1e-11..accuracy).contains(&lack), "{lack} {is_solved}");
    // A lack of 1e-9 moves single users by 1e-4, so no fixed tolerance of tasks would do. But the maximum y of
    // sum e_i log x_i has sum e_i (x_i / y_i - 1) <= 0 for all feasible x, so whatever the other's accuracy,
    // with r_i = x_i / y_i, sum e_i (r_i - 1 - log r_i) <= what the other lacks.
    let ratios = other.iter().zip(&given.tasks).map(|(x, y)| x / y).enumerate();
    let apart: f64 = ratios.map(|(i, r)| problem.entitlement(i) * (r - 1.0 - r.ln())).sum();
    assert!(apart <= lack + 1e-10, "{apart} {lack}: {other:?} {given:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn an_interior_point_method_agrees(problem in problems(1..5)) {
        let problem = float(&problem);
        // A limit of 0 has no logarithm.
        let users: Vec<User<f64>> =
            (0..problem.users()).map(|i| problem.user(i)).filter(|u| u.limit != Some(0.0)).collect();
        if !users.is_empty() {
            assert_agrees(&Problem::new(problem.resource_count(), users).unwrap());
        }
    }
}

#[test]
fn an_interior_point_method_agrees_on_many_users() {
    // 300 users of 5 resources by a multiplicative sequence.
    let users = (1..=300_u64).map(|i| {
        let part = |k: u64| ((i * (2 * k + 7) * 7919 + k * 104_729) % 1009) as f64 / 1009.0;
        let demand: Vec<f64> = (0..5).map(|r| if part(r) < 0.2 { 0.0 } else { part(r + 10) + 0.01 }).collect();
        let demand = if demand.iter().all(|d| *d == 0.0) { vec![0.5; 5] } else { demand };
        let user = User::new(demand).weight(0.25 + part(20));
        if i % 3 == 0 { user.limit((part(30) + 0.01) / 100.0) } else { user }
    });
    assert_agrees(&Problem::new(5, users.collect::<Vec<_>>()).unwrap());
}
