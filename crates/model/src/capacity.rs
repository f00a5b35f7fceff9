//! The capacity of a resource pool.

use dashu_int::IBig;
use thiserror::Error;

use crate::{Amount, MeanUse, Quantity, Rational, Resource, to_f64, whole_steps};

/// The exact capacity of a pool, one entry per resource.
///
/// Whether tasks fit is decided in whole steps of the workload's amounts. No precision is lost: a sum of whole steps is
/// at most C exactly if it is at most floor(C). Shares divide by C itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    units: Vec<Rational>,
    steps: Vec<Rational>,
    amounts: Vec<Amount>,
}

/// An error in a capacity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CapacityError {
    /// A capacity of 0, with which every share would be a division by zero.
    #[error("the capacity of {resource} is 0; it must be greater than 0")]
    Zero {
        /// The resource's name.
        resource: String,
    },
    /// A multiple of a mean use that is 0.
    #[error(
        "the workload's mean use of {resource} is 0 (no task holds any for any time), so no multiple of it is a capacity; give an absolute pool in a file instead"
    )]
    NoUse {
        /// The resource's name.
        resource: String,
    },
}

impl Capacity {
    /// Creates a pool from one exact number per resource, in the resource's own unit.
    ///
    /// # Errors
    /// Returns an error if a number is 0.
    ///
    /// # Panics
    /// Panics if `resources` and `units` differ in length.
    pub fn new(resources: &[Resource], units: Vec<Rational>) -> Result<Capacity, CapacityError> {
        assert_eq!(resources.len(), units.len(), "one capacity per resource");
        if let Some(r) = units.iter().position(Rational::is_zero) {
            return Err(CapacityError::Zero { resource: resources[r].name.clone() });
        }
        let steps: Vec<Rational> =
            resources.iter().zip(&units).map(|(r, c)| c * Rational::from(IBig::from(r.steps()))).collect();
        let amounts = resources.iter().zip(&units).map(|(r, c)| whole_steps(c, r)).collect();
        Ok(Capacity { units, steps, amounts })
    }

    /// Creates a pool of `factor` times the workload's [mean use](MeanUse) R.
    ///
    /// # Errors
    /// Returns an error if the factor or a mean use is 0.
    pub fn multiple(resources: &[Resource], r: &MeanUse, factor: &Quantity) -> Result<Capacity, CapacityError> {
        if let Some(i) = r.units.iter().position(Rational::is_zero) {
            return Err(CapacityError::NoUse { resource: resources[i].name.clone() });
        }
        Capacity::new(resources, r.units.iter().map(|u| u * factor.exact()).collect())
    }

    /// Returns the number of resources.
    pub fn width(&self) -> usize {
        self.amounts.len()
    }

    /// Returns the capacity of resource `r` in the workload's own unit, exactly.
    pub fn exact_units(&self, r: usize) -> &Rational {
        &self.units[r]
    }

    /// Returns the capacity of resource `r` in the workload's own unit, as the nearest `f64`.
    pub fn units(&self, r: usize) -> f64 {
        to_f64(&self.units[r])
    }

    /// Returns the capacity of resource `r` in steps of an [`Amount`], exactly.
    pub fn exact_steps(&self, r: usize) -> &Rational {
        &self.steps[r]
    }

    /// Returns the capacity of resource `r` in steps of an [`Amount`], as the nearest `f64`.
    pub fn steps(&self, r: usize) -> f64 {
        to_f64(&self.steps[r])
    }

    /// Returns the largest sum of amounts that fits, per resource: the exact capacity rounded down to whole steps.
    pub fn amounts(&self) -> &[Amount] {
        &self.amounts
    }

    /// Returns whether a task with these amounts fits into the empty pool.
    pub fn admits(&self, demand: &[Amount]) -> bool {
        demand.iter().zip(&self.amounts).all(|(d, c)| d <= c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(decimals: u8) -> Vec<Resource> {
        vec![Resource { decimals, ..Resource::new("cpu", "") }]
    }

    #[test]
    fn shares_keep_the_fraction_that_amounts_drop() {
        let half = Quantity::parse("5/2").unwrap().exact().clone();
        let c = Capacity::new(&cpu(0), vec![half]).unwrap();
        assert_eq!((c.amounts(), c.steps(0)), ([Amount(2)].as_slice(), 2.5));
        assert!(c.admits(&[Amount(2)]) && !c.admits(&[Amount(3)]));
    }

    #[test]
    fn zero_is_rejected_and_a_huge_pool_is_not() {
        assert!(matches!(Capacity::new(&cpu(0), vec![Rational::ZERO]), Err(CapacityError::Zero { .. })));
        let huge = Quantity::parse("1e30").unwrap().exact().clone();
        assert_eq!(Capacity::new(&cpu(9), vec![huge]).unwrap().amounts(), [Amount(i64::MAX as u64)]);
    }
}
