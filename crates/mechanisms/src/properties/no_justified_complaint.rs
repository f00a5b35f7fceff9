//! No justified complaint: every user who wants more holds its entitlement of a bottleneck.

use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// No justified complaint (Dolev, Feitelson, Halpern, Kupferman and Linial, ITCS'12; "bottleneck-based fairness" in
/// Zeldes and Feitelson, 2013): a user who wants more holds at least its entitlement of some saturated resource.
///
/// The finding names the saturated resource on which the user is nearest to its entitlement (the first of several). A
/// user for whom no demanded resource is saturated can complain whatever it holds; the finding then names the resource
/// of which it holds most, and the share it has may exceed what is due. O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJustifiedComplaint;

property!(
    NoJustifiedComplaint,
    "no_justified_complaint",
    "every user who wants more holds its entitlement of a saturated resource",
    "a user who wants more holds less than its entitlement of every saturated resource that it demands"
);

impl NoJustifiedComplaint {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let saturated: Vec<bool> = problem.loads(tasks).into_iter().map(|load| load + tolerance >= N::one()).collect();
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) {
                continue;
            }
            let demand = problem.demand(user);
            let largest_among = |among: &dyn Fn(usize) -> bool| {
                let among = (0..demand.len()).filter(|r| !demand[*r].is_zero() && among(*r));
                among.reduce(|best, r| if demand[r] > demand[best] { r } else { best })
            };
            let due = problem.entitlement(user);
            let (on, complains) = match largest_among(&|r| saturated[r]) {
                Some(on) => (on, exceeds(&due, &(demand[on].clone() * x), tolerance)),
                None => (problem.dominant_resource(user), true),
            };
            if complains {
                findings.push(Finding {
                    property: Self::NAME,
                    who: Some(user),
                    against: None,
                    on: Some(on),
                    has: demand[on].clone() * x,
                    due,
                    measure: Measure::Share,
                });
            }
        }
        findings
    }
}
