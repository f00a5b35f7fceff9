//! Nobody who wants more has less than his entitlement where it counts.

use crate::property::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// No justified complaint (Dolev, Feitelson, Halpern, Kupferman and Linial, ITCS'12; "bottleneck-based
/// fairness" in paper 000): who wants more holds at least his entitlement of some resource that is used
/// up. Where that fails, the finding names the used-up resource on which he is nearest to it (the first
/// of several). If nothing that he demands is used up he can complain whatever he holds; the finding then
/// names the resource he holds most of, and what is due is what he could have of it for nothing, if that is
/// more than his entitlement.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJustifiedComplaint;

property!(
    NoJustifiedComplaint,
    "no_justified_complaint",
    "who wants more holds his entitlement of a resource that is used up"
);

impl NoJustifiedComplaint {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let loads = problem.loads(tasks);
        let used_up: Vec<bool> = loads.iter().map(|load| load.clone() + tolerance >= N::one()).collect();
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
            let (on, due, complains) = match most(&|r| used_up[r]) {
                Some(on) => {
                    let complains = exceeds(&due, &(demand[on].clone() * x), tolerance);
                    (on, due, complains)
                }
                None => {
                    let on = problem.dominant_resource(user);
                    let possible = demand[on].clone() * (x.clone() + tasks_for_nothing(problem, user, x, &loads));
                    (on, due.or_more(possible), true)
                }
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

/// How many more tasks the user could have while everybody else keeps his.
fn tasks_for_nothing<N: Number>(problem: &Problem<N>, user: usize, tasks: &N, loads: &[N]) -> N {
    let demanded = problem.demand(user).iter().zip(loads).filter(|(d, _)| !d.is_zero());
    let room = demanded.map(|(d, load)| (N::one() - load) / d);
    let wanted = problem.limit(user).map(|most| most.clone() - tasks);
    room.chain(wanted).reduce(N::or_less).unwrap_or_else(N::zero)
}
