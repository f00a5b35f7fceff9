//! Extended-precision arithmetic: floating-point numbers with 128 binary digits, for decisions about ties.

use std::ops::{Add, Mul, Neg, Sub};

use evenhand_model::{IBig, Rational, UBig};

/// A number mantissa * 2^exponent; the first bit of the mantissa is set, or the mantissa is 0.
///
/// Commitments have this type. Users whose commitments tie by construction (the same overuse over weight, computed from
/// other numbers) then agree to some 38 decimal digits; a real difference (a microsecond in a decay of months) is
/// distinguishable; and the rest of a commitment after a month at delta = 0.9 (some 2^-400,000) is not 0. It is based
/// on integers, because pairs of `f64` take several times as long and have neither the digits nor the range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ExtendedFloat {
    mantissa: u128,
    exponent: i64,
    sign: Sign,
}

/// A whole word, because storing a number in parts and loading it whole stalls the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(u64)]
enum Sign {
    #[default]
    Plus,
    Minus,
}

impl Sign {
    #[inline]
    fn minus_if(negative: bool) -> Sign {
        if negative { Sign::Minus } else { Sign::Plus }
    }
}

const BITS: i64 = 128;

impl ExtendedFloat {
    pub(crate) const ZERO: ExtendedFloat = ExtendedFloat { mantissa: 0, exponent: 0, sign: Sign::Plus };
    pub(crate) const ONE: ExtendedFloat = ExtendedFloat { mantissa: 1 << 127, exponent: -127, sign: Sign::Plus };
    /// ln 2
    pub(crate) const LN_2: ExtendedFloat =
        ExtendedFloat { mantissa: 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af, exponent: -128, sign: Sign::Plus };
    /// log2 e
    pub(crate) const LOG2_E: ExtendedFloat =
        ExtendedFloat { mantissa: 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e88, exponent: -127, sign: Sign::Plus };

    #[inline]
    fn normal(mantissa: u128, exponent: i64, sign: Sign) -> ExtendedFloat {
        if mantissa == 0 {
            return ExtendedFloat::ZERO;
        }
        let shift = mantissa.leading_zeros();
        ExtendedFloat { mantissa: mantissa << shift, exponent: exponent - i64::from(shift), sign }
    }

    /// Converts a whole number, exactly.
    #[inline]
    pub(crate) fn from_whole(n: u64) -> ExtendedFloat {
        if n == 0 {
            return ExtendedFloat::ZERO;
        }
        let shift = n.leading_zeros();
        ExtendedFloat { mantissa: u128::from(n << shift) << 64, exponent: -64 - i64::from(shift), sign: Sign::Plus }
    }

    /// Returns a - b, exactly.
    #[inline]
    pub(crate) fn from_difference(a: u64, b: u64) -> ExtendedFloat {
        ExtendedFloat { sign: Sign::minus_if(a < b), ..ExtendedFloat::from_whole(a.abs_diff(b)) }
    }

    /// Returns the first 128 binary digits of a rational.
    pub(crate) fn from_rational(r: &Rational) -> ExtendedFloat {
        let (numerator, denominator) = (r.numerator(), r.denominator());
        let negative = numerator < &IBig::ZERO;
        let numerator = UBig::try_from(if negative { -numerator.clone() } else { numerator.clone() });
        let numerator = numerator.unwrap_or(UBig::ZERO);
        // A quotient of at least 128 digits, truncated.
        let shift = BITS + 1 + length(denominator) - length(&numerator);
        let quotient = if shift >= 0 {
            (numerator << shift as usize) / denominator
        } else {
            numerator / (denominator.clone() << -shift as usize)
        };
        let cut = (length(&quotient) - BITS).max(0);
        let mantissa = u128::try_from(quotient >> cut as usize).unwrap_or(0);
        ExtendedFloat::normal(mantissa, cut - shift, Sign::minus_if(negative))
    }

    /// Returns the nearest `f64` or a neighbour of it; 0 instead of subnormal numbers.
    #[inline]
    pub(crate) fn to_f64(self) -> f64 {
        let high = (self.mantissa >> 64) as u64 as f64;
        let size = high * two_to(64) * two_to(self.exponent);
        if self.is_negative() { -size } else { size }
    }

