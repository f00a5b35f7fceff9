//! Competitive equilibrium from equal (or weighted) incomes.

use evenhand_model::Rational;

use crate::solvers::eisenberg_gale::{TOO_FAR_APART, equilibrium};
use crate::{Allocation, Mechanism, MechanismError, MechanismOptions, Problem};

/// Competitive equilibrium from equal incomes (Varian; for tasks in Ghodsi et al., NSDI'11, section 4.2): each user has
/// its entitlement as a budget, and prices, each of the whole capacity of a resource, are such that demand equals capacity. The equilibrium maximizes sum e_i log
/// x_i, so it is proportionally fair as well. The price is 0 where capacity remains. A user buys no more than its
/// limit; the rest of its budget is then lost.
///
/// The equilibrium is unique and envy-free (with equal weights), but a misreport can be profitable, and shares can be
/// irrational: there is no exact form. Trees of accounts are not supported. O(users × resources²) for each step; most
/// problems take a dozen steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ceei;

/// Largest deviation from 1 that the load of a resource with a price may have.
const ACCURACY: f64 = 1e-9;

impl Mechanism for Ceei {
    fn name(&self) -> &'static str {
        "ceei"
    }

    fn about(&self) -> &'static str {
        "let every user spend its entitlement at market-clearing prices (proportional fairness)"
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
        let instead = "use bbf for an exact allocation without justified complaints";
        Err(MechanismError::IrrationalAnswer { mechanism: "ceei", instead })
    }
}

/// Computes the equilibrium on behalf of `mechanism`, which errors name.
pub(crate) fn market(mechanism: &'static str, problem: &Problem<f64>) -> Result<Allocation<f64>, MechanismError> {
    no_accounts(mechanism, problem.account_tree().is_some())?;
    let found = equilibrium(problem).ok_or(MechanismError::OutOfRange { mechanism, why: TOO_FAR_APART })?;
    if found.residual > ACCURACY {
        let why = format!("loads still deviate from capacity by {:.1e} after {} steps", found.residual, found.steps);
        return Err(MechanismError::NotCertified { mechanism, why });
    }
    let duality_gap = Some(found.duality_gap);
    Ok(Allocation { prices: found.prices, duality_gap, ..Allocation::new(found.tasks) })
}

/// Returns an error if the problem has a tree of accounts.
pub(crate) fn no_accounts(mechanism: &'static str, accounts: bool) -> Result<(), MechanismError> {
    if accounts { Err(MechanismError::AccountsUnsupported { mechanism }) } else { Ok(()) }
}
