//! Nobody who wants more has less than his entitlement where it counts.

use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// No justified complaint (Dolev, Feitelson, Halpern, Kupferman and Linial, ITCS'12; "bottleneck-based
/// fairness" in paper 000): who wants more holds at least his entitlement of some resource that is used
/// up. Where that fails, the finding names the used-up resource on which he is nearest to it (the first
/// of several). If nothing that he demands is used up he can complain whatever he holds, and the finding
/// names the resource he holds most of, with the share he has: it may exceed what is due.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJustifiedComplaint;

property!(
    NoJustifiedComplaint,
    "no_justified_complaint",
    "who wants more holds his entitlement of a resource that is used up"
);

impl NoJustifiedComplaint {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let used_up: Vec<bool> = problem.loads(tasks).into_iter().map(|load| load + tolerance >= N::one()).collect();
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) {
                continue;
            }
            let demand = problem.demand(user);
            let most = |among: &dyn Fn(usize) -> bool| {
                let among = (0..demand.len()).filter(|r| !demand[*r].is_zero() && among(*r));
                among.reduce(|best, r| if demand[r] > demand[best] { r } else { best })
            };
            let due = problem.entitlement(user);
            let (on, complains) = match most(&|r| used_up[r]) {
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