    #[inline]
    pub(crate) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(crate) fn is_negative(self) -> bool {
        self.sign == Sign::Minus
    }

    /// Returns the ratio of this number's unit in the last place to that of `other`.
    #[inline]
    pub(crate) fn unit_over(self, other: ExtendedFloat) -> f64 {
        two_to(self.exponent.saturating_sub(other.exponent))
    }

    /// Returns |self| in units in the last place, approximately.
    pub(crate) fn in_units(self) -> f64 {
        (self.mantissa >> 64) as u64 as f64 * two_to(64)
    }

    /// Returns a unit in the last place.
    pub(crate) fn last_digit(self) -> ExtendedFloat {
        ExtendedFloat { mantissa: 1 << 127, exponent: self.exponent - 127, sign: Sign::Plus }
    }

    /// Returns whether 0 <= self < 1/2.
    #[inline]
    pub(crate) fn is_below_half(self) -> bool {
        self.exponent < -BITS && !self.is_negative() || self.is_zero()
    }

    /// Returns 1 - self, for 0 <= self <= 1/2.
    #[inline]
    pub(crate) fn one_minus(self) -> ExtendedFloat {
        let below = -self.exponent - BITS;
        let aligned = if below < BITS { self.mantissa >> below.max(0) } else { 0 };
        if aligned == 0 {
            ExtendedFloat::ONE
        } else {
            ExtendedFloat { mantissa: aligned.wrapping_neg(), exponent: -BITS, sign: Sign::Plus }
        }
    }

    /// Returns self * 2^-halvings, exactly.
    pub(crate) fn halved(self, halvings: u64) -> ExtendedFloat {
        ExtendedFloat { exponent: self.exponent - halvings as i64, ..self }
    }

    /// Splits into a whole number and a fraction in [0, 1); for 0 <= self < 2^64.
    pub(crate) fn split(self) -> (u64, ExtendedFloat) {
        match -self.exponent {
            below if below >= BITS => (0, self),
            below if below <= 0 => (self.mantissa as u64, ExtendedFloat::ZERO),
            below => {
                let rest = self.mantissa & ((1 << below) - 1);
                ((self.mantissa >> below) as u64, ExtendedFloat::normal(rest, self.exponent, Sign::Plus))
            }
        }
    }

    /// Returns 1 - e^-self for 0 <= self <= ln 2, to full precision also for tiny numbers.
    pub(crate) fn one_minus_exp(self) -> ExtendedFloat {
        // x (1/1! - x (1/2! - x (1/3! - ...))): the brackets in fixed point, one bit before the point,
        // x all after it.
        let below = (-self.exponent - BITS).max(0);
        if below >= BITS {
            return self;
        }
        let x = self.mantissa >> below;
        // Terms 126 bits below the first are omitted, and terms 63 bits below need only half of the digits.
        let long = if below == 0 { SERIES } else { (62 / below as usize + 1).min(SERIES) };
        let terms = TERMS[below as usize];
        let (mut half, half_x) = (0u64, x >> 64);
        for coefficient in INVERSE_FACTORIAL[long.min(terms)..terms].iter().rev() {
            half = (coefficient >> 64) as u64 - ((u128::from(half) * half_x) >> 64) as u64;
        }
        let mut bracket = u128::from(half) << 64;
        for coefficient in INVERSE_FACTORIAL[..long.min(terms)].iter().rev() {
            bracket = coefficient - high_product(bracket, x);
        }
        self * ExtendedFloat::normal(bracket, -127, Sign::Plus)
    }

    /// Returns -ln of a number in (0, 1).
    pub(crate) fn minus_ln(number: &Rational) -> ExtendedFloat {
        let half = Rational::from_parts(1.into(), UBig::from(2u8));
        let (mut rest, mut halvings) = (number.clone(), 0u64);
        while rest < half {
            rest *= Rational::from(2);
            halvings += 1;
        }
        // -ln(1 - y) = y + y^2/2 + ..., y <= 1/2, the smallest terms first.
        let y = ExtendedFloat::from_rational(&(Rational::ONE - rest));
        let mut sum = ExtendedFloat::ZERO;
        for k in (1..=BITS as u64).rev() {
            sum = sum * y + ExtendedFloat::from_rational(&Rational::from_parts(1.into(), k.into()));
        }
        sum * y + ExtendedFloat::from_whole(halvings) * ExtendedFloat::LN_2
    }
}

