//! Asset fairness.

use crate::mechanism::{MechanismError, mechanism};
use crate::solvers::progressive_filling::{Ramp, fill};
use crate::{Allocation, MechanismOptions, Number, Problem};

/// Asset fairness (Ghodsi et al., NSDI'11, section 4.1): every user's *sum* of resource shares rises in proportion to
/// its weight.
///
/// It does not guarantee the sharing incentive: a user may get less than an equal split would give. As with
/// [`Drf`](crate::Drf), a user who demands nothing of a saturated resource continues to rise. Trees of accounts are not
/// supported. Expected O(users × resources) for each resource that saturates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asset;

mechanism!(Asset, "asset", "raise all sums of shares in proportion to weights until none can rise");

impl Asset {
    pub(crate) fn solve<N: Number>(
        problem: &Problem<N>,
        _: &MechanismOptions,
    ) -> Result<Allocation<N>, MechanismError> {
        if problem.account_tree().is_some() {
            return Err(MechanismError::AccountsUnsupported { mechanism: "asset" });
        }
        Ok(fill(problem, |i| {
            let mut sum = N::zero();
            problem.demand(i).iter().for_each(|d| sum += d);
            let slope = problem.weight(i).clone() / sum;
            Ramp { start: N::zero(), end: problem.limit(i).map(|limit| limit.clone() / &slope), slope }
        }))
    }
}
