//! One user's commitment for one resource, with digits to spare.

use std::cmp::Ordering;
use std::ops::Neg;

use evenhand_model::Rational;

use crate::decay::Kept;
use crate::entitlement::Step;
use crate::wide::Wide;

/// A number and by how many units of its last digit it may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rounded {
    number: Wide,
    error: f64,
}

/// What one operation may be off, in units of the last digit of its largest part.
const STEP_ERROR: f64 = 16.0;

impl Rounded {
    #[inline]
    fn sum(a: Rounded, b: Rounded) -> Rounded {
        if a.number.is_zero() || b.number.is_zero() {
            return if a.number.is_zero() { b } else { a };
        }
        let mut number = a.number + b.number;
        if number.is_zero() {
            // All digits cancel: one unit of the last, which is less than what they may be off.
            let largest = if a.number.unit_over(b.number) > 1.0 { a.number } else { b.number };
            number = largest.last_digit();
        }
        let (of_a, of_b) = (a.number.unit_over(number), b.number.unit_over(number));
        Rounded { number, error: a.error * of_a + b.error * of_b + STEP_ERROR * of_a.max(of_b) }
    }

    #[inline]
    fn times(self, factor: Wide) -> Rounded {
        if self.number.is_zero() {
            return self;
        }
        let number = self.number * factor;
        let units = self.number.unit_over(number) * factor.to_f64().abs();
        // Where a factor or a product has no f64, the errors of both are still alike.
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

impl From<Wide> for Rounded {
    #[inline]
    fn from(number: Wide) -> Rounded {
        Rounded { number, error: STEP_ERROR }
    }
}

/// An overuse, in the unit in which its commitment is kept.
pub(crate) trait Overuse: Copy {
    /// Whether there is none.
    fn is_zero(self) -> bool;
    /// Right to a few units of the last digit of what it is a difference of.
    fn to_f64(self) -> f64;
    /// Right to 36 digits.
    fn wide(self) -> Wide;
}

impl Overuse for Wide {
    fn is_zero(self) -> bool {
        Wide::is_zero(self)
    }

    fn to_f64(self) -> f64 {
        Wide::to_f64(self)
    }

    fn wide(self) -> Wide {
        self
    }
}

/// What Eq. 6 of Sadok et al. (2021) needs to go on from an instant, beside the overuse ō that the commitment c
/// moves to: c itself while it is small beside ō, or while there is none, and the gap c - ō else.
///
/// Each loses its digits in the other where it is small: a commitment just begun is a sliver of ō,
/// and one that has settled differs from ō by a sliver. c is updated by sums of positive terms and
/// the gap by products, so both stay right to some 36 digits of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    part: Rounded,
    form: Form,
}

/// What is kept of a commitment. A whole word, as the parts of a [`Wide`] are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(u64)]
enum Form {
    #[default]
    Value,
    Gap,
}

/// c below this part of ō is small beside it.
const SMALL: f64 = 0.25;

impl Memory {
    /// Whether it is 0; it stays so if the overuse is 0 too.
    #[inline]
    pub(crate) fn is_zero(&self) -> bool {
        self.part.number.is_zero()
    }

    /// c, of the overuse it moves to.
    #[inline]
    pub(crate) fn value(&self, overuse: impl Overuse) -> f64 {
        self.part.number.to_f64() + if self.form == Form::Gap { overuse.to_f64() } else { 0.0 }
    }

    /// c - ō
    #[inline]
    pub(crate) fn gap(&self, overuse: impl Overuse) -> f64 {
        self.part.number.to_f64() - if self.form == Form::Gap { 0.0 } else { overuse.to_f64() }
    }

    /// What it is after some time with the same overuse.
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

    /// The same where it was small beside the overuse.
    fn begun_after(&self, kept: &Kept, overuse: impl Overuse) -> Memory {
        let before = if self.is_zero() { Rounded::default() } else { self.part.after(kept) };
        let value = Rounded::sum(before, (overuse.wide() * kept.lost).into());
        if value.number.to_f64() < SMALL * overuse.to_f64() {
            return Memory { part: value, form: Form::Value };
        }
        let gap = Rounded::sum(self.part, (-overuse.wide()).into());
        Memory { part: gap.after(kept), form: Form::Gap }
    }

