//! Envy-freeness: no user would prefer what another holds.

use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// Envy-freeness: what another user holds, scaled to one's own entitlement, would not run more tasks than one has. Of
/// all users whom a user envies, the finding names the one whose holding would run most tasks (the first of several).
///
/// O(users² × resources) in the worst case; users who hold at least as much of some needed resource, relative to their
/// entitlement, as every other user are excluded in O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvyFree;

property!(
    EnvyFree,
    "envy_free",
    "no user would run more tasks with what another holds, scaled to its own weight",
    "a user would run more tasks with what another holds, scaled to its own weight"
);

impl EnvyFree {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let entitlements: Vec<N> = (0..problem.users()).map(|i| problem.entitlement(i)).collect();
        let near = if N::EXACT { Near::new(problem, tasks, &entitlements) } else { None };
        let may_envy = may_envy(problem, tasks, tolerance, &entitlements);
        Self::compare(problem, tasks, tolerance, &entitlements, Some(&may_envy), near.as_ref())
    }

    fn compare<N: Number>(
        problem: &Problem<N>,
        tasks: &[N],
        tolerance: &N,
        entitlements: &[N],
        may_envy: Option<&[bool]>,
        near: Option<&Near>,
    ) -> Vec<Finding<N>> {
        let n = problem.users();
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) || may_envy.is_some_and(|may| !may[user]) {
                continue;
            }
            let mut largest: Option<(usize, N, usize)> = None;
            for other in (0..n).filter(|k| *k != user) {
                if near.is_some_and(|near| near.surely_gives_less(user, other)) {
                    continue;
                }
                let Some((tasks_from, on)) = tasks_from(problem, user, other, &tasks[other]) else { continue };
                let scaled = tasks_from * &entitlements[user] / &entitlements[other];
                if largest.as_ref().is_none_or(|(_, best, _)| scaled > *best) {
                    largest = Some((other, scaled, on));
                }
            }
            let Some((other, gives, on)) = largest else { continue };
            let due = match problem.limit(user) {
                Some(limit) => gives.smaller(limit.clone()),
                None => gives,
            };
            if exceeds(&due, x, tolerance) {
                findings.push(Finding {
                    property: Self::NAME,
                    who: Some(user),
                    against: Some(other),
                    on: Some(on),
                    has: x.clone(),
                    due,
                    measure: Measure::Tasks,
                });
            }
        }
        findings
    }
}

/// Returns which users may envy another at all. A user who holds, of some resource it needs, as much for its
/// entitlement as any user does not. Under most mechanisms that excludes nearly all users; 100,000 users have too many
/// pairs to compare.
fn may_envy<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N, entitlements: &[N]) -> Vec<bool> {
    let mut largest = vec![N::zero(); problem.resource_count()];
    for (user, x) in tasks.iter().enumerate() {
        for (largest, d) in largest.iter_mut().zip(problem.demand(user)) {
            let held = d.clone() * x / &entitlements[user];
            if held > *largest {
                *largest = held;
            }
        }
    }
    let may = |(user, x): (usize, &N)| {
        let mut needed = problem.demand(user).iter().zip(&largest).filter(|(d, _)| !d.is_zero());
        needed.all(|(d, largest)| exceeds(&(largest.clone() * &entitlements[user] / d), x, tolerance))
    };
    tasks.iter().enumerate().map(may).collect()
}

/// Returns the number of tasks that the user could run with what `other` holds, and the resource that would limit it.
fn tasks_from<N: Number>(problem: &Problem<N>, user: usize, other: usize, held: &N) -> Option<(N, usize)> {
    let theirs = problem.demand(other);
    let ratios = problem.demand(user).iter().zip(theirs).enumerate().filter(|(_, (own, _))| !own.is_zero());
    let ratios = ratios.map(|(r, (own, theirs))| (theirs.clone() * held / own, r));
    ratios.reduce(|a, b| if b.0 < a.0 { b } else { a })
}

/// Approximation in `f64` by which exact comparisons are skipped where envy is out of the question: 10,000 users have
/// 100 million pairs.
struct Near {
    width: usize,
    demands: Vec<f64>,
    /// Holding of each resource over the user's entitlement, user-major.
    held: Vec<f64>,
    /// Tasks over entitlement, for each user.
    tasks: Vec<f64>,
}

impl Near {
    /// Returns `None` unless `f64` holds every number to 15 digits.
    fn new<N: Number>(problem: &Problem<N>, tasks: &[N], entitlements: &[N]) -> Option<Near> {
        let width = problem.resource_count();
        let float = |n: &N| Some(n.to_f64()).filter(|x| x.is_normal() || n.is_zero());
        let mut near = Near { width, demands: Vec::new(), held: Vec::new(), tasks: Vec::new() };
        for (user, (x, e)) in tasks.iter().zip(entitlements).enumerate() {
            near.tasks.push(float(&(x.clone() / e))?);
            for demand in problem.demand(user) {
                near.demands.push(float(demand)?);
                near.held.push(float(&(demand.clone() * x / e))?);
            }
        }
        Some(near)
    }

    /// Returns whether the other's holding certainly runs fewer tasks than the user has, by more than rounding.
    fn surely_gives_less(&self, user: usize, other: usize) -> bool {
        const ROUNDING: f64 = 1e-12;
        let row = |u: usize| u * self.width..(u + 1) * self.width;
        let threshold = self.tasks[user] * (1.0 - ROUNDING);
        let (own, theirs) = (&self.demands[row(user)], &self.held[row(other)]);
        own.iter().zip(theirs).any(|(d, held)| *d > 0.0 && *held < threshold * d)
    }
}

#[cfg(test)]
mod tests {
    use evenhand_model::Rational;
    use proptest::prelude::*;

    use super::*;
    use crate::User;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Skipping comparisons changes no finding; demands, tasks and weights tie or differ by 10^-18 on purpose.
        #[test]
        fn skipped_comparisons_change_no_finding(
            users in prop::collection::vec((prop::collection::vec(0u8..4, 2), 1u8..3, 0u8..5, 0u8..3), 1..7),
        ) {
            let third = |n: u8| Rational::from(n) / Rational::from(3u8);
            // 10^-18: below the resolution of f64.
            let epsilon = Rational::ONE / Rational::from(10u64.pow(18));
            let tasks: Vec<Rational> = users.iter().map(|(_, _, x, h)| third(*x) + Rational::from(*h) * &epsilon).collect();
            let users = users.iter().map(|(d, w, ..)| {
                let demand: Vec<Rational> = d.iter().map(|d| third(*d)).collect();
                let demand = if d.iter().all(|d| *d == 0) { vec![Rational::ONE; 2] } else { demand };
                User::new(demand).weight(Rational::from(*w))
            });
            let problem = Problem::new(2, users).unwrap();
            let entitlements: Vec<Rational> = (0..problem.users()).map(|u| problem.entitlement(u)).collect();
            prop_assert!(Near::new(&problem, &tasks, &entitlements).is_some());
            for tolerance in [Rational::ZERO, epsilon.clone()] {
                let all = EnvyFree::compare(&problem, &tasks, &tolerance, &entitlements, None, None);
                prop_assert_eq!(EnvyFree::check(&problem, &tasks, &tolerance), all);
            }
        }
    }
}
