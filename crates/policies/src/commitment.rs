//! One user's commitment for one resource, in extended precision with error bounds.

use std::cmp::Ordering;
use std::ops::Neg;

use evenhand_model::Rational;

use crate::decay::Kept;
use crate::entitlement::Step;
use crate::extended_precision::ExtendedFloat;

/// A number with a bound on its error, in units in the last place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rounded {
    number: ExtendedFloat,
    error: f64,
}

/// A bound on the error of one operation, in units in the last place of its largest part.
const STEP_ERROR: f64 = 16.0;

impl Rounded {
    #[inline]
    fn sum(a: Rounded, b: Rounded) -> Rounded {
        if a.number.is_zero() || b.number.is_zero() {
            return if a.number.is_zero() { b } else { a };
        }
        let mut number = a.number + b.number;
        if number.is_zero() {
            // All digits cancel: one unit in the last place, which is less than the error bound.
            let largest = if a.number.unit_over(b.number) > 1.0 { a.number } else { b.number };
            number = largest.last_digit();
        }
        let (of_a, of_b) = (a.number.unit_over(number), b.number.unit_over(number));
        Rounded { number, error: a.error * of_a + b.error * of_b + STEP_ERROR * of_a.max(of_b) }
    }

    #[inline]
    fn times(self, factor: ExtendedFloat) -> Rounded {
        if self.number.is_zero() {
            return self;
        }
        let number = self.number * factor;
        let units = self.number.unit_over(number) * factor.to_f64().abs();
        // If a factor or a product is beyond the range of f64, the relative errors are still similar.
        let units = if units.is_normal() { units } else { 2.0 };
        Rounded { number, error: self.error * units + STEP_ERROR }
    }

    #[inline]
    fn after(self, kept: &Kept) -> Rounded {
        let product = self.times(kept.kept);
        Rounded { error: product.error + kept.error, ..product }
    }

    fn may_be_zero(&self) -> bool {
        self.number.is_zero() || self.error >= self.number.in_units()
    }
}

impl Neg for Rounded {
    type Output = Rounded;
    fn neg(self) -> Rounded {
        Rounded { number: -self.number, ..self }
    }
}

impl From<ExtendedFloat> for Rounded {
    #[inline]
    fn from(number: ExtendedFloat) -> Rounded {
        Rounded { number, error: STEP_ERROR }
    }
}

/// An overuse, in the unit of its commitment.
pub(crate) trait Overuse: Copy {
    /// Returns whether it is 0.
    fn is_zero(self) -> bool;
    /// Returns it with an error of a few units in the last place of the numbers whose difference it is.
    fn to_f64(self) -> f64;
    /// Returns it to 36 decimal digits.
    fn wide(self) -> ExtendedFloat;
}

impl Overuse for ExtendedFloat {
    fn is_zero(self) -> bool {
        ExtendedFloat::is_zero(self)
    }

    fn to_f64(self) -> f64 {
        ExtendedFloat::to_f64(self)
    }

    fn wide(self) -> ExtendedFloat {
        self
    }
}

/// The state of Eq. 6 of Sadok et al. (2021) at an instant, for the overuse ō that the commitment c tends to: c itself
/// while it is small compared with ō, or while ō is 0; otherwise the gap c - ō.
///
/// Computing one from the other loses digits: a new commitment is a small fraction of ō, and a settled one differs from
/// ō by a small fraction. c is updated by sums of positive terms and the gap by products, so both keep some 36 decimal
/// digits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    part: Rounded,
    form: Form,
}

/// Which of the two is stored. A whole word, like the parts of an [`ExtendedFloat`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(u64)]
enum Form {
    #[default]
    Value,
    Gap,
}

/// c counts as small below this fraction of ō.
const SMALL: f64 = 0.25;

impl Memory {
    /// Returns whether it is 0. It stays 0 if the overuse is 0 too.
    #[inline]
    pub(crate) fn is_zero(&self) -> bool {
        self.part.number.is_zero()
    }

    /// Returns c for this overuse.
    #[inline]
    pub(crate) fn value(&self, overuse: impl Overuse) -> f64 {
        self.part.number.to_f64() + if self.form == Form::Gap { overuse.to_f64() } else { 0.0 }
    }