    /// From now on it moves to another overuse than so far, by `less` below the one `before`.
    #[inline]
    pub(crate) fn toward<O: Overuse>(&self, before: O, overuse: O, less: impl FnOnce() -> Wide) -> Memory {
        if overuse.is_zero() || self.value(before) < SMALL * overuse.to_f64() {
            let part = if self.form == Form::Gap { Rounded::sum(self.part, before.wide().into()) } else { self.part };
            return Memory { part, form: Form::Value };
        }
        let change = if self.form == Form::Gap { less() } else { -overuse.wide() };
        Memory { part: Rounded::sum(self.part, change.into()), form: Form::Gap }
    }
}

/// A [`Memory`] with the overuse it moves to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Commitment {
    memory: Memory,
    overuse: Wide,
}

impl Commitment {
    /// Whether it is 0 and stays so.
    pub(crate) fn is_nothing(&self) -> bool {
        self.overuse.is_zero() && self.memory.is_zero()
    }

    /// ō
    pub(crate) fn overuse(&self) -> f64 {
        self.overuse.to_f64()
    }

    /// c
    pub(crate) fn value(&self) -> f64 {
        self.memory.value(self.overuse)
    }

    /// c - ō
    pub(crate) fn gap(&self) -> f64 {
        self.memory.gap(self.overuse)
    }

    /// What it is after some time with the same overuse.
    pub(crate) fn after(&self, kept: &Kept) -> Commitment {
        Commitment { memory: self.memory.after(kept, self.overuse), ..*self }
    }

    /// From now on it moves to another overuse, by `less` below the one so far.
    pub(crate) fn toward(&self, overuse: Wide, less: impl FnOnce() -> Wide) -> Commitment {
        Commitment { memory: self.memory.toward(self.overuse, overuse, less), overuse }
    }
}

/// A branch of a key: an exact rational plus c or c - ō, whichever is kept.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    exact: Rational,
    small: Rounded,
}

impl Branch {
    /// `share` + commitment; `overuse` is ō exactly.
    pub(crate) fn new(share: Rational, commitment: &Commitment, overuse: impl FnOnce() -> Rational) -> Branch {
        Branch::of(share, &commitment.memory, overuse)
    }

    /// `share` + what is remembered in steps that are so much of the capacity; `overuse` is ō exactly.
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
        Branch { exact: self.exact * factor, small: self.small.times(Wide::from_rational(factor)) }
    }

    /// What does not move.
    pub(crate) fn rational(exact: Rational) -> Branch {
        Branch { exact, small: Rounded::default() }
    }

    /// The sum of two branches.
    pub(crate) fn plus(self, other: Branch) -> Branch {
        Branch { exact: self.exact + other.exact, small: Rounded::sum(self.small, other.small) }
    }

    /// The rationals are exact, so all rounding is that of the small parts, and a difference within
    /// it is a tie: users whose commitments are in proportion to their weights tie exactly.
    pub(crate) fn compare(&self, other: &Branch) -> Ordering {
        let mut difference = Rounded::sum(self.small, -other.small);
        if self.exact != other.exact {
            let exact = Wide::from_rational(&(&self.exact - &other.exact));
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

    /// Half of the pool, and a quarter, are exact in every form.
    fn wide(number: f64) -> Wide {
        Wide::from_rational(&Rational::try_from(number).unwrap())
    }

    fn start(overuse: f64) -> Commitment {
        let overuse = wide(overuse);
        Commitment::default().toward(overuse, || -overuse)
    }

    /// Held for `held`, then nothing for `idle`.
    fn release(overuse: f64, decay: &Decay, held: Span, idle: Span) -> Commitment {
        let used = start(overuse).after(&decay.over(held));
        used.toward(Wide::ZERO, || wide(overuse)).after(&decay.over(idle))
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
        // Held for a month: all but settled, and the later one is nearer.
        let [early, late] = [0, 1].map(|extra| start(0.5).after(&d.over(s(month + extra))));
        assert_eq!(early.value(), 0.5);
        assert_eq!(order(&early, &late), Ordering::Less);
    }

    #[test]
    fn in_parts_is_as_in_one() {
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
