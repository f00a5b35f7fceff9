//! Dominant resource fairness.

use crate::mechanism::mechanism;
use crate::solvers::hierarchical_filling::fill_accounts;
use crate::solvers::progressive_filling::{Ramp, fill};
use crate::{Allocation, MechanismError, MechanismOptions, Number, Problem};

/// Dominant resource fairness (Ghodsi et al., NSDI'11) by progressive filling: every user's dominant share rises in
/// proportion to its weight. When a resource saturates, the users who demand some of it stop and the others continue
/// (Parkes, Procaccia and Shah, EC'12), so that zero demands waste nothing.
///
/// With a tree of accounts, children share what their parent gets (hierarchical DRF, Bhattacharya et al., SoCC'13,
/// filled in rounds): the children of each account rise in proportion to their weights, and the account's share rises
/// by the largest component of what they get together. Naive hierarchical DRF differs: there an account's share is the
/// largest component of the plain sum of all it holds, so that an account which holds much of a resource nobody else
/// demands counts as served, and its other users starve. Here every user gets at least its
/// [entitlement](Problem::entitlement) of its dominant resource, or all it wants. With accounts and zero demands
/// together a user can gain by demanding what it does not need. The level is that of the root's children: share over
/// weight.
///
/// Expected O(users × resources) for each resource that saturates; with accounts O(depth × resources × log users) for
/// each user, and O(users × resources) for each resource that saturates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drf;

mechanism!(Drf, "drf", "raise all dominant shares in proportion to weights until none can rise");

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
            Ramp { start: N::zero(), end: problem.limit(i).map(|limit| limit.clone() / &slope), slope }
        }))
    }
}
