//! Parses numbers from bytes, without a `String`, in the inner loop of the readers.
//!
//! The reference model is [`evenhand_model::Quantity::parse`]; a property test compares the two.

use evenhand_model::Amount;

/// The billionths in one.
pub(crate) const NANO: u128 = 1_000_000_000;

/// Parses the decimal digits at the start of `text`; returns the value and the number of digits. The value overflows
/// after 19 digits, which [`integer`] checks.
#[inline]
pub(super) fn leading_digits(text: &[u8]) -> (u64, usize) {
    let mut value = 0u64;
    for (n, b) in text.iter().enumerate() {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return (value, n);
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    (value, text.len())
}

/// Parses a whole number that is not negative and fits `u64`.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<u64> {
    let (value, digits) = leading_digits(text);
    if digits != text.len() || digits == 0 {
        return None;
    }
    // 19 digits always fit. Longer numbers are rare, and std checks them.
    if digits <= 19 { Some(value) } else { std::str::from_utf8(text).ok()?.parse().ok() }
}

/// A decimal number in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// The nearest number of billionths, halves up.
    pub(crate) nano: u128,
    /// Whether the text has more than nine significant decimals.
    pub(crate) rounded: bool,
}

/// Returns whether a workload can hold an amount, given in billionths.
pub(super) fn fits(nano: u128) -> bool {
    nano <= u128::from(Amount::MAX.0) * NANO
}

/// The largest power of ten that fits `u128`.
const LARGEST_POWER: u32 = 38;
/// The largest exponent, as in `Quantity`.
const LARGEST_EXPONENT: i32 = 60;

/// Parses `12`, `12.5`, `.5` or `3.8e-05`: without a sign, below 2^128 billionths.
#[inline]
pub(crate) fn decimal(text: &[u8]) -> Option<Decimal> {
    // The fast path for nearly all numbers of a trace: few digits, at most nine of them after the point.
    let (whole, n) = leading_digits(text);
    if n == text.len() && (1..=19).contains(&n) {
        return Some(Decimal { nano: u128::from(whole) * NANO, rounded: false });
    }
    if n <= 19 && text.get(n) == Some(&b'.') {
        let (part, m) = leading_digits(&text[n + 1..]);
        if n + 1 + m == text.len() && (1..=9).contains(&m) {
            let nano = u128::from(whole) * NANO + u128::from(part * 10u64.pow(9 - m as u32));
            return Some(Decimal { nano, rounded: false });
        }
    }
    any_decimal(text)
}

fn any_decimal(text: &[u8]) -> Option<Decimal> {
    // `mantissa` holds the digits without the point; `rest` is whether a digit that no longer fits is not 0.
    let (mut mantissa, mut rest, mut digits) = (0u128, false, 0usize);
    // value = mantissa * 10^scale
    let mut scale = 0i32;
    let mut point = false;
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        match b {
            b'0'..=b'9' => {
                digits += 1;
                // The exponent shifts by at most 60 places, so longer texts are not numbers of a trace.
                if digits > LARGEST_EXPONENT as usize {
                    return None;
                }
                if mantissa < 10u128.pow(LARGEST_POWER - 1) {
                    mantissa = mantissa * 10 + u128::from(b - b'0');
                    scale -= i32::from(point);
                } else {
                    rest |= b != b'0';
                    scale += i32::from(!point);
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' => {
                let exponent: i32 = std::str::from_utf8(&text[at + 1..]).ok()?.parse().ok()?;
                if exponent.abs() > LARGEST_EXPONENT {
                    return None;
                }
                scale += exponent;
                break;
            }
            _ => return None,
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    let shift = scale + 9;
    if shift >= 0 {
        // With a rest, the number has about 28 digits before the point.
        if rest {
            return None;
        }
        if mantissa == 0 {
            return Some(Decimal { nano: 0, rounded: false });
        }
        let power = 10u128.checked_pow(shift as u32)?;
        return Some(Decimal { nano: mantissa.checked_mul(power)?, rounded: false });
    }
    let places = shift.unsigned_abs();
    if places > LARGEST_POWER {
        // mantissa < 10^38, so this is less than half a billionth.
        return Some(Decimal { nano: 0, rounded: mantissa != 0 || rest });
    }
    let power = 10u128.pow(places);
    let (nano, remainder) = (mantissa / power, mantissa % power);
    let up = remainder >= power - remainder;
    Some(Decimal { nano: nano + u128::from(up), rounded: remainder != 0 || rest })
}

#[cfg(test)]
mod tests {
    use evenhand_model::Quantity;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decimals_equal_quantities(text in "[0-9]{0,40}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?") {
            let exact = Quantity::parse(&text).ok();
            match decimal(text.as_bytes()) {
                Some(found) => {
                    let exact = exact.unwrap();
                    prop_assert_eq!(exact.nano().is_none(), found.rounded, "{}", text);
                    if let Some(nano) = exact.nano() {
                        prop_assert_eq!(nano, found.nano);
                    } else {
                        // |exact - found| <= half a billionth, and the half goes up.
                        let twice = |nano: u128| Quantity::parse(&format!("{nano}/2000000000")).unwrap();
                        prop_assert!(exact < twice(found.nano * 2 + 1), "{} {}", text, found.nano);
                        prop_assert!(found.nano == 0 || exact >= twice(found.nano * 2 - 1), "{} {}", text, found.nano);
                    }
                }
                // Not a number at all, or too large for 37 digits.
                None => prop_assert!(exact.is_none_or(|q| q.to_f64() > 1e26), "{}", text),
            }
        }

        #[test]
        fn integers_equal_those_of_std(text in "[0-9]{0,22}|[0-9a.+-]{1,4}") {
            let std = text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
            prop_assert_eq!(integer(text.as_bytes()), std);
        }
    }

    #[test]
    fn texts_that_are_not_numbers_are_rejected() {
        for bad in ["", ".", "-1", "+1", "1 ", "nan", "1e", "e5", "1.2.3", "1e999", "0x10", "1,5", "1e+-5"] {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }
}
