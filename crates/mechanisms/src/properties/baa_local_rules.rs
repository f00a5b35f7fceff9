//! Local rules of bottleneck-aware allocation: what it guarantees each user about its dominant resource.

use crate::properties::bottleneck_max_fair::largest_shares;
use crate::properties::{exceeds, has_all_wanted, property};
use crate::{Finding, Measure, Number, Problem};

/// Local rules of bottleneck-aware allocation (Wang and Varman, FAST'14; Bao, 2015, 2.1 to 2.3; here with weights and
/// any number of resources). Users with the same dominant resource (the first of several) form a class. Within a class
/// all users have the same share of that resource per weight (rules 1 and 2), and no user of another class has more of
/// it (rule 3).
///
/// Together: no user has a larger share per weight of a user's dominant resource, unless that user has all it wants.
/// The finding names the first user with the largest share: one of the same class violates rule 1 or 2, one of another
/// class rule 3. O(users × resources).
#[derive(Clone, Copy, Debug, Default)]
pub struct BaaLocalRules;

property!(
    BaaLocalRules,
    "baa_local_rules",
    "no user has, per weight, a larger share of another user's dominant resource",
    "a user has, per weight, a larger share of another user's dominant resource"
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
