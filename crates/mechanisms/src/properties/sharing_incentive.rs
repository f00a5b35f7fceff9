//! Nobody is worse off than with a part of everything for himself.

use crate::properties::{exceeds, property};
use crate::{Finding, Measure, Number, Problem};

/// Sharing incentive: everybody gets at least the tasks that fit into his entitlement of every resource
/// (for equal users an n-th of everything), or all he wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharingIncentive;

property!(
    SharingIncentive,
    "sharing_incentive",
    "nobody has less than his entitlement of every resource would give him"
);

impl SharingIncentive {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            let alone = problem.entitlement(user) / problem.dominant_demand(user);
            let due = match problem.limit(user) {
                Some(most) => alone.smaller(most.clone()),
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
