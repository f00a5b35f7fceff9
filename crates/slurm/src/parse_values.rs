//! Parses numbers, times and limits as Slurm's commands print them.

use std::fmt;

use evenhand_model::calendar::parse_date_time;
use evenhand_model::duration_text::wall_time;
use evenhand_model::{Span, Time};
use evenhand_workload::slurm_notation::limit;
pub(crate) use evenhand_workload::slurm_notation::number;

/// Returns what is expected in place of a text that [`number`] does not read: a whole number, or a smaller one.
pub(crate) fn expected_number(found: &str) -> String {
    match !found.is_empty() && found.trim_end_matches(['K', 'M', 'G']).bytes().all(|b| b.is_ascii_digit()) {
        true => format!("a whole number, at most {}", u64::MAX),
        false => "a whole number".into(),
    }
}

/// Parses seconds since 1970, or a time like 2026-01-31T12:00:00 in UTC.
pub(crate) fn time(text: &str) -> Option<Time> {
    match number(text).filter(|_| text.bytes().all(|b| b.is_ascii_digit())) {
        Some(seconds) => Time::checked_from_secs(seconds),
        None => parse_date_time(text.as_bytes()),
    }
}

/// Parses a signed whole number.
pub(crate) fn signed(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Parses a decimal number, or `inf`.
pub(crate) fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| !x.is_nan())
}

/// A time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit, or one set elsewhere (`Partition_Limit`).
    #[default]
    None,
    /// A limit.
    Span(Span),
}

impl Limit {
    /// Parses `1-02:03:04`, `5:00`, `UNLIMITED`, or minutes.
    ///
    /// ```
    /// # use evenhand_slurm::Limit;
    /// # use evenhand_model::Span;
    /// assert_eq!(Limit::parse("1-00:00:01"), Some(Limit::Span(Span::from_secs(86_401))));
    /// assert_eq!(Limit::parse("UNLIMITED"), Some(Limit::None));
    /// assert_eq!(Limit::parse("soon"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Limit> {
        if ["infinite", "NOT_SET"].iter().any(|word| word.eq_ignore_ascii_case(text)) {
            return Some(Limit::None);
        }
        limit(text.as_bytes(), false).map(|span| span.map_or(Limit::None, Limit::Span))
    }

    /// Parses a limit as slurm.conf writes it: as above, and also days-hours (`7-0`) and days-hours:minutes.
    pub(crate) fn parse_configured(text: &str) -> Option<Limit> {
        match text.split_once('-') {
            Some((_, hours)) => {
                let missing = 2usize.saturating_sub(hours.matches(':').count());
                Limit::parse(&format!("{text}{}", ":00".repeat(missing)))
            }
            None => Limit::parse(text),
        }
    }

    /// Returns the span, if there is a limit.
    pub fn span(self) -> Option<Span> {
        match self {
            Limit::None => None,
            Limit::Span(span) => Some(span),
        }
    }
}

impl fmt::Display for Limit {
    /// Writes the limit as Slurm does, rounded up to whole seconds: `1-02:03:04`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limit::Span(span) = self else { return f.write_str("UNLIMITED") };
        f.write_str(&wall_time(span.nanos().div_ceil(1_000_000_000)))
    }
}

/// Whether a value says that there is no limit, as a limit does that is not set: -1 in a column of limits. 0 is one.
pub(crate) fn is_no_limit(column: &str, value: &str) -> bool {
    let begins = |word: &str| column.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(word));
    value == "-1" && (begins("Grp") || begins("Max"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_and_times_are_parsed() {
        assert_eq!(
            ["7", "2K", "1M", "", "K", "-1", "1.5K", "99999999999999999999", "20000000000000000K"].map(number),
            [Some(7), Some(2048), Some(1 << 20), None, None, None, None, None, None]
        );
        let expected = ["many", "", "99999999999999999999", "20000000000000000K"].map(expected_number);
        assert_eq!(expected.map(|text| text.ends_with("at most 18446744073709551615")), [false, false, true, true]);
        assert_eq!(time("1693484987"), time("2023-08-31T12:29:47"));
        assert_eq!((time("2K"), time("soon"), time("99999999999999")), (None, None, None));
        assert_eq!((signed("-100"), float("inf"), float("nan")), (Some(-100), Some(f64::INFINITY), None));
    }

    proptest! {
        #[test]
        fn a_limit_parses_to_itself(seconds in 0u64..4_000_000_000) {
            let limit = Limit::Span(Span::from_secs(seconds));
            prop_assert_eq!(Limit::parse(&limit.to_string()), Some(limit));
        }

        #[test]
        fn a_time_parses_to_itself(seconds in 0u64..4_600_000_000) {
            let at = Time::from_secs(seconds);
            prop_assert_eq!(time(&evenhand_model::calendar::iso_8601(at)), Some(at));
        }

        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,12}|[0-9KMG:.-]{0,24}") {
            let _ = (number(&text), time(&text), Limit::parse(&text), signed(&text), float(&text));
        }
    }
}