    /// Returns c - ō for this overuse.
    #[inline]
    pub(crate) fn gap(&self, overuse: impl Overuse) -> f64 {
        self.part.number.to_f64() - if self.form == Form::Gap { 0.0 } else { overuse.to_f64() }
    }

    /// Returns the state after some time with the same overuse.
    #[inline]
    pub(crate) fn after(&self, kept: &Kept, overuse: impl Overuse) -> Memory {
        if self.form == Form::Value && !overuse.is_zero() {
            return self.begun_after(kept, overuse);
        }
        if self.is_zero() {
            return *self;
        }
        Memory { part: self.part.after(kept), ..*self }
    }

    /// Like [`after`](Memory::after), for a commitment that was small compared with the overuse.
    fn begun_after(&self, kept: &Kept, overuse: impl Overuse) -> Memory {
        let before = if self.is_zero() { Rounded::default() } else { self.part.after(kept) };
        let value = Rounded::sum(before, (overuse.wide() * kept.lost).into());
        if value.number.to_f64() < SMALL * overuse.to_f64() {
            return Memory { part: value, form: Form::Value };
        }
        let gap = Rounded::sum(self.part, (-overuse.wide()).into());
        Memory { part: gap.after(kept), form: Form::Gap }
    }

    /// Returns the state with another overuse, which is by `less` lower than `before`.
    #[inline]
    pub(crate) fn toward<O: Overuse>(&self, before: O, overuse: O, less: impl FnOnce() -> ExtendedFloat) -> Memory {
        if overuse.is_zero() || self.value(before) < SMALL * overuse.to_f64() {
            let part = if self.form == Form::Gap { Rounded::sum(self.part, before.wide().into()) } else { self.part };
            return Memory { part, form: Form::Value };
        }
        let change = if self.form == Form::Gap { less() } else { -overuse.wide() };
        Memory { part: Rounded::sum(self.part, change.into()), form: Form::Gap }
    }
}

/// A [`Memory`] with the overuse that it tends to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Commitment {
    memory: Memory,
    overuse: ExtendedFloat,
}

impl Commitment {
    /// Returns whether it is 0 and stays 0.
    pub(crate) fn is_nothing(&self) -> bool {
        self.overuse.is_zero() && self.memory.is_zero()
    }

    /// Returns ō.
    pub(crate) fn overuse(&self) -> f64 {
        self.overuse.to_f64()
    }

    /// Returns c.
    pub(crate) fn value(&self) -> f64 {
        self.memory.value(self.overuse)
    }

    /// Returns c - ō.
    pub(crate) fn gap(&self) -> f64 {
        self.memory.gap(self.overuse)
    }

    /// Returns the commitment after some time with the same overuse.
    pub(crate) fn after(&self, kept: &Kept) -> Commitment {
        Commitment { memory: self.memory.after(kept, self.overuse), ..*self }
    }

    /// Returns the commitment with another overuse, which is by `less` lower than the current one.
    pub(crate) fn toward(&self, overuse: ExtendedFloat, less: impl FnOnce() -> ExtendedFloat) -> Commitment {
        Commitment { memory: self.memory.toward(self.overuse, overuse, less), overuse }
    }
}

/// A branch of a key: an exact rational plus c or c - ō, depending on which is stored.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    exact: Rational,
    small: Rounded,
}

impl Branch {
    /// Returns `share` + commitment. `overuse` gives ō exactly.
    pub(crate) fn new(share: Rational, commitment: &Commitment, overuse: impl FnOnce() -> Rational) -> Branch {
        Branch::of(share, &commitment.memory, overuse)
    }

    /// Returns `share` + a commitment in steps of the capacity. `overuse` gives ō exactly.
    pub(crate) fn in_steps(
        share: Rational,
        memory: &Memory,
        overuse: impl FnOnce() -> Rational,
        step: &Step,
    ) -> Branch {
        let branch = Branch::of(share, memory, || overuse() * &step.exact);
        Branch { small: branch.small.times(step.wide), ..branch }
    }

    fn of(share: Rational, memory: &Memory, overuse: impl FnOnce() -> Rational) -> Branch {
        let exact = if memory.form == Form::Gap { share + overuse() } else { share };
        Branch { exact, small: memory.part }
    }

