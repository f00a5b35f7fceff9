//! The two arithmetics that mechanisms compute in, and the one place that chooses between them.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use evenhand_model::Rational;

use crate::{Allocation, Finding, Mechanism, MechanismError, MechanismOptions, Problem, Property};

/// An ordered field: [`Rational`] (results are exact) or `f64` (results are within about 1e-12 of the exact ones,
/// relative).
///
/// An algorithm is written once against this trait: in exact numbers it is the reference, in `f64` the product.
/// Where rounding could decide a comparison, the algorithm allows for [`rounding`](Number::rounding), which is 0
/// for exact numbers.
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

    /// Returns 0.
    fn zero() -> Self;
    /// Returns 1.
    fn one() -> Self;
    /// Converts a count.
    fn from_count(n: usize) -> Self;
    /// Converts an exact number, rounded to the nearest one that can be represented.
    fn from_exact(exact: &Rational) -> Self;
    /// Converts a computed number; an exact number takes the value of the `f64` as it is, 0 if that is infinite or
    /// not a number.
    fn from_f64(float: f64) -> Self;
    /// Returns the exact value, or `None` if it is infinite or not a number.
    fn to_exact(&self) -> Option<Rational>;
    /// Returns the nearest `f64`.
    fn to_f64(&self) -> f64;
    /// Returns how far two numbers around 1 may lie apart and still count as equal: 0 if arithmetic is exact, else
    /// 1e-12, which is well above the rounding of sums over a million users and well below any measurement.
    fn rounding() -> Self;

    /// Divides a problem by `mechanism` in this arithmetic.
    ///
    /// # Errors
    /// Returns the error of [`Mechanism::divide`] or [`Mechanism::divide_exact`].
    fn divide(
        mechanism: &dyn Mechanism,
        problem: &Problem<Self>,
        options: &MechanismOptions,
    ) -> Result<Allocation<Self>, MechanismError>;

    /// Checks `property` in this arithmetic; see [`Property::findings`].
    fn findings(
        property: &dyn Property,
        problem: &Problem<Self>,
        tasks: &[Self],
        tolerance: &Self,
    ) -> Vec<Finding<Self>>;

    /// Returns whether the number is 0.
    fn is_zero(&self) -> bool {
        *self == Self::zero()
    }

    /// Returns whether the number is greater than 0.
    fn is_positive(&self) -> bool {
        *self > Self::zero()
    }

    /// Compares two numbers. All numbers of a [`Problem`] are comparable; a NaN compares as equal.
    fn compare(&self, other: &Self) -> Ordering {
        self.partial_cmp(other).unwrap_or(Ordering::Equal)
    }

    /// Returns the smaller of two numbers, `self` if they are equal.
    fn smaller(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    /// Returns the larger of two numbers, `self` if they are equal.
    fn larger(self, other: Self) -> Self {
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
    fn from_f64(float: f64) -> f64 {
        float
    }
    fn to_exact(&self) -> Option<Rational> {
        Rational::try_from(*self).ok()
    }
    fn to_f64(&self) -> f64 {
        *self
    }
    fn rounding() -> f64 {
        1e-12
    }
    fn divide(
        mechanism: &dyn Mechanism,
        problem: &Problem<f64>,
        options: &MechanismOptions,
    ) -> Result<Allocation<f64>, MechanismError> {
        mechanism.divide(problem, options)
    }
    fn findings(property: &dyn Property, problem: &Problem<f64>, tasks: &[f64], tolerance: &f64) -> Vec<Finding<f64>> {
        property.findings(problem, tasks, *tolerance)
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
    fn from_f64(float: f64) -> Rational {
        Rational::try_from(float).unwrap_or(Rational::ZERO)
    }
    fn to_exact(&self) -> Option<Rational> {
        Some(self.clone())
    }
    fn to_f64(&self) -> f64 {
        evenhand_model::to_f64(self)
    }
    fn rounding() -> Rational {
        Rational::ZERO
    }
    fn divide(
        mechanism: &dyn Mechanism,
        problem: &Problem<Rational>,
        options: &MechanismOptions,
    ) -> Result<Allocation<Rational>, MechanismError> {
        mechanism.divide_exact(problem, options)
    }
    fn findings(
        property: &dyn Property,
        problem: &Problem<Rational>,
        tasks: &[Rational],
        tolerance: &Rational,
    ) -> Vec<Finding<Rational>> {
        property.findings_exact(problem, tasks, tolerance)
    }
    fn is_zero(&self) -> bool {
        Rational::is_zero(self)
    }
}

/// Arithmetic in which a problem is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// 64-bit floating point. Quantities that round to 0 or to infinity are rejected.
    Float,
    /// Exact fractions.
    Exact,
}

/// A computation that is written once and runs in either arithmetic.
pub trait Computation {
    /// Result, whichever arithmetic is used.
    type Output;

    /// Computes in the arithmetic of `N`.
    fn run<N: Number>(self) -> Self::Output;
}

impl Arithmetic {
    /// Runs a computation in this arithmetic.
    ///
    /// ```
    /// use evenhand_mechanisms::{Arithmetic, Computation, Number};
    /// struct Third;
    /// impl Computation for Third {
    ///     type Output = bool;
    ///     fn run<N: Number>(self) -> bool {
    ///         let third = N::one() / N::from_count(3);
    ///         third.to_exact().unwrap() * evenhand_model::Rational::from(3u8) == evenhand_model::Rational::ONE
    ///     }
    /// }
    /// assert!(Arithmetic::Exact.run(Third));
    /// assert!(!Arithmetic::Float.run(Third));
    /// ```
    pub fn run<C: Computation>(self, computation: C) -> C::Output {
        match self {
            Arithmetic::Float => computation.run::<f64>(),
            Arithmetic::Exact => computation.run::<Rational>(),
        }
    }
}
