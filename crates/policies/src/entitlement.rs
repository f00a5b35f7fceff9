//! What a user is entitled to, and by how much it exceeds that.

use evenhand_model::Rational;

use crate::commitment::Overuse;
use crate::wide::Wide;

/// One step of a resource over its capacity.
pub(crate) struct Step {
    pub(crate) exact: Rational,
    pub(crate) wide: Wide,
    pub(crate) near: f64,
}

impl Step {
    pub(crate) fn new(exact: Rational) -> Step {
        let wide = Wide::from_rational(&exact);
        Step { near: wide.to_f64(), exact, wide }
    }
}

/// An entitlement to one resource in steps: exactly, and as a whole number and a rest in [0, 1), so
/// that overuse is a whole difference less the rest.
pub(crate) struct Entitlement {
    exact: Rational,
    whole: u64,
    rest: Wide,
    rest_f64: f64,
}

impl Entitlement {
    pub(crate) fn new(exact: Rational) -> Entitlement {
        let (whole, rest) = exact.clone().split_at_point();
        // More than u64 holds is never exceeded.
        let whole = u64::try_from(whole).unwrap_or(u64::MAX);
        let rest = Wide::from_rational(&rest);
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
    fn wide(self) -> Wide {
        if self.is_zero() {
            Wide::ZERO
        } else {
            Wide::from_whole(self.held - self.entitlement.whole) - self.entitlement.rest
        }
    }
}

impl Excess<'_> {
    /// Whether it is another overuse than `other`, of the same entitlement.
    #[inline]
    pub(crate) fn differs(self, other: Excess<'_>) -> bool {
        self.held != other.held && !(self.is_zero() && other.is_zero())
    }

    pub(crate) fn exact(self) -> Rational {
        if self.is_zero() { Rational::ZERO } else { Rational::from(self.held) - &self.entitlement.exact }
    }

    /// `self` - `other` to 36 digits: mostly a difference of whole numbers.
    #[inline]
    pub(crate) fn less(self, other: Excess<'_>) -> Wide {
        if other.is_zero() {
            self.wide()
        } else if self.is_zero() {
            -other.wide()
        } else {
            Wide::from_difference(self.held, other.held)
        }
    }
}
