//! Asset fairness.

use crate::mechanism::{MechanismError, mechanism};
use crate::solvers::progressive_filling::{Ramp, fill};
use crate::{Allocation, MechanismOptions, Number, Problem};

/// Asset fairness (Ghodsi et al., NSDI'11, section 4.1): everybody's *sum* of shares rises in proportion
/// to weights. It has no sharing incentive: some may get less than an equal split would give. As with
/// [`Drf`](crate::Drf), who demands nothing of what is used up goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asset;

mechanism!(Asset, "asset", "raise everybody's sum of shares for his weight until nobody can get more");

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
            Ramp { start: N::zero(), end: problem.limit(i).map(|most| most.clone() / &slope), slope }
        }))
    }
}
