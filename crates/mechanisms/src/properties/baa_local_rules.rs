//! What bottleneck-aware allocation promises each user about the resource he needs most.

use crate::properties::bottleneck_max_fair::largest_shares;
use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// The local rules of bottleneck-aware allocation (Wang and Varman, FAST'14; paper 002, 2.1 to 2.3; weighted
/// and for any number of resources: reference 4.1, 4.2). Users whose tasks take the largest share of the
/// same resource (the first of several) are a class. Within a class everybody has the same share of that
/// resource for his weight (rules 1 and 2), and nobody of another class has more of it (rule 3).
///
/// Both say that nobody has a larger share, for his weight, of the resource a user needs most; who has all
/// he wants does not complain of having less. The finding names who has the largest one (the first of
/// several): one of the same class breaks rule 1 or 2, one of another breaks rule 3.
#[derive(Clone, Copy, Debug, Default)]
pub struct BaaLocalRules;

property!(
    BaaLocalRules,
    "baa_local_rules",
    "nobody has, for his weight, a larger share of the resource that a user's tasks take most of"
);

impl BaaLocalRules {
    pub(crate) fn check<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Finding<N>> {
        let largest = largest_shares(problem, tasks);
        let mut findings = Vec::new();
        for (user, x) in tasks.iter().enumerate() {
            if has_all_wanted(problem, user, x, tolerance) {
                continue;
            }
            let on = problem.dominant_resource(user);
            let has = x.clone() / problem.weight(user) * &problem.demand(user)[on];
            let (due, against) = largest[on].clone();
            if exceeds(&due, &has, tolerance) {
                findings.push(Finding {
                    property: Self::NAME,
                    who: Some(user),
                    against: Some(against),
                    on: Some(on),
                    has,
                    due,
                    measure: Measure::SharePerWeight,
                });
            }
        }
        findings
    }
}
