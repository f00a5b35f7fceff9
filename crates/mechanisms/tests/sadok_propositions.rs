//! The propositions of Sadok et al. (2021), section 5, as executable statements: each as the paper states it, on random
//! instances in exact rationals, and whether it holds.
//!
//! As in the paper, every user demands some of every resource (theta > 0) and all weights are equal. An instance has
//! arbitrary commitments. Demand theta is what a user wants: `limit` tasks of `demand`.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Kind, exact, problems, ratio, users_of};
use evenhand_mechanisms::{Problem, User};
use evenhand_model::Rational;
use proptest::prelude::*;

/// The paper's instances: demands above 0, equal weights, arbitrary commitments, some users without limit.
const PAPER: Kind = Kind { zeros: false, weights: false, ..Kind::ANY };

fn one_over(n: usize) -> Rational {
    ratio(1, n as u64)
}

/// Returns the paper's utility (Eq. 1) of holding so many tasks: the fraction of the demand that they are; for an
/// unbounded demand, their number, which orders allocations alike.
fn utility(user: &User<Rational>, tasks: &Rational) -> Rational {
    match &user.limit {
        None => tasks.clone(),
        Some(most) if most.is_zero() => Rational::ONE,
        Some(most) => (tasks / most).min(Rational::ONE),
    }
}

/// Returns the number of tasks a user can run with these amounts.
fn tasks_of(user: &User<Rational>, held: &[Rational]) -> Rational {
    held.iter().zip(&user.demand).map(|(o, d)| o / d).min().unwrap()
}

fn held(user: &User<Rational>, tasks: &Rational) -> Vec<Rational> {
    user.demand.iter().map(|d| d * tasks).collect()
}

/// Returns a user's report: each demand multiplied by a factor, and the limit too.
fn misreport(truth: &User<Rational>, factors: &[Rational], limit: &Rational) -> User<Rational> {
    User {
        demand: truth.demand.iter().zip(factors).map(|(d, f)| d * f).collect(),
        limit: truth.limit.as_ref().map(|most| most * limit),
        ..truth.clone()
    }
}

