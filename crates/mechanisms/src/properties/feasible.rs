//! Nothing is given away twice.

use crate::properties::{exceeds, property};
use crate::{Finding, Measure, Number, Problem};

/// No resource is given away more than once, and nobody gets a negative number of tasks or more than he
/// wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feasible;

property!(Feasible, "feasible", "no resource is given away more than once, and nobody gets more than he wants");

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
            let most = problem.limit(user).filter(|most| exceeds(x, most, tolerance));
            let zero = N::zero();
            if let Some(due) = most.or((*x < zero).then_some(&zero)) {
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
