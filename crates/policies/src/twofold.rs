//! Sums of two `f64`: some 106 bits, for what decides ties.

use std::ops::{Add, Mul, Neg, Sub};

use evenhand_model::{Rational, to_f64};

/// high + low, |low| at most half a unit in the last place of high (Dekker 1971, Knuth's two-sum).
///
/// Commitments are kept so: users whose commitments tie by construction (the same overuse over
/// weight, reached by other numbers) then agree to some 30 digits, and a difference that is real
/// (a microsecond in a decay of months) stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Twofold {
    high: f64,
    low: f64,
}

/// What a handful of operations may be off, relative to their result.
pub(crate) const TWOFOLD_NEAR: f64 = 1e-28;

impl Twofold {
    pub(crate) const ZERO: Twofold = Twofold { high: 0.0, low: 0.0 };

    /// The sum of two `f64`, exactly.
    #[inline]
    pub(crate) fn sum(a: f64, b: f64) -> Twofold {
        let high = a + b;
        let b_part = high - a;
        Twofold { high, low: (a - (high - b_part)) + (b - b_part) }
    }

    /// The product of two `f64` below 2^990, exactly (Dekker 1971).
    ///
    /// In plain operations: a fused one is a call where the processor is not known to have it.
    #[inline]
    pub(crate) fn product(a: f64, b: f64) -> Twofold {
        let high = a * b;
        let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
        let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
        Twofold { high, low }
    }

    /// The nearest sum of two `f64`.
    pub(crate) fn from_rational(r: &Rational) -> Twofold {
        let high = to_f64(r);
        let rest = Rational::try_from(high).map_or(0.0, |h| to_f64(&(r - h)));
        Twofold { high, low: rest }
    }

    /// From a whole number, exactly.
    #[inline]
    pub(crate) fn from_whole(n: u64) -> Twofold {
        if n < 1 << 53 {
            return Twofold { high: n as f64, low: 0.0 };
        }
        Twofold::sum((n >> 32 << 32) as f64, (n & 0xffff_ffff) as f64)
    }

    pub(crate) fn high(self) -> f64 {
        self.high
    }

    pub(crate) fn low(self) -> f64 {
        self.low
    }

    pub(crate) fn is_zero(self) -> bool {
        self.high == 0.0
    }

    /// 1 over an `f64`.
    pub(crate) fn inverse(divisor: f64) -> Twofold {
        let quotient = 1.0 / divisor;
        let rest = Twofold::sum(1.0, 0.0) - Twofold::product(quotient, divisor);
        Twofold::sum(quotient, rest.high / divisor)
    }

    /// Times a power of two: exact.
    pub(crate) fn scaled(self, power_of_two: f64) -> Twofold {
        Twofold { high: self.high * power_of_two, low: self.low * power_of_two }
    }

    pub(crate) fn abs(self) -> f64 {
        self.high.abs()
    }
}

/// The upper and the lower half of an `f64`'s digits: their products are exact (Veltkamp 1968).
#[inline]
fn halves(a: f64) -> (f64, f64) {
    let scaled = a * 134_217_729.0; // 2^27 + 1
    let high = scaled - (scaled - a);
    (high, a - high)
}

impl Add for Twofold {
    type Output = Twofold;
    #[inline]
    fn add(self, other: Twofold) -> Twofold {
        let high = Twofold::sum(self.high, other.high);
        let low = Twofold::sum(self.low, other.low);
        let partly = Twofold::sum(high.high, high.low + low.high);
        Twofold::sum(partly.high, partly.low + low.low)
    }
}

impl Neg for Twofold {
    type Output = Twofold;
    #[inline]
    fn neg(self) -> Twofold {
        Twofold { high: -self.high, low: -self.low }
    }
}

impl Sub for Twofold {
    type Output = Twofold;
    #[inline]
    fn sub(self, other: Twofold) -> Twofold {
        self + -other
    }
}

impl Mul for Twofold {
    type Output = Twofold;
    #[inline]
    fn mul(self, other: Twofold) -> Twofold {
        let p = Twofold::product(self.high, other.high);
        Twofold::sum(p.high, p.low + (self.high * other.low + self.low * other.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rational(t: Twofold) -> Rational {
        Rational::try_from(t.high).unwrap() + Rational::try_from(t.low).unwrap()
    }

    fn number() -> impl Strategy<Value = Rational> {
        (any::<i64>(), 1u64..u64::MAX).prop_map(|(n, d)| Rational::from_parts(n.into(), d.into()))
    }

    proptest! {
        #[test]
        fn operations_are_those_of_rationals_to_thirty_digits(a in number(), b in number()) {
            let (x, y) = (Twofold::from_rational(&a), Twofold::from_rational(&b));
            let error = |t: Twofold, exact: Rational, scale: f64| to_f64(&(rational(t) - exact)).abs() <= 1e-30 * scale;
            let (scale_a, scale_b) = (to_f64(&a).abs(), to_f64(&b).abs());
            prop_assert!(error(x, a.clone(), scale_a));
            prop_assert!(error(x + y, &a + &b, scale_a + scale_b));
            prop_assert!(error(x - y, &a - &b, scale_a + scale_b));
            prop_assert!(error(x * y, &a * &b, scale_a * scale_b));
            if !b.is_zero() {
                let divisor = Rational::try_from(y.high).unwrap();
                prop_assert!(error(Twofold::inverse(y.high), Rational::ONE / divisor, 1.0 / scale_b));
            }
        }

        #[test]
        fn whole_numbers_are_exact(n in any::<u64>()) {
            prop_assert_eq!(rational(Twofold::from_whole(n)), Rational::from(n));
        }
    }
}
