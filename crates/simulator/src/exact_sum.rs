//! Exact sums of products that may be longer than 128 binary digits.

use evenhand_model::UBig;

/// A sum of products of a number of 128 and one of 64 digits, exact: `high` counts 2^64.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sum {
    low: u128,
    high: u128,
}

impl Sum {
    pub(crate) fn add(&mut self, number: u128, times: u64) {
        let (number_high, number_low) = (number >> 64, number & u128::from(u64::MAX));
        let low = self.low + number_low * u128::from(times);
        self.low = low & u128::from(u64::MAX);
        // Below 2^64 times the sum of `times`, including carries.
        self.high += number_high * u128::from(times) + (low >> 64);
    }

    pub(crate) fn whole(self) -> UBig {
        (UBig::from(self.high) << 64) + UBig::from(self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_keep_every_digit(terms in prop::collection::vec((any::<u128>(), 0u64..1 << 58), 0..16)) {
            let mut sum = Sum::default();
            let mut reference = UBig::ZERO;
            for (number, times) in terms {
                sum.add(number, times);
                reference += UBig::from(number) * UBig::from(times);
            }
            prop_assert_eq!(sum.whole(), reference);
        }
    }
}
