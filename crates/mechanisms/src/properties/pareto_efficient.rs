//! Pareto efficiency: no capacity that a user could use remains idle.

use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// Pareto efficiency: no user could get more without another getting less. Since tasks take resources in fixed
/// proportions, this means that every user who wants more demands some of a saturated resource. The finding names the
/// resource that would limit the user next, and the number of tasks it could have. O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct ParetoEfficient;

property!(
    ParetoEfficient,
    "pareto",
    "no user could get more without another getting less",
    "a user could get more although no other would get less"
);

impl ParetoEfficient {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let free: Vec<N> = problem.loads(tasks).into_iter().map(|load| N::one() - load).collect();
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) {
                continue;
            }
            let demand = problem.demand(user);
            let demanded = || (0..free.len()).filter(|r| !demand[*r].is_zero());
            if demanded().any(|r| free[r] <= *tolerance) {
                continue;
            }
            // The resource that would limit the user next.
            let more = |r: usize| free[r].clone() / &demand[r];
            let Some(on) = demanded().reduce(|a, b| if more(b) < more(a) { b } else { a }) else { continue };
            let possible = x.clone() + more(on);
            let due = match problem.limit(user) {
                Some(limit) => possible.smaller(limit.clone()),
                None => possible,
            };
            if exceeds(&due, x, tolerance) {
                let (has, measure) = (x.clone(), Measure::Tasks);
                findings.push(Finding {
                    property: Self::NAME,
                    who: Some(user),
                    against: None,
                    on: Some(on),
                    has,
                    due,
                    measure,
                });
            }
        }
        findings
    }
}
