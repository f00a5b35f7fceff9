//! One user's commitment for one resource, with digits to spare.

use std::cmp::Ordering;

use evenhand_model::Rational;

use crate::decay::{Kept, two_to_minus};
use crate::twofold::Twofold;

/// A number that may be far below the least `f64`, and how wrong it may be: `digits` * 2^-`halvings`.
///
/// After a month at delta = 0.9 a commitment is some 2^-400,000 and still more than none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Small {
    digits: Twofold,
    /// What `digits` may be off.
    error: f64,
    halvings: u64,
}

/// What the few operations of one step may be off, relative to their parts.
const STEP_ERROR: f64 = 1e-30;

/// `digits` stay above this, so that products of many factors keep all of theirs.
const LEAST_DIGITS: f64 = 1.0 / (1u128 << LEAST_HALVINGS) as f64;
const LEAST_HALVINGS: u64 = 64;

impl Small {
    fn sum(a: Small, b: Small) -> Small {
        let (a, b) = (a.plain(), b.plain());
        let error = a.error + b.error + STEP_ERROR * (a.digits.abs() + b.digits.abs());
        Small { digits: a.digits + b.digits, error, halvings: 0 }
    }

    fn is_zero(&self) -> bool {
        self.digits.is_zero() && self.error == 0.0
    }

    /// As one `f64`; 0 if it is below all of them.
    fn to_f64(self) -> f64 {
        self.digits.high() * two_to_minus(self.halvings)
    }

    /// Without halvings; 0 if it is below every `f64`.
    fn plain(self) -> Small {
        let common = two_to_minus(self.halvings);
        Small { digits: self.digits.scaled(common), error: self.error * common, halvings: 0 }
    }

    fn times(self, factor: Twofold) -> Small {
        let digits = self.digits * factor;
        Small { digits, error: self.error * factor.abs() + STEP_ERROR * digits.abs(), ..self }
    }

    fn kept(self, kept: &Kept) -> Small {
        let mut product = self.times(kept.digits);
        product.halvings += kept.halvings;
        while product.digits.abs() < LEAST_DIGITS && !product.digits.is_zero() {
            product.digits = product.digits.scaled(1.0 / LEAST_DIGITS);
            product.error /= LEAST_DIGITS;
            product.halvings += LEAST_HALVINGS;
        }
        product
    }
}

impl From<Twofold> for Small {
    fn from(digits: Twofold) -> Small {
        Small { digits, error: STEP_ERROR * digits.abs(), halvings: 0 }
    }
}

/// What paper 001, Eq. 6 needs to go on from an instant: the commitment c, the overuse ō it moves
/// to, and the gap g = c - ō.
///
/// Both c and g are kept, though one follows from the other, because each loses all its digits in
/// the other where it is small: a commitment just begun is a sliver of ō, and one that has
/// settled differs from ō by a sliver. c is updated by sums of positive terms and g by products, so
/// both stay right to some thirty digits of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Commitment {
    value: Small,
    gap: Small,
    overuse: Twofold,
}

impl Commitment {
    /// Whether it is 0 and stays so.
    pub(crate) fn is_nothing(&self) -> bool {
        self.value.is_zero() && self.overuse.is_zero()
    }

    /// ō
    pub(crate) fn overuse(&self) -> f64 {
        self.overuse.high()
    }

    /// c
    pub(crate) fn value(&self) -> f64 {
        self.value.to_f64()
    }

    /// c - ō
    pub(crate) fn gap(&self) -> f64 {
        self.gap.to_f64()
    }

    /// What it is after some time with the same overuse.
    pub(crate) fn after(&self, kept: &Kept) -> Commitment {
        if self.is_nothing() {
            return *self;
        }
        let gap = self.gap.kept(kept);
        let value = match self.overuse.is_zero() {
            true => gap,
            false => Small::sum(self.value.kept(kept), Small::from(self.overuse * kept.lost)),
        };
        Commitment { value, gap, ..*self }
    }

    /// From now on it moves to another overuse, `less` below the one so far.
    pub(crate) fn toward(&self, overuse: Twofold, less: Twofold) -> Commitment {
        let gap = if overuse.is_zero() {
            self.value
        } else if self.gap_is_better() {
            Small::sum(self.gap, less.into())
        } else {
            Small::sum(self.value, (-overuse).into())
        };
        Commitment { value: self.value, gap, overuse }
    }

    fn gap_is_better(&self) -> bool {
        !self.overuse.is_zero() && self.gap.plain().error < self.value.plain().error
    }
}

/// A branch of a key: an exact rational plus c or c - ō, whichever is known better.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    exact: Rational,
    small: Small,
}

impl Branch {
    /// `share` + commitment; `overuse` is ō exactly.
    pub(crate) fn new(share: Rational, commitment: &Commitment, overuse: impl FnOnce() -> Rational) -> Branch {
        match commitment.gap_is_better() {
            true => Branch { exact: share + overuse(), small: commitment.gap },
            false => Branch { exact: share, small: commitment.value },
        }
    }

    pub(crate) fn times(self, factor: &Rational) -> Branch {
        Branch { exact: self.exact * factor, small: self.small.times(Twofold::from_rational(factor)) }
    }

    /// The rationals are exact, so all rounding is that of the small parts, and a difference within
    /// it is a tie: users whose commitments are in proportion to their weights tie exactly.
    pub(crate) fn compare(&self, other: &Branch) -> Ordering {
        // In units of the larger one, lest both fall below the least f64. Zero is of any size.
        let parts = [self.small, other.small];
        let halvings = parts.iter().filter(|s| !s.is_zero()).map(|s| s.halvings).min().unwrap_or(0);
        let [a, b] = parts.map(|s| Small { halvings: s.halvings.saturating_sub(halvings), ..s }.plain());
        let (mut difference, mut error) = (a.digits - b.digits, a.error + b.error);
        if self.exact != other.exact {
            let common = two_to_minus(halvings);
            difference = Twofold::from_rational(&(&self.exact - &other.exact)) + difference.scaled(common);
            error *= common;
        }
        if difference.abs() <= error {
            return Ordering::Equal;
        }
        difference.high().partial_cmp(&0.0).unwrap_or(Ordering::Equal)
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

    fn start(overuse: f64) -> Commitment {
        let overuse = Twofold::sum(overuse, 0.0);
        Commitment::default().toward(overuse, -overuse)
    }

    /// Held for `held`, then nothing for `idle`.
    fn release(overuse: f64, decay: &Decay, held: Span, idle: Span) -> Commitment {
        let used = start(overuse).after(&decay.over(held));
        used.toward(Twofold::ZERO, Twofold::sum(overuse, 0.0)).after(&decay.over(idle))
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