    pub(crate) fn times(self, factor: &Rational) -> Branch {
        Branch { exact: self.exact * factor, small: self.small.times(ExtendedFloat::from_rational(factor)) }
    }

    /// Returns a constant branch.
    pub(crate) fn rational(exact: Rational) -> Branch {
        Branch { exact, small: Rounded::default() }
    }

    /// Returns the sum of two branches.
    pub(crate) fn plus(self, other: Branch) -> Branch {
        Branch { exact: self.exact + other.exact, small: Rounded::sum(self.small, other.small) }
    }

    /// Compares two branches. The rationals are exact, so only the small parts are rounded, and a difference within
    /// their error bounds is a tie: users whose commitments are in proportion to their weights tie exactly.
    pub(crate) fn compare(&self, other: &Branch) -> Ordering {
        let mut difference = Rounded::sum(self.small, -other.small);
        if self.exact != other.exact {
            let exact = ExtendedFloat::from_rational(&(&self.exact - &other.exact));
            difference = Rounded::sum(difference, exact.into());
        }
        match difference.may_be_zero() {
            true => Ordering::Equal,
            false if difference.number.is_negative() => Ordering::Less,
            false => Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decay;
    use evenhand_model::{Quantity, Span};

    fn decay(delta: &str) -> Decay {
        Decay::from_delta(&Quantity::parse(delta).unwrap()).unwrap()
    }

    /// Converts exactly; a half and a quarter of the pool are exact in every form.
    fn wide(number: f64) -> ExtendedFloat {
        ExtendedFloat::from_rational(&Rational::try_from(number).unwrap())
    }

    fn start(overuse: f64) -> Commitment {
        let overuse = wide(overuse);
        Commitment::default().toward(overuse, || -overuse)
    }

    /// Returns the commitment after `held` with an overuse and `idle` without.
    fn release(overuse: f64, decay: &Decay, held: Span, idle: Span) -> Commitment {
        let used = start(overuse).after(&decay.over(held));
        used.toward(ExtendedFloat::ZERO, || wide(overuse)).after(&decay.over(idle))
    }

    fn order(a: &Commitment, b: &Commitment) -> Ordering {
        let branch = |c: &Commitment| Branch::new(Rational::ZERO, c, || Rational::try_from(c.overuse()).unwrap());
        branch(a).compare(&branch(b))
    }

    #[test]
    fn a_microsecond_of_overuse_a_microsecond_ago_is_more_than_two_ago() {
        let us = |n: u64| Span::from_nanos(1000 * n);
        for delta in ["0.9", "0.99", "0.999999", "0.9999999", "0.9999999999"] {
            let d = decay(delta);
            let [late, early] = [1, 2].map(|idle| release(0.5, &d, us(1), us(idle)));
            assert_eq!(order(&late, &early), Ordering::Greater, "{delta}");
            assert_eq!(order(&late, &late), Ordering::Equal);
        }
    }

    #[test]
    fn long_idle_and_long_held_still_differ() {
        let (s, month) = (Span::from_secs, 30 * 86_400);
        let d = decay("0.9");
        let [more, less] = [0, 1].map(|extra| release(0.5, &d, s(10), s(month + extra)));
        assert_eq!((more.value(), less.value()), (0.0, 0.0));
        assert_eq!(order(&more, &less), Ordering::Greater);
        assert_eq!(order(&less, &Commitment::default()), Ordering::Greater);
        // Held for a month: nearly settled, and the longer one is nearer.
        let [early, late] = [0, 1].map(|extra| start(0.5).after(&d.over(s(month + extra))));
        assert_eq!(early.value(), 0.5);
        assert_eq!(order(&early, &late), Ordering::Less);
    }

    #[test]
    fn decay_in_parts_equals_decay_at_once() {
        let s = Span::from_secs;
        for delta in ["0.5", "0.99", "0.9999999"] {
            let d = decay(delta);
            for (a, b) in [(1, 2), (100, 50), (7, 10_000)] {
                let whole = start(0.25).after(&d.over(s(a + b)));
                let parts = start(0.25).after(&d.over(s(a))).after(&d.over(s(b)));
                assert_eq!(order(&whole, &parts), Ordering::Equal, "{delta} {a} {b}");
            }
        }
    }
}
