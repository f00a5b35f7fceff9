//! Stateful dominant resource fairness at one instant.

use crate::mechanism::{MechanismError, mechanism};
use crate::solvers::progressive_filling::{Ramp, fill};
use crate::{Allocation, MechanismOptions, Number, Problem};

/// Stateful DRF (paper 001, Eq. 5): DRF in which a user begins to rise only when the water stands at his
/// dominant commitment, so that past over-use is paid back. A user of weight w with dominant commitment c
/// has the dominant share `clamp(w x - c, 0, D)` at level x, D being the dominant share of all he wants.
///
/// The paper demands everything to be wanted by everybody; where demands are zero this goes on filling
/// as [`Drf`](crate::Drf) does. If all get all they want the paper's maximum does not exist; the demands
/// are then the allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sdrf;

mechanism!(Sdrf, "sdrf", "drf, but who used more than his share before first pays back (paper 001, Eq. 5)");

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
            Ramp { end: problem.limit(i).map(|most| start.clone() + most.clone() / &slope), start, slope }
        }))
    }
}
