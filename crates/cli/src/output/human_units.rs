//! Durations and amounts as people write them: `41.7 min`, `2.1 h`, `603 GB`.

pub(crate) use evenhand_model::duration_text::duration;
use evenhand_model::size_units;

use super::numbers::rounded;

/// Formats the length of a period in days, in years if it is long, or in the unit of [`duration`] if it is short: `8.2 days`,
/// `12.5 years`, `5.1 h`.
pub(crate) fn period(seconds: f64) -> String {
    const YEAR: f64 = 365.25 * 86_400.0;
    if seconds >= 10.0 * YEAR {
        return format!("{} years", three_digits(seconds / YEAR));
    }
    let text = duration(seconds);
    text.strip_suffix(" d").map(|days| format!("{days} days")).unwrap_or(text)
}

/// Formats an amount with its unit; a size in the largest binary unit that gives at least 1, since a KB of a job log is 1024 bytes.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    match size_units::largest(value, unit) {
        Some((size, unit)) => format!("{} {unit}", three_digits(value / size)),
        None => format!("{} {unit}", rounded(value)).trim_end().to_string(),
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_periods_are_not_in_days() {
        assert_eq!([300.0, 18_360.0, 708_480.0, 4e9].map(period), ["5 min", "5.1 h", "8.2 days", "127 years"]);
    }

    #[test]
    fn sizes_are_in_binary_units() {
        assert_eq!(amount(12_210_085.0, "KB"), "11.6 GiB");
        assert_eq!(amount(2_147_483_648.0, "B"), "2.00 GiB");
        assert_eq!(amount(6.0, "processors"), "6.0 processors");
        assert_eq!(amount(1.5, ""), "1.5");
    }
}
