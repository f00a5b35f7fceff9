//! Fixed-point numbers whose sums do not depend on the order.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A fixed-point number in units of 2^-40, within ±2^70.
///
/// The sum of floats depends on the order of addition, so nodes that receive records in different orders would disagree.
/// These numbers are integers: addition is associative as long as fewer than 2^17 of them are added, which is more than
/// the number of nodes ([`MAX_NODES`](crate::exchange::MAX_NODES)). Beyond that it saturates and never wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fixed(i128);

/// The number of units in 1.
const ONE: f64 = (1u64 << 40) as f64;

impl Fixed {
    /// 0.
    pub const ZERO: Fixed = Fixed(0);
    /// The largest number that one node may report, 2^70.
    pub const MAX: Fixed = Fixed(1 << 110);
    /// The smallest number that one node may report, -2^70.
    pub const MIN: Fixed = Fixed(-(1 << 110));

    /// Returns the nearest number to a float (ties to even), clamped to the range. `None` for NaN.
    #[must_use]
    pub fn from_f64(number: f64) -> Option<Fixed> {
        if number.is_nan() {
            return None;
        }
        // A float of 2^110 has no fraction, and `as` saturates.
        Some(Fixed((number * ONE).round_ties_even() as i128).clamp(Fixed::MIN, Fixed::MAX))
    }

    /// Returns the nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / ONE
    }

    /// Creates a number from units of 2^-40.
    #[must_use]
    pub fn from_units(units: i128) -> Fixed {
        Fixed(units)
    }

    /// Returns the number in units of 2^-40.
    #[must_use]
    pub fn units(self) -> i128 {
        self.0
    }

    /// Returns whether one node may report it.
    #[must_use]
    pub fn is_in_range(self) -> bool {
        (Fixed::MIN..=Fixed::MAX).contains(&self)
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn abs(self) -> Fixed {
        Fixed(self.0.saturating_abs())
    }

    /// Returns the number halved this many times: an arithmetic shift, towards minus infinity.
    #[must_use]
    pub fn halved(self, times: u32) -> Fixed {
        Fixed(self.0 >> times.min(127))
    }
}

impl Add for Fixed {
    type Output = Fixed;

    fn add(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Fixed {
    fn add_assign(&mut self, other: Fixed) {
        *self = *self + other;
    }
}

impl Sum for Fixed {
    fn sum<I: Iterator<Item = Fixed>>(all: I) -> Fixed {
        all.fold(Fixed::ZERO, Add::add)
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f64().fmt(f)
    }
}

/// Adds `other` to `sum` element by element; `sum` grows to the length of `other`.
pub fn add_elementwise(total: &mut Vec<Fixed>, part: &[Fixed]) {
    total.resize(total.len().max(part.len()), Fixed::ZERO);
    total.iter_mut().zip(part).for_each(|(total, part)| *total += *part);
}

/// Sets each element of `max` to the larger of both lists; `max` grows to the length of `other`.
pub(crate) fn max_elementwise(largest: &mut Vec<Fixed>, other: &[Fixed]) {
    largest.resize(largest.len().max(other.len()), Fixed::ZERO);
    largest.iter_mut().zip(other).for_each(|(largest, other)| *largest = (*largest).max(*other));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_and_what_is_not_a_number() {
        assert_eq!(Fixed::from_f64(f64::NAN), None);
        assert_eq!(Fixed::from_f64(f64::INFINITY), Some(Fixed::MAX));
        assert_eq!(Fixed::from_f64(-1e300), Some(Fixed::MIN));
        assert_eq!(Fixed::from_f64(-0.0), Some(Fixed::ZERO));
        assert_eq!(Fixed::from_f64(0.5f64.powi(41)), Some(Fixed::ZERO));
        assert_eq!(Fixed::from_f64(1.5 * 0.5f64.powi(40)), Some(Fixed(2)));
        assert_eq!(Fixed::MAX.to_f64(), 2f64.powi(70));
        assert_eq!(Fixed(-3).halved(1), Fixed(-2));
        assert_eq!(Fixed(-3).halved(500), Fixed(-1));
        assert_eq!(Fixed(i128::MIN).abs(), Fixed(i128::MAX));
    }

    #[test]
    fn as_many_as_there_may_be_do_not_reach_an_end() {
        let largest_sum = Fixed::MAX.units().checked_mul(crate::exchange::MAX_NODES as i128);
        assert!(largest_sum.is_some_and(|sum| sum < i128::MAX));
    }

    proptest! {
        #[test]
        fn floats_come_back(number in -1e12..1e12f64) {
            let back = Fixed::from_f64(number).unwrap().to_f64();
            prop_assert!((back - number).abs() <= 0.5f64.powi(41) + number.abs() * f64::EPSILON);
        }

        #[test]
        fn the_order_of_a_sum_does_not_matter(mut numbers in prop::collection::vec(any::<f64>().prop_filter("a number", |n| !n.is_nan()), 0..40), turn in 0usize..40) {
            let sum = |numbers: &[f64]| numbers.iter().map(|n| Fixed::from_f64(*n).unwrap()).sum::<Fixed>();
            let before = sum(&numbers);
            let turn = turn.min(numbers.len());
            numbers.rotate_left(turn);
            prop_assert_eq!(before, sum(&numbers));
            numbers.reverse();
            prop_assert_eq!(before, sum(&numbers));
        }
    }
}