/// Returns the number of binary digits.
fn length(n: &UBig) -> i64 {
    let bytes = n.to_le_bytes();
    bytes.last().map_or(0, |last| 8 * bytes.len() as i64 - i64::from(last.leading_zeros()))
}

/// Enough terms for x = ln 2.
const SERIES: usize = 32;

/// 1/1! to 1/32!, one bit before the point.
const INVERSE_FACTORIAL: [u128; SERIES] = {
    let mut table = [1 << 127; SERIES];
    let mut k = 1;
    while k < SERIES {
        table[k] = table[k - 1] / (k as u128 + 1);
        k += 1;
    }
    table
};

/// The number of terms that x < 2^-n needs for 126 bits: term k is below x^k / (k + 1)!.
const TERMS: [usize; BITS as usize] = {
    let mut table = [SERIES; BITS as usize];
    let mut below = 0;
    while below < table.len() {
        let mut k = 1;
        while k < SERIES && below * k + (INVERSE_FACTORIAL[k].leading_zeros() as usize) < 126 {
            k += 1;
        }
        table[below] = k;
        below += 1;
    }
    table
};

/// Returns 2^n; 0 or the largest power of two beyond the range of `f64`.
fn two_to(n: i64) -> f64 {
    f64::from_bits(((n.clamp(-1023, 1023) + 1023) as u64) << 52)
}

/// Returns the upper half of a product.
#[inline]
fn high_product(a: u128, b: u128) -> u128 {
    let low = |x: u128| x & u128::from(u64::MAX);
    let (a0, a1, b0, b1) = (low(a), a >> 64, low(b), b >> 64);
    let (middle, other) = (a1 * b0 + ((a0 * b0) >> 64), a0 * b1);
    a1 * b1 + (middle >> 64) + ((low(middle) + other) >> 64)
}

impl Mul for ExtendedFloat {
    type Output = ExtendedFloat;
    #[inline]
    fn mul(self, other: ExtendedFloat) -> ExtendedFloat {
        let product = high_product(self.mantissa, other.mantissa);
        if product == 0 {
            return ExtendedFloat::ZERO;
        }
        // Both first bits are set, so the shift is at most 1.
        let shift = product.leading_zeros();
        let exponent = self.exponent + other.exponent + BITS - i64::from(shift);
        ExtendedFloat { mantissa: product << shift, exponent, sign: Sign::minus_if(self.sign != other.sign) }
    }
}

impl Add for ExtendedFloat {
    type Output = ExtendedFloat;
    #[inline]
    fn add(self, other: ExtendedFloat) -> ExtendedFloat {
        let in_order =
            other.is_zero() || !self.is_zero() && (self.exponent, self.mantissa) >= (other.exponent, other.mantissa);
        let (large, small) = if in_order { (self, other) } else { (other, self) };
        let below = large.exponent.saturating_sub(small.exponent);
        let aligned = if below < BITS { small.mantissa >> below.max(0) } else { 0 };
        if small.is_zero() || aligned == 0 {
            return large;
        }
        if large.sign != small.sign {
            return ExtendedFloat::normal(large.mantissa - aligned, large.exponent, large.sign);
        }
        match large.mantissa.overflowing_add(aligned) {
            (mantissa, false) => ExtendedFloat { mantissa, ..large },
            (rest, true) => ExtendedFloat { mantissa: (rest >> 1) | (1 << 127), exponent: large.exponent + 1, ..large },
        }
    }
}

impl Neg for ExtendedFloat {
    type Output = ExtendedFloat;
    #[inline]
    fn neg(self) -> ExtendedFloat {
        ExtendedFloat { sign: Sign::minus_if(!self.is_negative() && !self.is_zero()), ..self }
    }
}

