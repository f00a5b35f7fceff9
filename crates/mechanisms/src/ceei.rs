//! Competitive equilibrium from equal (or weighted) incomes.

use evenhand_model::Rational;

use crate::solvers::eisenberg_gale::{TOO_FAR_APART, equilibrium};
use crate::{Allocation, Mechanism, MechanismError, MechanismOptions, Problem};

/// Competitive equilibrium from equal incomes (Varian; for tasks in the DRF paper, section 4.2): everybody
/// gets his entitlement as money, and prices are such that what all buy is what there is. That maximises
/// sum e_i log x_i, so it is proportional fairness too. A price is 0 where something is left over. Nobody
/// buys more than his limit; what he then does not spend is lost.
///
/// It is unique and free of envy (equal weights), but a lie can pay, and its shares can be irrational.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ceei;

/// How far from 1 the loads of resources with a price may stay.
const ACCURACY: f64 = 1e-9;

impl Mechanism for Ceei {
    fn name(&self) -> &'static str {
        "ceei"
    }

    fn about(&self) -> &'static str {
        "let everybody spend his entitlement at prices that clear the market (proportional fairness)"
    }

    fn divide(&self, problem: &Problem<f64>, _: &MechanismOptions) -> Result<Allocation<f64>, MechanismError> {
        market("ceei", problem)
    }

    fn divide_exact(
        &self,
        problem: &Problem<Rational>,
        _: &MechanismOptions,
    ) -> Result<Allocation<Rational>, MechanismError> {
        no_accounts("ceei", problem.account_tree().is_some())?;
        let instead = "bbf gives an exact point without justified complaints";
        Err(MechanismError::IrrationalAnswer { mechanism: "ceei", instead })
    }
}

/// The equilibrium, on behalf of a mechanism.
pub(crate) fn market(mechanism: &'static str, problem: &Problem<f64>) -> Result<Allocation<f64>, MechanismError> {
    no_accounts(mechanism, problem.account_tree().is_some())?;
    let found = equilibrium(problem).ok_or(MechanismError::OutOfRange { mechanism, why: TOO_FAR_APART })?;
    if found.residual > ACCURACY {
        let why = format!("loads are still {:.1e} from capacity after {} steps", found.residual, found.steps);
        return Err(MechanismError::NotCertified { mechanism, why });
    }
    let duality_gap = Some(found.duality_gap);
    Ok(Allocation { prices: found.prices, duality_gap, ..Allocation::new(found.tasks) })
}

/// Refuses account trees.
pub(crate) fn no_accounts(mechanism: &'static str, accounts: bool) -> Result<(), MechanismError> {
    if accounts { Err(MechanismError::AccountsUnsupported { mechanism }) } else { Ok(()) }
}
