//! Weighted max-min fairness of one resource.

use crate::mechanism::mechanism;
use crate::{Allocation, Drf, MechanismError, MechanismOptions, Number, Problem};

/// One resource: nobody can get more without somebody getting less who has, for his weight, no more.
///
/// With one resource every mechanism of this room but `asset`'s sum and `sdrf`'s memory comes to this
/// (reference: B13), so it is [`Drf`] with one resource. With accounts the water runs down the tree: an
/// account divides what it gets among its children, each up to what those below it want.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxMin;

mechanism!(MaxMin, "max-min", "one resource: raise everybody's share for his weight until the resource is used up");

impl MaxMin {
    pub(crate) fn solve<N: Number>(
        problem: &Problem<N>,
        options: &MechanismOptions,
    ) -> Result<Allocation<N>, MechanismError> {
        match problem.resource_count() {
            1 => Drf::solve(problem, options),
            found => Err(MechanismError::SingleResourceOnly { mechanism: "max-min", found }),
        }
    }
}
