//! Numbers as tables print them.

/// Formats a number with four significant digits, or as a whole number from 1000 on: `3`, `2.5`, `0.6667`, `19327352832`,
/// `1.2e-7`.
pub(crate) fn four_digits(x: f64) -> String {
    let size = x.abs();
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return without_trailing_zeros(format!("{x:.3e}"));
    }
    let decimals = match size {
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 => 3,
        _ => 4,
    };
    without_trailing_zeros(format!("{x:.decimals$}"))
}

/// Removes zeros at the end of a decimal.
fn without_trailing_zeros(text: String) -> String {
    let (mantissa, exponent) = text.split_once('e').map_or((text.as_str(), None), |(m, e)| (m, Some(e)));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    exponent.map_or_else(|| mantissa.to_string(), |e| format!("{mantissa}e{e}"))
}

/// Formats a number with one decimal from 1 to 1000, three decimals below and none above.
pub(crate) fn rounded(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || v >= 1000.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a share as a percentage with one decimal, unless that is 0: `66.7 %`, `100 %`.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    let text = if text == "-0.0" { "0.0" } else { &text };
    format!("{} %", text.strip_suffix(".0").unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::{four_digits, percent};

    #[test]
    fn numbers_have_four_significant_digits() {
        for (x, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (2.5, "2.5"),
            (2.0 / 3.0, "0.6667"),
            (1234.6, "1235"),
            (100.0, "100"),
            (19_327_352_832.0, "19327352832"),
            (1.2e-7, "1.2e-7"),
            (1e300, "1e300"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(four_digits(x), text);
        }
    }

    #[test]
    fn percentages_have_a_decimal_unless_it_is_0() {
        assert_eq!((percent(2.0 / 3.0).as_str(), percent(1.0).as_str()), ("66.7 %", "100 %"));
        assert_eq!((percent(-0.0).as_str(), percent(-1e-9).as_str(), percent(-0.01).as_str()), ("0 %", "0 %", "-1 %"));
    }
}
