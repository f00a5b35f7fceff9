//! Dominant resource fairness.

use crate::filling::{Line, fill};
use crate::mechanism::mechanism;
use crate::{Allocation, MechanismError, Number, Options, Problem};

/// Dominant resource fairness (Ghodsi et al., NSDI'11) by progressive filling: everybody's dominant
/// share rises in proportion to weights. When a resource is used up, who demands some of it stays, and
/// the others go on (Parkes, Procaccia and Shah, EC'12), so that zero demands waste nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drf;

mechanism!(Drf, "drf", "raise everybody's dominant share for his weight until nobody can get more");

impl Drf {
    pub(crate) fn solve<N: Number>(problem: &Problem<N>, _: &Options) -> Result<Allocation<N>, MechanismError> {
        Ok(fill(problem, |i| {
            let slope = problem.weight(i).clone() / problem.dominant_demand(i);
            Line { begin: N::zero(), end: problem.limit(i).map(|most| most.clone() / &slope), slope }
        }))
    }
}