/// Factors of misreports: the truth, close to it, far from it.
fn factor() -> impl Strategy<Value = Rational> {
    prop_oneof![
        2 => Just(Rational::ONE),
        2 => (1..=20_u64, 1..=20_u64).prop_map(|(a, b)| ratio(a, b)),
        1 => (90..=110_u64).prop_map(|a| ratio(a, 100)),
        1 => Just(ratio(1, 1000)),
        1 => Just(ratio(1000, 1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Proposition 1 (bottleneck): "the allocation of SDRF guarantees that all users have their demands met, or there
    /// is at least one bottleneck resource", of which all capacity is allocated. Holds.
    #[test]
    fn proposition_1_all_users_are_satisfied_or_a_resource_is_saturated(problem in problems(PAPER, "sdrf")) {
        let tasks = exact("sdrf", &problem).tasks;
        let loads = problem.loads(&tasks);
        let satisfied = (0..problem.users()).all(|i| problem.limit(i) == Some(&tasks[i]));
        prop_assert!(satisfied || loads.contains(&Rational::ONE), "{tasks:?} {loads:?}");
        prop_assert!(loads.iter().all(|load| *load <= Rational::ONE));
    }

    /// Proposition 2 (truth in the stage): "when users consider only the utility in the stage, SDRF is strategy-proof".
    /// Holds: no random misreport of demands and limit yields more.
    #[test]
    fn proposition_2_no_misreport_is_profitable_in_the_stage(
        problem in problems(PAPER, "sdrf"),
        who in 0..8_usize,
        misreports in proptest::collection::vec((proptest::collection::vec(factor(), 4), factor()), 8)
    ) {
        let who = who % problem.users();
        let truth = problem.user(who);
        let truthful = utility(&truth, &exact("sdrf", &problem).tasks[who]);
        for (factors, limit) in misreports {
            let declared = misreport(&truth, &factors, &limit);
            let mut users = users_of(&problem);
            users[who] = declared.clone();
            let given = exact("sdrf", &Problem::new(problem.resource_count(), users).unwrap()).tasks;
            let misreporting = utility(&truth, &tasks_of(&truth, &held(&declared, &given[who])));
            prop_assert!(misreporting <= truthful, "{declared:?} yields {misreporting} instead of {truthful}");
        }
    }

    /// Proposition 4 (no waste): "if there is another allocation O' in which nobody has more of anything, and user i*
    /// less of r*, then u_i*(o_i*) > u_i*(o'_i*)": any reduction of what a user holds lowers its utility. Holds.
    #[test]
    fn proposition_4_any_reduction_lowers_utility(
        problem in problems(PAPER, "sdrf"), part in 0..=9_u64
    ) {
        let tasks = exact("sdrf", &problem).tasks;
        for (i, x) in tasks.iter().enumerate().filter(|(_, x)| !x.is_zero()) {
            let user = problem.user(i);
            for r in 0..problem.resource_count() {
                let mut less = held(&user, x);
                less[r] = &less[r] * ratio(part, 10);
                prop_assert!(utility(&user, &tasks_of(&user, &less)) < utility(&user, x), "user {i}, resource {r}");
            }
        }
    }

    /// Proposition 5 (strict Pareto efficiency): "for any other possible allocation O', if there is a user i with
    /// u_i(o'_i) > u_i(o_i), there must be another user j with u_j(o'_j) < u_j(o_j)". Holds: by Proposition 4 the
    /// others keep their utilities only if they keep all they hold, and no user can run more with what remains.
    #[test]
    fn proposition_5_no_user_can_gain_unless_another_loses(problem in problems(PAPER, "sdrf")) {
        let tasks = exact("sdrf", &problem).tasks;
        let loads = problem.loads(&tasks);
        for (i, x) in tasks.iter().enumerate() {
            let user = problem.user(i);
            let left: Vec<Rational> = loads.iter().map(|load| Rational::ONE - load).collect();
            let better = x + tasks_of(&user, &left);
            prop_assert!(utility(&user, &better) <= utility(&user, x), "user {i} of {tasks:?}");
        }
    }

    /// Proposition 6 (individual rationality): "any user can use a strategy that makes the system return an allocation
    /// with u_i(o_i) >= u_i((1/n, ..., 1/n))". Holds: a user who never reports more than 1/n of any resource never
    /// overuses, so it has no commitment, and whatever the others' commitments and reports it gets at least an equal
    /// split.
    #[test]
    fn proposition_6_a_user_who_never_overuses_has_an_equal_split(problem in problems(PAPER, "sdrf"), who in 0..8_usize) {
        let who = who % problem.users();
        let truth = problem.user(who);
        let equal = vec![one_over(problem.users()); problem.resource_count()];
        let alone = tasks_of(&truth, &equal);
        let modest = truth.limit.clone().map_or(alone.clone(), |most| most.min(alone.clone()));
        let declared = User { limit: Some(modest), commitment: Vec::new(), ..truth.clone() };
        let mut users = users_of(&problem);
        users[who] = declared.clone();
        let given = exact("sdrf", &Problem::new(problem.resource_count(), users).unwrap()).tasks;
        prop_assert!(utility(&truth, &given[who]) >= utility(&truth, &alone));
        // It remains without commitment: overuse is what is held above 1/n.
        let over = held(&declared, &given[who]).into_iter().any(|o| o > one_over(problem.users()));
        prop_assert!(!over);
    }
}

/// Proposition 3 (truth in the repeated game): "when users judge by the expected long-term utility (Eq. 2), SDRF is
/// strategy-proof, whatever their discounts". Does not hold: four users of one resource, delta and discount 9/10. At t
/// = 0 user 0 wants all of it and no other user any; from then on all want 3/10. Overuse at t = 0 commits user 0, so
/// that it gets less than the others from then on; reporting 1/4 does not. Utility is relative to the demand of the
/// moment: a share is worth more when less is wanted.
///
/// `errata.rs` has the totals over 5000 stages in `f64` and other discounts. Here exactly, as a proof: even if every
/// stage after the 60th gave the truth everything and the misreport nothing, the misreport is profitable.
#[test]
fn proposition_3_a_misreport_is_profitable_in_the_repeated_game() {
    const STAGES: usize = 60;
    let (delta, discount) = (ratio(9, 10), ratio(9, 10));
    let play = |declared_first: Rational| {
        let mut commitments = vec![Rational::ZERO; 4];
        let (mut total, mut factor) = (Rational::ZERO, Rational::ONE - &discount);
        for t in 0..STAGES {
            let declared = |i: usize| match (t, i) {
                (0, 0) => declared_first.clone(),
                (0, _) => Rational::ZERO,
                _ => ratio(3, 10),
            };
            let users =
                (0..4).map(|i| User::new([Rational::ONE]).limit(declared(i)).commitment([commitments[i].clone()]));
            let given = exact("sdrf", &Problem::new(1, users).unwrap()).tasks;
            let wanted = if t == 0 { Rational::ONE } else { ratio(3, 10) };
            total += &factor * (&given[0] / &wanted).min(Rational::ONE);
            factor = &factor * &discount;
            for (c, o) in commitments.iter_mut().zip(&given) {
                // Causal form of Eq. 3.
                *c = &delta * &*c + (Rational::ONE - &delta) * (o - ratio(1, 4)).max(Rational::ZERO);
            }
        }
        total
    };
    let later: Rational = (0..STAGES).fold(Rational::ONE, |left, _| left * &discount);
    let (truth, misreport) = (play(Rational::ONE), play(ratio(1, 4)));
    assert!(misreport > truth + later);
}
