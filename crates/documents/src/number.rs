//! Parses numbers, with a specific error for each kind of invalid text.

use evenhand_model::{IBig, Quantity, Rational, UBig};

use crate::error::quoted;

/// Parses a quantity. The error is what was found and expected.
pub(crate) fn quantity(text: &str) -> Result<Quantity, String> {
    if let Ok(quantity) = Quantity::parse(text) {
        return Ok(quantity);
    }
    let negative = text.trim().strip_prefix('-').and_then(|rest| Quantity::parse(rest).ok());
    match negative {
        // Programs print -0 for numbers that they rounded.
        Some(zero) if zero.is_zero() => Ok(zero),
        Some(_) => Err(format!("found {}, expected a number that is not negative", quoted(text))),
        None => Err(describe_error(text, "")),
    }
}

/// Parses a quantity greater than 0. The error is what was found and expected.
///
/// ```
/// assert_eq!(evenhand_documents::positive("54/13").unwrap().to_string(), "54/13");
/// assert_eq!(evenhand_documents::positive("0").unwrap_err(), "found \"0\", expected a number greater than 0");
/// ```
///
/// # Errors
/// Returns an error if the text is not a quantity greater than 0.
pub fn positive(text: &str) -> Result<Quantity, String> {
    match quantity(text) {
        Ok(quantity) if !quantity.is_zero() => Ok(quantity),
        Ok(_) => Err(format!("found {}, expected a number greater than 0", quoted(text))),
        Err(_) if is_negative(text) => Err(format!("found {}, expected a number greater than 0", quoted(text))),
        Err(_) => Err(describe_error(text, " greater than 0")),
    }
}

/// Parses an exact number of either sign. Accepts the long fractions of exact results.
pub(crate) fn exact(text: &str) -> Result<Rational, String> {
    let trimmed = text.trim();
    let (sign, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (-Rational::ONE, rest),
        None => (Rational::ONE, trimmed),
    };
    match Quantity::parse(rest).ok().map(|q| q.exact().clone()).or_else(|| long_fraction(rest)) {
        Some(magnitude) => Ok(sign * magnitude),
        None => Err(describe_error(text, "")),
    }
}

/// The longest fraction, in characters; it bounds the time of parsing.
const LONGEST_FRACTION: usize = 100_000;

fn long_fraction(text: &str) -> Option<Rational> {
    let (n, d) = text.split_once('/').unwrap_or((text, "1"));
    let digits = |t: &str| (!t.is_empty() && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.to_string());
    if text.len() > LONGEST_FRACTION {
        return None;
    }
    let (n, d) = (UBig::from_str_radix(&digits(n)?, 10).ok()?, UBig::from_str_radix(&digits(d)?, 10).ok()?);
    (d != UBig::ZERO).then(|| Rational::from_parts(IBig::from(n), d))
}

fn is_negative(text: &str) -> bool {
    text.trim().strip_prefix('-').is_some_and(|rest| Quantity::parse(rest).is_ok())
}

/// Describes why a text is not a quantity. `more` extends the expectation.
fn describe_error(text: &str, more: &str) -> String {
    let found = quoted(text);
    let plain = text.trim().trim_start_matches(['+', '-']);
    let lower = plain.to_ascii_lowercase();
    if ["nan", "inf", "infinity"].contains(&lower.as_str()) {
        return format!("found {found}, expected a finite number{more}");
    }
    if plain.split_once('/').is_some_and(|(_, below)| Quantity::parse(below).is_ok_and(|d| d.is_zero())) {
        return format!("found {found}, a division by 0; expected a fraction whose denominator is greater than 0");
    }
    if is_decimal(plain) {
        return format!(
            "found {found}, which is too long or too large; expected at most 60 digits and an exponent from -60 to 60"
        );
    }
    format!(
        "found {found}, expected a number{more}: an integer, a decimal, a fraction \"54/13\" or a size (18Gi, 250m)"
    )
}

/// Returns whether a text has the form of a decimal number, of any size.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    digits(whole) && digits(part) && whole.len() + part.len() > 0 && !exponent.is_empty() && digits(exponent)
}

/// Converts a TOML integer of another base to decimal digits; `None` if it is not a number or has more than 256 digits.
pub(crate) fn decimal_digits(digits: &str, radix: u32) -> Option<String> {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits.strip_prefix('+').unwrap_or(digits)),
    };
    (digits.len() <= 256).then_some(())?;
    UBig::from_str_radix(digits, radix).ok().map(|n| format!("{sign}{n}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_quantities_name_the_cause() {
        let error = |text: &str| quantity(text).unwrap_err();
        assert!(error("-1").contains("not negative"));
        assert!(error("-1/2").contains("not negative"));
        assert!(error("nan").contains("finite"));
        assert!(error("-inf").contains("finite"));
        assert!(error("0/0").contains("division by 0"));
        assert!(error("3/0.0").contains("division by 0"));
        assert!(error("1e999").contains("too large"));
        assert!(error("1e-99999999999").contains("too large"));
        assert!(error(&"9".repeat(241)).contains("too large"));
        assert!(error(&format!("0.{}", "9".repeat(60))).contains("too large"));
        assert!(error("12 apples").contains("an integer, a decimal"));
        assert!(error("").contains("an integer, a decimal"));
        assert!(positive("0").unwrap_err().contains("greater than 0"));
        assert!(positive("-2").unwrap_err().contains("greater than 0"));
        assert!(positive("x").unwrap_err().contains("greater than 0"));
        assert!(quantity("-0.0").unwrap().is_zero());
        assert_eq!(quantity("250m").unwrap().to_string(), "1/4");
    }

    #[test]
    fn exact_numbers_may_be_negative_and_long() {
        assert_eq!(exact("-1/3").unwrap().to_string(), "-1/3");
        let long = format!("1{}1/1{}", "0".repeat(199), "0".repeat(200));
        assert_eq!(exact(&long).unwrap().to_string(), long);
        assert!(exact(&"9".repeat(LONGEST_FRACTION + 1)).is_err());
        assert!(exact("1/0").is_err());
        assert!(exact("nan").is_err());
        assert!(exact("--1").is_err());
    }
}
