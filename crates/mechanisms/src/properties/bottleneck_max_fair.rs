//! Bottleneck max fairness: every user has the largest share of some bottleneck.

use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// Bottleneck max fairness (Bonald and Roberts, SIGMETRICS'15, here with weights): every user who wants more has, of
/// some saturated resource, a share per weight that no user exceeds.
///
/// The finding names the saturated resource on which the user's share comes nearest to the largest one (as a ratio; the
/// first of several) and the first user who has the largest one. If the user demands no saturated resource, the finding
/// names the resource that would limit it next and the share it could have. Whether allocations exceed capacity is
/// checked by [`Feasible`](crate::Feasible). O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct BottleneckMaxFair;

property!(
    BottleneckMaxFair,
    "bottleneck_max_fair",
    "every user who wants more has, per weight, the largest share of some saturated resource",
    "a user who wants more has, per weight, the largest share of no saturated resource"
);

impl BottleneckMaxFair {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let free: Vec<N> = problem.loads(tasks).into_iter().map(|load| N::one() - load).collect();
        let largest = largest_shares(problem, tasks);
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) {
                continue;
            }
            let demand = problem.demand(user);
            let per_weight = x.clone() / problem.weight(user);
            let mut nearest: Option<(N, usize)> = None;
            let mut is_largest = false;
            for r in (0..demand.len()).filter(|r| !demand[*r].is_zero() && free[*r] <= *tolerance) {
                let share = per_weight.clone() * &demand[r];
                let highest = &largest[r].0;
                if !exceeds(highest, &share, tolerance) {
                    is_largest = true;
                    break;
                }
                let ratio = share / highest;
                if nearest.as_ref().is_none_or(|(best, _)| ratio > *best) {
                    nearest = Some((ratio, r));
                }
            }
            if is_largest {
                continue;
            }
            let (on, against, due) = match nearest {
                Some((_, r)) => (r, Some(largest[r].1), largest[r].0.clone()),
                None => {
                    let demanded = (0..demand.len()).filter(|r| !demand[*r].is_zero());
                    let more = |r: usize| free[r].clone() / &demand[r];
                    let Some(on) = demanded.reduce(|a, b| if more(b) < more(a) { b } else { a }) else { continue };
                    let possible = x.clone() + more(on);
                    let possible = match problem.limit(user) {
                        Some(limit) => possible.smaller(limit.clone()),
                        None => possible,
                    };
                    (on, None, possible * &demand[on] / problem.weight(user))
                }
            };
            let has = per_weight * &demand[on];
            findings.push(Finding {
                property: Self::NAME,
                who: Some(user),
                against,
                on: Some(on),
                has,
                due,
                measure: Measure::SharePerWeight,
            });
        }
        findings
    }
}

/// Returns, for each resource, the largest share per weight and the first user who has it.
pub(crate) fn largest_shares<N: Number>(problem: &Problem<N>, tasks: &[N]) -> Vec<(N, usize)> {
    let mut largest = vec![(N::zero(), 0); problem.resource_count()];
    for (user, x) in tasks.iter().enumerate() {
        let per_weight = x.clone() / problem.weight(user);
        for (highest, d) in largest.iter_mut().zip(problem.demand(user)).filter(|(_, d)| !d.is_zero()) {
            let share = per_weight.clone() * d;
            if share > highest.0 {
                *highest = (share, user);
            }
        }
    }
    largest
}
