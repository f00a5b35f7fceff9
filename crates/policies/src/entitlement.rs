//! A user's entitlement, and its overuse.

use evenhand_model::Rational;

use crate::commitment::Overuse;
use crate::extended_precision::ExtendedFloat;

/// One step of a resource divided by its capacity.
pub(crate) struct Step {
    pub(crate) exact: Rational,
    pub(crate) wide: ExtendedFloat,
    pub(crate) near: f64,
}

impl Step {
    pub(crate) fn new(exact: Rational) -> Step {
        let wide = ExtendedFloat::from_rational(&exact);
        Step { near: wide.to_f64(), exact, wide }
    }
}

/// An entitlement to one resource in steps: exactly, and as a whole number and a fraction in [0, 1), so that overuse is
/// a whole difference less the fraction.
pub(crate) struct Entitlement {
    exact: Rational,
    whole: u64,
    rest: ExtendedFloat,
    rest_f64: f64,
}

impl Entitlement {
    pub(crate) fn new(exact: Rational) -> Entitlement {
        let (whole, rest) = exact.clone().split_at_point();
        // An entitlement beyond the range of u64 is never exceeded.
        let whole = u64::try_from(whole).unwrap_or(u64::MAX);
        let rest = ExtendedFloat::from_rational(&rest);
        Entitlement { exact, whole, rest, rest_f64: rest.to_f64() }
    }

    #[inline]
    pub(crate) fn overuse(&self, held: u64) -> Excess<'_> {
        Excess { entitlement: self, held }
    }
}

/// ō = max(held - entitlement, 0), in steps.
#[derive(Clone, Copy)]
pub(crate) struct Excess<'a> {
    entitlement: &'a Entitlement,
    held: u64,
}

impl Overuse for Excess<'_> {
    #[inline]
    fn is_zero(self) -> bool {
        self.held <= self.entitlement.whole
    }

    #[inline]
    fn to_f64(self) -> f64 {
        if self.is_zero() { 0.0 } else { (self.held - self.entitlement.whole) as f64 - self.entitlement.rest_f64 }
    }

    #[inline]
    fn wide(self) -> ExtendedFloat {
        if self.is_zero() {
            ExtendedFloat::ZERO
        } else {
            ExtendedFloat::from_whole(self.held - self.entitlement.whole) - self.entitlement.rest
        }
    }
}

impl Excess<'_> {
    /// Returns whether it differs from another overuse of the same entitlement.
    #[inline]
    pub(crate) fn differs(self, other: Excess<'_>) -> bool {
        self.held != other.held && !(self.is_zero() && other.is_zero())
    }

    pub(crate) fn exact(self) -> Rational {
        if self.is_zero() { Rational::ZERO } else { Rational::from(self.held) - &self.entitlement.exact }
    }

    /// Returns `self` - `other` to 36 digits: usually a difference of whole numbers.
    #[inline]
    pub(crate) fn less(self, other: Excess<'_>) -> ExtendedFloat {
        if other.is_zero() {
            self.wide()
        } else if self.is_zero() {
            -other.wide()
        } else {
            ExtendedFloat::from_difference(self.held, other.held)
        }
    }
}
