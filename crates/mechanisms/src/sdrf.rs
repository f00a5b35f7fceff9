//! Stateful dominant resource fairness at one instant.

use crate::mechanism::{MechanismError, mechanism};
use crate::solvers::progressive_filling::{Ramp, fill};
use crate::{Allocation, MechanismOptions, Number, Problem};

/// Stateful DRF (Sadok et al., 2021, Eq. 5): DRF in which a user starts to rise only when the level reaches its
/// dominant commitment, so that past overuse is paid back. A user of weight w with dominant commitment c has the
/// dominant share `clamp(w x - c, 0, D)` at level x, where D is the dominant share of all it wants.
///
/// The paper assumes that every user demands some of every resource; where demands are zero, filling continues as in
/// [`Drf`](crate::Drf). If every user gets all it wants, the maximum of Eq. 5 does not exist; the allocation is then
/// what is wanted. Trees of accounts are not supported. Expected O(users × resources) for each resource that saturates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sdrf;

mechanism!(
    Sdrf,
    "sdrf",
    "drf in which users first pay back what they used beyond their share (Sadok et al. 2021, Eq. 5)"
);

impl Sdrf {
    pub(crate) fn solve<N: Number>(
        problem: &Problem<N>,
        _: &MechanismOptions,
    ) -> Result<Allocation<N>, MechanismError> {
        if problem.account_tree().is_some() {
            return Err(MechanismError::AccountsUnsupported { mechanism: "sdrf" });
        }
        Ok(fill(problem, |i| {
            let weight = problem.weight(i);
            let slope = weight.clone() / problem.dominant_demand(i);
            let commitment = problem.commitment(i).unwrap_or_default().iter().cloned().reduce(N::larger);
            let start = commitment.map_or_else(N::zero, |c| c / weight);
            Ramp { end: problem.limit(i).map(|limit| start.clone() + limit.clone() / &slope), start, slope }
        }))
    }
}
