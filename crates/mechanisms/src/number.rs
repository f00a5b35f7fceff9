//! The two kinds of numbers that mechanisms compute with.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use evenhand_model::Rational;

/// A field with an order: [`Rational`] (every answer exact) or `f64` (every answer within about 1e-12
/// of it, relative).
///
/// An algorithm written against it once is both the oracle and the product. Where it must tell
/// "equal" from "almost", it compares with [`SLACK`](Number::slack), which is zero for exact numbers.
pub trait Number:
    Clone
    + Debug
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + for<'a> Add<&'a Self, Output = Self>
    + for<'a> Sub<&'a Self, Output = Self>
    + for<'a> Mul<&'a Self, Output = Self>
    + for<'a> Div<&'a Self, Output = Self>
    + for<'a> AddAssign<&'a Self>
    + for<'a> SubAssign<&'a Self>
{
    /// Whether arithmetic is exact.
    const EXACT: bool;

    /// 0.
    fn zero() -> Self;
    /// 1.
    fn one() -> Self;
    /// A count.
    fn from_count(n: usize) -> Self;
    /// The nearest number to an exact one.
    fn from_exact(exact: &Rational) -> Self;
    /// The exact value. `None` if it is infinite or not a number.
    fn exact(&self) -> Option<Rational>;
    /// The nearest `f64`.
    fn to_f64(&self) -> f64;
    /// How far two numbers around 1 may lie apart and still count as equal: 0 if exact, else 1e-12, which
    /// is well above the rounding of sums over a million users and well below what anyone measures.
    fn slack() -> Self;

    /// Whether it is 0.
    fn is_zero(&self) -> bool {
        *self == Self::zero()
    }

    /// Whether it is greater than 0.
    fn is_positive(&self) -> bool {
        *self > Self::zero()
    }

    /// The order of numbers; those of a [`Problem`](crate::Problem) are all comparable.
    fn compare(&self, other: &Self) -> Ordering {
        self.partial_cmp(other).unwrap_or(Ordering::Equal)
    }

    /// The smaller one; the first if they are equal.
    fn or_less(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    /// The larger one; the first if they are equal.
    fn or_more(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

impl Number for f64 {
    const EXACT: bool = false;

    fn zero() -> f64 {
        0.0
    }
    fn one() -> f64 {
        1.0
    }
    fn from_count(n: usize) -> f64 {
        n as f64
    }
    fn from_exact(exact: &Rational) -> f64 {
        evenhand_model::to_f64(exact)
    }
    fn exact(&self) -> Option<Rational> {
        Rational::try_from(*self).ok()
    }
    fn to_f64(&self) -> f64 {
        *self
    }
    fn slack() -> f64 {
        1e-12
    }
}

impl Number for Rational {
    const EXACT: bool = true;

    fn zero() -> Rational {
        Rational::ZERO
    }
    fn one() -> Rational {
        Rational::ONE
    }
    fn from_count(n: usize) -> Rational {
        Rational::from(n as u64)
    }
    fn from_exact(exact: &Rational) -> Rational {
        exact.clone()
    }
    fn exact(&self) -> Option<Rational> {
        Some(self.clone())
    }
    fn to_f64(&self) -> f64 {
        evenhand_model::to_f64(self)
    }
    fn slack() -> Rational {
        Rational::ZERO
    }
    fn is_zero(&self) -> bool {
        Rational::is_zero(self)
    }
}
