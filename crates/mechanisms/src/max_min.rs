//! Weighted max-min fairness of one resource.

use crate::mechanism::mechanism;
use crate::{Allocation, Drf, MechanismError, MechanismOptions, Number, Problem};

/// Weighted max-min fairness of one resource: no user can get more without another getting less who has no more for its
/// weight.
///
/// With one resource every mechanism of this crate comes to this (except for the commitments of `sdrf`), so it is
/// computed as [`Drf`] with one resource. With accounts, each account divides what it gets among its children, each up
/// to what the users below it want.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxMin;

mechanism!(
    MaxMin,
    "max-min",
    "one resource: raise every user's share in proportion to its weight until the resource is saturated"
);

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