impl Sub for ExtendedFloat {
    type Output = ExtendedFloat;
    #[inline]
    fn sub(self, other: ExtendedFloat) -> ExtendedFloat {
        self + -other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::to_f64;
    use proptest::prelude::*;

    fn rational(w: ExtendedFloat) -> Rational {
        let power = UBig::ONE << w.exponent.unsigned_abs() as usize;
        let size = Rational::from(UBig::from(w.mantissa));
        let size = if w.exponent < 0 { size / Rational::from(power) } else { size * Rational::from(power) };
        if w.is_negative() { -size } else { size }
    }

    fn number() -> impl Strategy<Value = Rational> {
        // Of very different magnitudes, and often of equal ones.
        (any::<i64>(), 1u64..u64::MAX, prop_oneof![Just(0usize), 0usize..200])
            .prop_map(|(n, d, scale)| Rational::from_parts(n.into(), UBig::from(d) << scale))
    }

    fn near(w: ExtendedFloat, exact: &Rational, scale: &Rational) -> bool {
        let error = rational(w) - exact;
        let error = if error < Rational::ZERO { -error } else { error };
        error * Rational::from(UBig::ONE << 124) <= *scale
    }

    fn size(r: &Rational) -> Rational {
        if *r < Rational::ZERO { -r.clone() } else { r.clone() }
    }

    proptest! {
        #[test]
        fn operations_are_those_of_rationals_to_124_digits(a in number(), b in number()) {
            let (x, y) = (ExtendedFloat::from_rational(&a), ExtendedFloat::from_rational(&b));
            prop_assert!(near(x, &a, &size(&a)));
            prop_assert!(near(x + y, &(&a + &b), &(size(&a) + size(&b))));
            prop_assert!(near(x - y, &(&a - &b), &(size(&a) + size(&b))));
            prop_assert_eq!(x.is_below_half(), a >= Rational::ZERO && &a + &a < Rational::ONE);
            if x.is_below_half() {
                prop_assert!(near(x.one_minus(), &(Rational::ONE - &a), &Rational::ONE));
            }
            prop_assert!(near(x * y, &(&a * &b), &size(&(&a * &b))));
            prop_assert!((x.to_f64() - to_f64(&a)).abs() <= 1e-15 * to_f64(&size(&a)));
            prop_assert!((x - x).is_zero());
            prop_assert!(!b.is_zero() || (x + y) == x);
        }

        #[test]
        fn one_less_exp_is_its_series(n in 1u64.., scale in 0usize..150) {
            let exact = Rational::from_parts(n.into(), UBig::ONE << (65 + scale));
            let (mut sum, mut term) = (Rational::ZERO, Rational::from(-1));
            for k in 1u64..40 {
                term = -term * &exact / Rational::from(k);
                sum += &term;
            }
            prop_assert!(near(ExtendedFloat::from_rational(&exact).one_minus_exp(), &sum, &sum), "{}", to_f64(&exact));
        }

        #[test]
        fn whole_numbers_and_their_parts(n: u64, part: u32) {
            let both = Rational::from(n) + Rational::from_parts(part.into(), UBig::ONE << 32);
            let (whole, rest) = ExtendedFloat::from_rational(&both).split();
            prop_assert_eq!((whole, rest.to_f64()), (n, f64::from(part) / 4_294_967_296.0));
            prop_assert_eq!(rational(ExtendedFloat::from_whole(n)), Rational::from(n));
            let exact = Rational::from(n) - Rational::from(u64::from(part));
            prop_assert_eq!(rational(ExtendedFloat::from_difference(n, part.into())), exact);
        }
    }

    #[test]
    fn logarithms() {
        for number in ["1/2", "9/10", "999999/1000000", "1/10", "1/1000000000000"] {
            let number: Rational = number.parse().unwrap();
            let ln = ExtendedFloat::minus_ln(&number);
            assert!((ln.to_f64() / -to_f64(&number).ln() - 1.0).abs() < 1e-9, "{number}");
            // The inverse by e^-x, in whole half-lives and a fraction.
            let (halvings, rest) = (ln * ExtendedFloat::LOG2_E).split();
            let back = (ExtendedFloat::ONE - (rest * ExtendedFloat::LN_2).one_minus_exp()).halved(halvings);
            assert!((back - ExtendedFloat::from_rational(&number)).to_f64().abs() < 1e-34 * back.to_f64(), "{number}");
        }
    }
}
