//! Feasibility: no resource is allocated beyond its capacity.

use crate::properties::{exceeds, property};
use crate::{Finding, Measure, Number, Problem};

/// Feasibility: no resource is allocated beyond its capacity, and every user gets at least 0 and at most all the tasks
/// it wants. O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct Feasible;

property!(
    Feasible,
    "feasible",
    "no resource is allocated beyond its capacity, and no user gets more tasks than it wants",
    "a resource is allocated beyond its capacity, or a user gets more tasks than it wants"
);

impl Feasible {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let finding = |who, on, has: &N, due: &N, measure| Finding {
            property: Self::NAME,
            who,
            against: None,
            on,
            has: has.clone(),
            due: due.clone(),
            measure,
        };
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            let limit = problem.limit(user).filter(|limit| exceeds(x, limit, tolerance));
            let zero = N::zero();
            if let Some(due) = limit.or((*x < zero).then_some(&zero)) {
                findings.push(finding(Some(user), None, x, due, Measure::Tasks));
            }
        }
        for (r, load) in problem.loads(tasks).iter().enumerate() {
            if exceeds(load, &N::one(), tolerance) {
                findings.push(finding(None, Some(r), load, &N::one(), Measure::Share));
            }
        }
        findings
    }
}
