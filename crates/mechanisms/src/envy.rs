//! Nobody would rather have what another got.

use crate::property::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// Envy-freeness: what another holds, scaled to one's own entitlement, would not give more tasks than one
/// has. Of all whom a user envies, the finding names the one whose share would give him most (the first of
/// several).
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvyFree;

property!(EnvyFree, "envy_free", "nobody would get more tasks from what another holds, scaled to his own weight");

impl EnvyFree {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let n = problem.users();
        let entitlements: Vec<N> = (0..n).map(|i| problem.entitlement(i)).collect();
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) {
                continue;
            }
            let mut most: Option<(usize, N, usize)> = None;
            for other in (0..n).filter(|k| *k != user) {
                let Some((tasks_from, on)) = tasks_from(problem, user, other, &tasks[other]) else { continue };
                let scaled = tasks_from * &entitlements[user] / &entitlements[other];
                if most.as_ref().is_none_or(|(_, best, _)| scaled > *best) {
                    most = Some((other, scaled, on));
                }
            }
            let Some((other, gives, on)) = most else { continue };
            let due = match problem.limit(user) {
                Some(limit) => gives.or_less(limit.clone()),
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

/// How many tasks the user could run with what `other` holds, and the resource that would stop him.
fn tasks_from<N: Number>(problem: &Problem<N>, user: usize, other: usize, held: &N) -> Option<(N, usize)> {
    let theirs = problem.demand(other);
    let ratios = problem.demand(user).iter().zip(theirs).enumerate().filter(|(_, (own, _))| !own.is_zero());
    let ratios = ratios.map(|(r, (own, theirs))| (theirs.clone() * held / own, r));
    ratios.reduce(|a, b| if b.0 < a.0 { b } else { a })
}
