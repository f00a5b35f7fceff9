//! Dominant resource fairness.

use crate::mechanism::mechanism;
use crate::solvers::hierarchical_filling::fill_accounts;
use crate::solvers::progressive_filling::{Ramp, fill};
use crate::{Allocation, MechanismError, MechanismOptions, Number, Problem};

/// Dominant resource fairness (Ghodsi et al., NSDI'11) by progressive filling: everybody's dominant
/// share rises in proportion to weights. When a resource is used up, who demands some of it stays, and
/// the others go on (Parkes, Procaccia and Shah, EC'12), so that zero demands waste nothing.
///
/// With accounts a child shares what its parent gets (hierarchical DRF, Bhattacharya et al., SoCC'13, filled
/// in rounds): the children of each account rise in proportion to their weights, and the account's share
/// rises by the largest component of what they get together. It differs from naive hierarchical DRF, in
/// which an account's share is the largest component of the plain sum of all it holds: there, an account
/// that holds much of a resource nobody else wants counts as served, and its other users starve. Everybody
/// has at least his [entitlement](Problem::entitlement) of his dominant resource, or all he wants. But with
/// accounts and zero demands together a user can gain by demanding what he does not need. The level is that
/// of the root's children: their share over their weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drf;

mechanism!(Drf, "drf", "raise everybody's dominant share for his weight until nobody can get more");

impl Drf {
    pub(crate) fn solve<N: Number>(
        problem: &Problem<N>,
        _: &MechanismOptions,
    ) -> Result<Allocation<N>, MechanismError> {
        if let Some(tree) = problem.account_tree() {
            return Ok(fill_accounts(problem, tree));
        }
        Ok(fill(problem, |i| {
            let slope = problem.weight(i).clone() / problem.dominant_demand(i);
            Ramp { start: N::zero(), end: problem.limit(i).map(|most| most.clone() / &slope), slope }
        }))
    }
}
