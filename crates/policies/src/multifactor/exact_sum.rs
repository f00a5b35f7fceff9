//! Exact sums of fractions in machine words, for priorities whose rounding decides.

use evenhand_model::Rational;

/// A fraction in machine words; its denominator is above 0. Not reduced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fraction {
    numerator: i128,
    denominator: i128,
}

impl Fraction {
    /// Returns `weight` times `part` over `whole`; `None` if `whole` is 0.
    pub(super) fn weighted(weight: u32, part: u64, whole: u64) -> Option<Fraction> {
        // Below 2^96.
        let numerator = i128::from(weight) * i128::from(part);
        match i128::from(whole) {
            0 => None,
            // Most often it is a whole number, and sums stay short.
            whole if numerator % whole == 0 => Some(Fraction { numerator: numerator / whole, denominator: 1 }),
            denominator => Some(Fraction { numerator, denominator }),
        }
    }

    /// Returns the same number, if it fits.
    pub(super) fn of(number: &Rational) -> Option<Fraction> {
        let denominator = i128::try_from(number.denominator().clone()).ok()?;
        Some(Fraction { numerator: i128::try_from(number.numerator().clone()).ok()?, denominator })
    }

    /// Returns the sum, if it fits.
    pub(super) fn plus(self, other: Fraction) -> Option<Fraction> {
        if self.denominator == other.denominator {
            let numerator = self.numerator.checked_add(other.numerator)?;
            return Some(Fraction { numerator, ..self });
        }
        let (a, b) = (self.numerator.checked_mul(other.denominator)?, other.numerator.checked_mul(self.denominator)?);
        let denominator = self.denominator.checked_mul(other.denominator)?;
        Some(Fraction { numerator: a.checked_add(b)?, denominator })
    }

    /// Truncates to a whole number from 1 to 2^32 - 1.
    pub(super) fn to_priority(self) -> u32 {
        let whole = self.numerator.div_euclid(self.denominator).max(1);
        u32::try_from(whole).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::factors::to_priority;
    use super::*;
    use proptest::prelude::*;

    fn fraction() -> impl Strategy<Value = (u32, u64, u64)> {
        let small = (0u32..50, 0u64..50, 1u64..20);
        prop_oneof![4 => small, 1 => (any::<u32>(), any::<u64>(), 1u64..), 1 => (any::<u32>(), 0u64..1 << 50, 1u64..1 << 50)]
    }

    proptest! {
        #[test]
        fn sums_are_those_of_rationals(parts in prop::collection::vec(fraction(), 0..5), fixed in (-1000i64..1000, 1u64..60)) {
            let fixed = Rational::from_parts(fixed.0.into(), fixed.1.into());
            let exact = parts.iter().fold(fixed.clone(), |sum, (weight, part, whole)| {
                sum + Rational::from(*weight) * Rational::from_parts((*part).into(), (*whole).into())
            });
            let sum = parts.iter().try_fold(Fraction::of(&fixed).unwrap(), |sum, (weight, part, whole)| {
                sum.plus(Fraction::weighted(*weight, *part, *whole)?)
            });
            if let Some(sum) = sum {
                prop_assert_eq!(sum.to_priority(), to_priority(&exact));
            }
            let are_small = parts.iter().all(|(weight, part, whole)| *weight < 50 && *part < 50 && *whole < 20);
            prop_assert!(sum.is_some() || !are_small);
        }
    }
}
