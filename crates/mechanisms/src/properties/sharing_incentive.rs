//! Sharing incentive: no user is worse off than with its entitlement of every resource for itself.

use crate::properties::{exceeds, property};
use crate::{Finding, Measure, Number, Problem};

/// Sharing incentive: every user gets at least the tasks that fit into its entitlement of every resource (for equal
/// users one n-th of everything), or all it wants. O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct SharingIncentive;

property!(
    SharingIncentive,
    "sharing_incentive",
    "every user has at least what its entitlement of every resource would give it",
    "a user has less than its entitlement of every resource would give it"
);

impl SharingIncentive {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            let alone = problem.entitlement(user) / problem.dominant_demand(user);
            let due = match problem.limit(user) {
                Some(limit) => alone.smaller(limit.clone()),
                None => alone,
            };
            if exceeds(&due, x, tolerance) {
                findings.push(Finding {
                    property: Self::NAME,
                    who: Some(user),
                    against: None,
                    on: Some(problem.dominant_resource(user)),
                    has: x.clone(),
                    due,
                    measure: Measure::Tasks,
                });
            }
        }
        findings
    }
}
