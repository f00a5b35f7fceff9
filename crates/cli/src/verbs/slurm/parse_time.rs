//! Parsing of times on the command line.

use evenhand_model::calendar::parse_date_time;
use evenhand_model::{Span, Time};

use crate::failure::Failure;

/// Parses `2026-01-31` or `2026-01-31T12:00[:00]` in UTC, or a time before `now`: `30d`.
pub(super) fn parse_time(option: &str, text: &str, now: Time) -> Result<Time, Failure> {
    let with_seconds = match text.len() {
        10 => format!("{text}T00:00:00"),
        16 => format!("{text}:00"),
        _ => text.to_string(),
    };
    let ago = || Span::parse(text).ok().map(|span| now.saturating_sub(span));
    parse_date_time(with_seconds.as_bytes()).or_else(ago).ok_or_else(|| {
        Failure::Input(format!(
            "{option}: found {text:?}, expected a date or time in UTC (2026-01-31, 2026-01-31T12:00), or a time ago (30d, 12h)"
        ))
    })
}

/// Returns the time of the system's clock, in whole seconds.
pub(super) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time::from_secs(since.map_or(0, |d| d.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_a_time_ago() {
        let now = Time::from_secs(1_693_484_987);
        let at = |text| parse_time("--from", text, now).ok();
        assert_eq!(at("2023-08-31"), Time::checked_from_secs(1_693_440_000));
        assert_eq!(at("2023-08-31T12:29"), Time::checked_from_secs(1_693_484_940));
        assert_eq!(at("2023-08-31T12:29:47"), Some(now));
        assert_eq!(at("1d"), Time::checked_from_secs(1_693_484_987 - 86_400));
        assert_eq!(at("5000w"), Some(Time::ZERO), "longer ago than 1970");
        assert_eq!((at("yesterday"), at("2023-13-01"), at("")), (None, None, None));
    }
}
