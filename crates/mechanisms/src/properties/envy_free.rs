//! Nobody would rather have what another got.

use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// Envy-freeness: what another holds, scaled to one's own entitlement, would not give more tasks than one
/// has. Of all whom a user envies, the finding names the one whose share would give him most (the first of
/// several).
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvyFree;

property!(EnvyFree, "envy_free", "nobody would get more tasks from what another holds, scaled to his own weight");

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
            let mut most: Option<(usize, N, usize)> = None;
            for other in (0..n).filter(|k| *k != user) {
                if near.is_some_and(|near| near.surely_gives_less(user, other)) {
                    continue;
                }
                let Some((tasks_from, on)) = tasks_from(problem, user, other, &tasks[other]) else { continue };
                let scaled = tasks_from * &entitlements[user] / &entitlements[other];
                if most.as_ref().is_none_or(|(_, best, _)| scaled > *best) {
                    most = Some((other, scaled, on));
                }
            }
            let Some((other, gives, on)) = most else { continue };
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

/// Who could envy anybody at all: not those who hold, of some resource they need, as much for their entitlement
/// as anybody. Under most mechanisms that is nearly everybody, and of 100,000 users there are too many pairs.
fn may_envy<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N, entitlements: &[N]) -> Vec<bool> {
    let mut most = vec![N::zero(); problem.resource_count()];
    for (user, x) in tasks.iter().enumerate() {
        for (most, d) in most.iter_mut().zip(problem.demand(user)) {
            let held = d.clone() * x / &entitlements[user];
            if held > *most {
                *most = held;
            }
        }
    }
    let may = |(user, x): (usize, &N)| {
        let mut needed = problem.demand(user).iter().zip(&most).filter(|(d, _)| !d.is_zero());
        needed.all(|(d, most)| exceeds(&(most.clone() * &entitlements[user] / d), x, tolerance))
    };
    tasks.iter().enumerate().map(may).collect()
}

/// How many tasks the user could run with what `other` holds, and the resource that would stop him.
fn tasks_from<N: Number>(problem: &Problem<N>, user: usize, other: usize, held: &N) -> Option<(N, usize)> {
    let theirs = problem.demand(other);
    let ratios = problem.demand(user).iter().zip(theirs).enumerate().filter(|(_, (own, _))| !own.is_zero());
    let ratios = ratios.map(|(r, (own, theirs))| (theirs.clone() * held / own, r));
    ratios.reduce(|a, b| if b.0 < a.0 { b } else { a })
}

/// The same in `f64`, to leave out of exact comparisons what is far from envy: of 10,000 users there are
/// 100 million pairs.
struct Near {
    width: usize,
    demands: Vec<f64>,
    /// What each user holds of each resource, over his entitlement.
    held: Vec<f64>,
    /// Tasks over entitlement.
    tasks: Vec<f64>,
}

impl Near {
    /// `None` if `f64` does not hold every number to 15 digits.
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

    /// Whether the other's share certainly gives fewer tasks than the user has: by more than rounding.
    fn surely_gives_less(&self, user: usize, other: usize) -> bool {
        const ROUNDING: f64 = 1e-12;
        let row = |u: usize| u * self.width..(u + 1) * self.width;
        let least = self.tasks[user] * (1.0 - ROUNDING);
        let (own, theirs) = (&self.demands[row(user)], &self.held[row(other)]);
        own.iter().zip(theirs).any(|(d, held)| *d > 0.0 && *held < least * d)
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

        /// What is left out of exact comparisons changes no finding; ties and hairs' breadths on purpose.
        #[test]
        fn leaving_out_what_is_far_from_envy_changes_nothing(
            users in prop::collection::vec((prop::collection::vec(0u8..4, 2), 1u8..3, 0u8..5, 0u8..3), 1..7),
        ) {
            let third = |n: u8| Rational::from(n) / Rational::from(3u8);
            // A 10^-18th more: nothing that f64 could see.
            let hair = Rational::ONE / Rational::from(10u64.pow(18));
            let tasks: Vec<Rational> = users.iter().map(|(_, _, x, h)| third(*x) + Rational::from(*h) * &hair).collect();
            let users = users.iter().map(|(d, w, ..)| {
                let demand: Vec<Rational> = d.iter().map(|d| third(*d)).collect();
                let demand = if d.iter().all(|d| *d == 0) { vec![Rational::ONE; 2] } else { demand };
                User::new(demand).weight(Rational::from(*w))
            });
            let problem = Problem::new(2, users).unwrap();
            let entitlements: Vec<Rational> = (0..problem.users()).map(|u| problem.entitlement(u)).collect();
            prop_assert!(Near::new(&problem, &tasks, &entitlements).is_some());
            for tolerance in [Rational::ZERO, hair.clone()] {
                let all = EnvyFree::compare(&problem, &tasks, &tolerance, &entitlements, None, None);
                prop_assert_eq!(EnvyFree::check(&problem, &tasks, &tolerance), all);
            }
        }
    }
}
