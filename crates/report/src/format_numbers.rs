//! Formats numbers, durations and shares as text. `assets/study_page.js` formats the same numbers when the
//! reader chooses another run; the browser test compares the two.

use evenhand_model::size_units;

/// Separates groups of three digits: a narrow no-break space.
const SEPARATOR: char = '\u{202f}';
/// Separates a number from its unit: a no-break space.
const SPACE: char = '\u{a0}';
/// Stands for a number that does not exist or is not finite.
pub(crate) const ABSENT: &str = "–";

/// Formats an integer in groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    group_digits(&number.to_string())
}

fn group_digits(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(SEPARATOR);
        }
        text.push(digit);
    }
    text
}

/// Formats a number with at most `decimals` decimals, without trailing zeros, in groups of three digits.
pub(crate) fn trimmed(number: f64, decimals: usize) -> String {
    if !number.is_finite() {
        return ABSENT.into();
    }
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let sign = if number < 0.0 && (whole != "0" || !fraction.is_empty()) { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", group_digits(whole))
}

/// Formats a number with three significant digits, or as an integer if that has more. Halves round up as in the
/// page's script; the formatter of std would round them to even.
pub(crate) fn three_digits(number: f64) -> String {
    if !number.is_finite() {
        return ABSENT.into();
    }
    let sign = if number < 0.0 { "−" } else { "" };
    let number = number.abs();
    for (decimals, power) in [(3, 1e3), (2, 1e2), (1, 1e1)] {
        let scaled = (number * power + 0.5).floor();
        if scaled < 1000.0 {
            let digits = format!("{scaled:0width$}", width = decimals + 1);
            let (whole, fraction) = digits.split_at(digits.len() - decimals);
            return format!("{sign}{whole}.{fraction}");
        }
    }
    format!("{sign}{}", group_digits(&format!("{:.0}", (number + 0.5).floor())))
}

/// Formats a quotient with three significant digits; below 0.01 with an exponent (`1.23e-5`).
pub(crate) fn quotient(number: f64) -> String {
    let small = number != 0.0 && number.abs() < 0.01;
    if small { format!("{number:.2e}") } else { three_digits(number) }
}

/// Converts a duration to a unit that suits its size; returns the number and the unit.
pub(crate) fn duration_parts(seconds: f64) -> (String, &'static str) {
    let size = seconds.abs();
    if !seconds.is_finite() {
        return (ABSENT.into(), "");
    }
    if size == 0.0 {
        return ("0".into(), "s");
    }
    let (length, unit) = if size < 1e-6 {
        (1e-9, "ns")
    } else if size < 1e-3 {
        (1e-6, "µs")
    } else if size < 1.0 {
        (1e-3, "ms")
    } else if size < 120.0 {
        (1.0, "s")
    } else if size < 7200.0 {
        (60.0, "min")
    } else if size < 172_800.0 {
        (3600.0, "h")
    } else {
        (86_400.0, "d")
    };
    (three_digits(seconds / length), unit)
}

/// Formats a duration in a unit that suits its size.
pub(crate) fn duration(seconds: f64) -> String {
    let (number, unit) = duration_parts(seconds);
    if unit.is_empty() { number } else { format!("{number}{SPACE}{unit}") }
}

/// Formats a duration in a unit that suits its size and, if that is not the second, in seconds as well.
pub(crate) fn duration_and_seconds(seconds: f64) -> String {
    let (number, unit) = duration_parts(seconds);
    match unit {
        "" => number,
        "s" => duration(seconds),
        _ => format!("{} ({})", duration(seconds), seconds_text(seconds)),
    }
}

/// Formats a duration in seconds: three significant digits, integers from 1000 s on.
pub(crate) fn seconds_text(seconds: f64) -> String {
    format!("{}{SPACE}s", three_digits(seconds))
}

/// Formats a share as a percentage with one decimal.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return ABSENT.into();
    }
    // Larger shares are unusual; they read better with three digits.
    if share.abs() >= 10.0 {
        return format!("{}{SPACE}%", three_digits(share * 100.0));
    }
    let tenths = (share.abs() * 1000.0 + 0.5).floor() as u64;
    let sign = if share < 0.0 && tenths > 0 { "−" } else { "" };
    format!("{sign}{}.{}{SPACE}%", tenths / 10, tenths % 10)
}

/// Formats a ratio between 0 and 1 with three decimals, truncated so that only 1 reads as 1.000.
pub(crate) fn ratio(ratio: f64) -> String {
    if !ratio.is_finite() {
        return ABSENT.into();
    }
    // The small term corrects floating point: 57/100 is slightly below 570 thousandths.
    format!("{:.3}", (ratio * 1000.0 + 1e-9).floor() / 1000.0)
}

/// Formats an amount of a resource with at most six significant digits.
pub(crate) fn amount(number: f64) -> String {
    if !number.is_finite() {
        return ABSENT.into();
    }
    let magnitude = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    if magnitude < -9.0 {
        return format!("{number:e}");
    }
    trimmed(number, (5.0 - magnitude).clamp(0.0, 15.0) as usize)
}

/// Returns the largest unit of size of which `amount`, which is in `unit`, is at least one: its size in `unit` and its
/// name. Other units stay.
pub(crate) fn size_unit(unit: &str, amount: f64) -> (f64, &str) {
    size_units::largest(amount, unit).unwrap_or((1.0, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_a_unit_that_suits_their_size() {
        let plain = |text: String| text.replace([SEPARATOR, SPACE], " ");
        let text = |seconds| plain(duration(seconds));
        assert_eq!(text(0.0), "0 s");
        assert_eq!(text(0.25), "250 ms");
        assert_eq!(text(3e-9), "3.00 ns");
        assert_eq!(text(12.25), "12.3 s");
        assert_eq!(text(112.5), "113 s");
        assert_eq!(text(812.0), "13.5 min");
        assert_eq!(text(-12_240.0), "−3.40 h");
        assert_eq!(text(1e12), "11 574 074 d");
        assert_eq!(text(f64::NAN), "–");
        assert_eq!(plain(duration_and_seconds(1204.0)), "20.1 min (1 204 s)");
        assert_eq!(plain(duration_and_seconds(90.0)), "90.0 s");
    }

    #[test]
    fn rounding_up_keeps_three_significant_digits() {
        assert_eq!(three_digits(0.9996), "1.00");
        assert_eq!(three_digits(9.996), "10.0");
        assert_eq!(three_digits(99.96), "100");
        assert_eq!(three_digits(0.000_1), "0.000");
        assert_eq!(three_digits(1e15), "1\u{202f}000\u{202f}000\u{202f}000\u{202f}000\u{202f}000");
    }

    #[test]
    fn shares_are_rounded_and_ratios_truncated() {
        assert_eq!(percent(0.3256), "32.6\u{a0}%");
        assert_eq!(percent(-0.000_01), "0.0\u{a0}%");
        assert_eq!(percent(-999.0), "−99\u{202f}900\u{a0}%");
        assert_eq!(ratio(0.99996), "0.999");
        assert_eq!(ratio(0.57), "0.570");
        assert_eq!(ratio(1.0), "1.000");
        assert_eq!(amount(1234.5678), "1\u{202f}234.57");
        assert_eq!(amount(0.000_012_5), "0.0000125");
    }
}
