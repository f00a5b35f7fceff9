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

/// ln 2
pub(crate) const TWOFOLD_LN_2: Twofold = Twofold { high: std::f64::consts::LN_2, low: 2.3190468138462996e-17 };

/// 1/1! to 1/7!.
const INVERSE_FACTORIAL: [(f64, f64); 7] = [
    (1.0, 0.0),
    (0.5, 0.0),
    (0.16666666666666666, 9.25185853854297e-18),
    (0.041666666666666664, 2.3129646346357427e-18),
    (0.008333333333333333, 1.1564823173178714e-19),
    (0.001388888888888889, -5.300543954373577e-20),
    (0.0001984126984126984, 1.7209558293420705e-22),
];

/// 1/5! to 1/13!.
const TAIL: [f64; 9] = [
    0.008333333333333333,
    0.001388888888888889,
    0.0001984126984126984,
    2.48015873015873e-05,
    2.7557319223985893e-06,
    2.755731922398589e-07,
    2.505210838544172e-08,
    2.08767569878681e-09,
    1.6059043836821613e-10,
];

/// Up to here the series to 1/13! has thirty digits, and what TAIL adds after 1/7! has sixteen.
const SERIES: f64 = 1.0 / 64.0;
/// Up to here the same after 1/4!.
const SHORT_SERIES: f64 = 1.0 / 8192.0;

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

    /// e^x - 1 for |x| < 1/2, to thirty digits of its own however small it is.
    pub(crate) fn exp_m1(x: Twofold) -> Twofold {
        // e^2x - 1 = (e^x - 1) (e^x + 1), until a short series does.
        let mut z = x;
        let mut doublings = 0;
        while z.abs() > SERIES {
            z = z.scaled(0.5);
            doublings += 1;
        }
        // Terms below half of all digits need only half of all digits.
        let whole = if z.abs() < SHORT_SERIES { 4 } else { 7 };
        let tail = TAIL[whole - 4..].iter().rev().fold(0.0, |sum, term| sum * z.high + term);
        let mut sum = Twofold { high: tail, low: 0.0 };
        for &(high, low) in INVERSE_FACTORIAL[..whole].iter().rev() {
            sum = sum * z + Twofold { high, low };
        }
        let mut result = sum * z;
        for _ in 0..doublings {
            result = result * (result + Twofold { high: 2.0, low: 0.0 });
        }
        result
    }

    pub(crate) fn is_zero(self) -> bool {
        self.high == 0.0
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
        }

        /// Held against its own series in rationals.
        #[test]
        fn exp_m1_has_thirty_digits(n in any::<i64>(), scale in 0u32..80) {
            let exact = Rational::from_parts(n.into(), evenhand_model::UBig::ONE << (64 + scale) as usize);
            let x = Twofold::from_rational(&exact);
            let exact = rational(x);
            let (mut sum, mut term) = (Rational::ZERO, Rational::ONE);
            for k in 1u64..24 {
                term = term * &exact / Rational::from(k);
                sum += &term;
            }
            let error = to_f64(&(rational(Twofold::exp_m1(x)) - &sum)).abs();
            prop_assert!(error <= 1e-30 * to_f64(&sum).abs(), "{} at {}", error, to_f64(&exact));
        }

        #[test]
        fn whole_numbers_are_exact(n in any::<u64>()) {
            prop_assert_eq!(rational(Twofold::from_whole(n)), Rational::from(n));
        }
    }
}
