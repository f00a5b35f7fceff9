//! Quantities as text: integers, decimals, fractions, sizes.

use std::fmt;

use dashu_int::ops::BitTest as _;
use dashu_int::{IBig, UBig};
use thiserror::Error;

use crate::Rational;

/// An exact, non-negative quantity, parsed from text.
///
/// Accepted: `4`, `0.0125`, `3.815e-05`, `"54/13"`, sizes with a binary unit (`18Ki`, `18Mi`,
/// `18Gi`, `18Ti`, `18Pi`, also with the B of bytes: `18GiB`), with a decimal one (`k`, `M`, `G`,
/// `T`, `P`; not `GB`, which job logs take for GiB), and thousandths (`250m`).
///
/// ```
/// use evenhand_model::Quantity;
/// assert_eq!(Quantity::parse("250m").unwrap(), Quantity::parse("1/4").unwrap());
/// assert_eq!(Quantity::parse("2Ki").unwrap().to_f64(), 2048.0);
/// assert_eq!(Quantity::parse("1.5KiB").unwrap().to_f64(), 1536.0);
/// assert!(Quantity::parse("-1").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(Rational);

/// A text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found:?}, expected {expected}")]
pub struct QuantityError {
    /// The text.
    pub found: String,
    /// The expected form.
    pub expected: &'static str,
}

const EXPECTED: &str =
    "a number that is not negative: an integer, a decimal, a fraction \"54/13\" or a size (18Gi, 250m)";
/// The longest decimal number and the largest exponent that are accepted. The limit bounds the work.
const MAX_DIGITS: usize = 60;
/// The most digits of a numerator or denominator; every text within [`MAX_DIGITS`] satisfies it. Plain whole numbers
/// may be as long, so that every parsed quantity can be printed and parsed again.
const MAX_WHOLE_DIGITS: usize = 4 * MAX_DIGITS;

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    /// Returns an error if the text is not a quantity, is negative, or has a zero denominator.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        parse(text.trim())
            .filter(is_writable)
            .map(Quantity)
            .ok_or_else(|| QuantityError { found: text.to_string(), expected: EXPECTED })
    }

    /// Returns the exact value.
    pub fn exact(&self) -> &Rational {
        &self.0
    }

    /// Returns the nearest `f64`.
    pub fn to_f64(&self) -> f64 {
        crate::to_f64(&self.0)
    }

    /// Returns whether the quantity is zero.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// Returns the quantity in billionths; `None` if it has more than nine decimals or does not fit `u128`.
    pub fn nano(&self) -> Option<u128> {
        let scaled = &self.0 * Rational::from(IBig::from(1_000_000_000u64));
        let (n, d) = scaled.into_parts();
        (d == UBig::ONE).then(|| u128::try_from(n).ok()).flatten()
    }
}

impl From<Rational> for Quantity {
    fn from(r: Rational) -> Quantity {
        Quantity(r)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

fn is_writable(quantity: &Rational) -> bool {
    // 2^797 is the power of two next below 10^240.
    quantity.numerator().bit_len() < 798 && quantity.denominator().bit_len() < 798
}

fn parse(text: &str) -> Option<Rational> {
    if let Some((n, d)) = text.split_once('/') {
        let (n, d) = (decimal(n.trim())?, decimal(d.trim())?);
        return (!d.is_zero()).then(|| n / d);
    }
    let unit_at =
        text.char_indices().rev().take_while(|(_, c)| c.is_ascii_alphabetic()).last().map_or(text.len(), |(i, _)| i);
    let (number, unit) = text.split_at(unit_at);
    let two = |k: usize| Rational::from(IBig::ONE << k);
    let ten = |k: usize| Rational::from(IBig::from(10).pow(k));
    let factor = match unit.strip_suffix('B').filter(|unit| unit.ends_with('i')).unwrap_or(unit) {
        "" => Rational::ONE,
        "m" => Rational::ONE / ten(3),
        "k" | "K" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "Ki" => two(10),
        "Mi" => two(20),
        "Gi" => two(30),
        "Ti" => two(40),
        "Pi" => two(50),
        _ => return None,
    };
    Some(decimal(number)? * factor)
}

/// `12`, `12.5`, `.5`, `3.8e-05`.
fn decimal(text: &str) -> Option<Rational> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().ok().filter(|e| e.unsigned_abs() as usize <= MAX_DIGITS)?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.len() + part.len();
    let limit = if whole.len() == text.len() { MAX_WHOLE_DIGITS } else { MAX_DIGITS };
    if digits == 0 || digits > limit || !whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let joined = UBig::from_str_radix(&format!("{whole}{part}"), 10).ok()?;
    let exponent = exponent - i32::try_from(part.len()).ok()?;
    let power = UBig::from(10u8).pow(exponent.unsigned_abs() as usize);
    let n = IBig::from(joined);
    Some(if exponent < 0 { Rational::from_parts(n, power) } else { Rational::from(n * IBig::from(power)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(Quantity::parse("0.0125").unwrap().nano(), Some(12_500_000));
        assert_eq!(Quantity::parse("3.815e-05").unwrap().nano(), Some(38_150));
        assert_eq!(Quantity::parse("18Gi").unwrap().to_f64(), 18.0 * 1024.0 * 1024.0 * 1024.0);
        assert_eq!(Quantity::parse("54/13").unwrap().to_string(), "54/13");
        assert_eq!(Quantity::parse("1/3").unwrap().nano(), None);
        assert_eq!(Quantity::parse(".5").unwrap().to_f64(), 0.5);
        assert!(Quantity::parse("0/7").unwrap().is_zero());
    }

    #[test]
    fn parsed_quantities_survive_printing_and_parsing() {
        let nines = "9".repeat(60);
        for text in [nines.clone(), format!("1e-60/{nines}e60"), format!("0.5299/{nines}"), format!("{nines}Pi")] {
            let quantity = Quantity::parse(&text).unwrap();
            assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity), "{text}");
        }
        let long = "9".repeat(239);
        for bad in
            [format!("{nines}9.0"), "1e61".into(), format!("{long}99"), format!("{long}Pi"), format!("1e-60/{long}")]
        {
            assert!(Quantity::parse(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_that_are_not_quantities_are_rejected() {
        for bad in ["", "-1", "1/0", "nan", "inf", "1e999999999", "0x10", "1.2.3", "4 Gi", "Gi", "1e", "٣"] {
            assert!(Quantity::parse(bad).is_err(), "{bad}");
        }
    }
}
