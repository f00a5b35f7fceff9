//! Fixed-point amounts of a resource, in which entitlements are rounded down and sums are exact.

use evenhand_model::UBig;

/// Fraction bits of a step, where they leave all amounts below 2^[`AMOUNT_BITS`].
const MAX_FRACTION_BITS: u32 = 20;
const AMOUNT_BITS: u32 = 60;

/// The fixed-point format of one resource: a step is 2^`fraction_bits` units.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedPoint {
    fraction_bits: u32,
}

impl FixedPoint {
    /// Creates the finest format in which `max_steps` fits.
    pub(super) fn new(max_steps: u64) -> FixedPoint {
        let bits = u64::BITS - max_steps.leading_zeros();
        FixedPoint { fraction_bits: AMOUNT_BITS.saturating_sub(bits).min(MAX_FRACTION_BITS) }
    }

    /// Converts steps that fit the format.
    pub(super) fn convert_steps(self, steps: u64) -> u64 {
        steps << self.fraction_bits
    }

    /// Converts any number of steps; `None` if the result does not fit u64.
    pub(super) fn checked_from_steps(self, steps: u128) -> Option<u64> {
        u64::try_from(steps).ok()?.checked_mul(1 << self.fraction_bits)
    }

    /// Returns whether `amount` is at least `steps`.
    pub(super) fn covers(self, amount: u64, steps: u64) -> bool {
        u128::from(steps) << self.fraction_bits <= u128::from(amount)
    }

    /// Returns a unit in steps.
    pub(super) fn unit(self) -> f64 {
        2f64.powi(-(self.fraction_bits as i32))
    }

    /// Converts an amount, or an integral of one over time, to steps.
    pub(super) fn to_steps(self, amount: u128) -> f64 {
        amount as f64 * self.unit()
    }
}

/// The exact capacity of a resource in fixed-point units, as a fraction.
#[derive(Debug)]
pub(super) struct FixedCapacity {
    numerator: UBig,
    denominator: UBig,
}

impl FixedCapacity {
    /// Converts a capacity of `numerator / denominator` steps.
    pub(super) fn new(numerator: UBig, denominator: UBig, format: FixedPoint) -> FixedCapacity {
        FixedCapacity { numerator: numerator << format.fraction_bits as usize, denominator }
    }

    /// Returns the share `numerator / denominator` of the capacity, rounded down, and at most half of u64's range, which
    /// is more than users can hold.
    pub(super) fn share(&self, (numerator, denominator): (u128, u128)) -> u64 {
        const MAX: u128 = u64::MAX as u128 >> 1;
        let small = || {
            let (units, of) = (u128::try_from(&self.numerator).ok()?, u128::try_from(&self.denominator).ok()?);
            Some(units.checked_mul(numerator)? / of.checked_mul(denominator)?)
        };
        let share = small().unwrap_or_else(|| {
            let exact = &self.numerator * UBig::from(numerator) / (&self.denominator * UBig::from(denominator));
            u128::try_from(exact).unwrap_or(u128::MAX)
        });
        share.min(MAX) as u64
    }
}
