//! Dates and times of day of the Gregorian calendar.
//!
//! The functions know no time zones: they take and return clock time in UTC. A caller whose clocks are ahead of UTC
//! adds the offset first.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::{Span, Time};

/// Parses `2023-08-31T12:29:47` as UTC; returns the time since 1970-01-01T00:00:00.
///
/// Every field has its full width, and there is no fraction of a second and no zone. Second 60, a leap second, is the
/// first second of the next minute. Returns `None` for any other text, for a date that does not exist, and for a date
/// before 1970 or after [`Time::MAX`] (2116).
///
/// ```
/// use evenhand_model::{Time, calendar::parse_date_time};
/// assert_eq!(parse_date_time(b"2000-02-29T23:59:59"), Some(Time::from_secs(951_868_799)));
/// assert_eq!(parse_date_time(b"2023-02-29T00:00:00"), None);
/// ```
pub fn parse_date_time(text: &[u8]) -> Option<Time> {
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if text.len() != 19 || separators.iter().any(|&(at, byte)| text[at] != byte) {
        return None;
    }
    let digit = |value: i16, byte: &u8| byte.is_ascii_digit().then(|| value * 10 + i16::from(byte - b'0'));
    let number = |from: usize, to: usize| text[from..to].iter().try_fold(0, digit);
    let two_digits = |from: usize| number(from, from + 2).and_then(|n| i8::try_from(n).ok());
    let second = two_digits(17)?;
    let leap = second == 60;
    let second = if leap { 59 } else { second };
    let (month, day, hour, minute) = (two_digits(5)?, two_digits(8)?, two_digits(11)?, two_digits(14)?);
    let civil = DateTime::new(number(0, 4)?, month, day, hour, minute, second, 0).ok()?;
    let seconds = TimeZone::UTC.to_timestamp(civil).ok()?.as_second() + i64::from(leap);
    Time::checked_from_secs(u64::try_from(seconds).ok()?)
}

/// Formats seconds since 1970 as a date: `2026-03-02`. Returns `None` after the year 9999.
pub fn date(seconds: u64) -> Option<String> {
    Some(civil(seconds)?.date().to_string())
}

/// Formats seconds since 1970 as a date and time of day: `2026-03-02 14:05`, with the seconds unless they are 0.
/// Returns `None` after the year 9999.
pub fn date_and_time(seconds: u64) -> Option<String> {
    let civil = civil(seconds)?;
    let time = civil.time().to_string();
    let time = time.strip_suffix(":00").unwrap_or(&time);
    Some(format!("{} {time}", civil.date()))
}

/// Formats a time since 1970 as [`date_and_time`] does, without a fraction of a second.
pub fn date_and_time_of(time: Time) -> String {
    date_and_time(time.nanos() / 1_000_000_000).expect("every time is before the year 2117")
}

/// Formats a time since 1970 as Slurm's commands take it where the zone is UTC: `2026-01-31T12:00:00`. A fraction of a
/// second is dropped.
pub fn iso_8601(time: Time) -> String {
    let civil = civil(time.nanos() / 1_000_000_000);
    civil.expect("every time is before the year 2117").to_string()
}

/// Returns how long before an instant, given in nanoseconds since 1970, its week began, on Monday at 00:00. Returns
/// `None` outside the years -9999 to 9999.
pub fn since_monday(nanos: i128) -> Option<Span> {
    const DAY_NS: i128 = 86_400_000_000_000;
    let civil = TimeZone::UTC.to_datetime(Timestamp::from_nanosecond(nanos).ok()?);
    let days = i128::from(civil.weekday().to_monday_zero_offset());
    Span::checked_from_nanos(u128::try_from(days * DAY_NS + nanos.rem_euclid(DAY_NS)).ok()?)
}

/// The date and time of day in UTC, if jiff's calendar reaches that far.
fn civil(seconds: u64) -> Option<DateTime> {
    Some(TimeZone::UTC.to_datetime(Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dates and seconds by GNU `date -u -d … +%s`.
    const KNOWN: [(&str, u64); 6] = [
        ("1970-01-01T00:00:00", 0),
        ("2000-02-29T23:59:59", 951_868_799),
        ("2000-03-01T00:00:00", 951_868_800),
        ("2023-08-31T12:29:47", 1_693_484_987),
        ("2024-12-31T00:00:00", 1_735_603_200),
        ("2100-03-01T00:00:00", 4_107_542_400),
    ];

    #[test]
    fn dates_and_times_are_seconds_since_1970() {
        for (text, seconds) in KNOWN {
            assert_eq!(parse_date_time(text.as_bytes()), Time::checked_from_secs(seconds), "{text}");
            assert_eq!(iso_8601(Time::from_secs(seconds)), text);
            assert_eq!(date(seconds).unwrap(), text[..10]);
        }
        assert_eq!(parse_date_time(b"2016-12-31T23:59:60"), parse_date_time(b"2017-01-01T00:00:00"), "a leap second");
        for bad in [
            "2023-02-29T00:00:00",
            "2100-02-29T00:00:00",
            "1969-12-31T00:00:00",
            "2023-13-01T00:00:00",
            "2023-00-01T00:00:00",
            "2023-08-31T24:00:00",
            "2023-08-31T12:60:00",
            "2023-08-31T12:29:61",
            "2023-08-31 12:29:47",
            "2023-8-31T12:29:47",
            "2023-08-31T12:29:4x",
            "",
            "9999-12-31T23:59:59",
        ] {
            assert_eq!(parse_date_time(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_printed_without_seconds_that_are_zero() {
        assert_eq!(date_and_time(951_868_799).unwrap(), "2000-02-29 23:59:59");
        assert_eq!(date_and_time(1_767_571_200 + 3660).unwrap(), "2026-01-05 01:01");
        assert_eq!(date_and_time(1_767_571_200).unwrap(), "2026-01-05 00:00");
        assert_eq!((date(u64::MAX), date_and_time(300_000_000_000)), (None, None));
        assert_eq!(iso_8601(Time::MAX), "2116-02-20T23:53:38");
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let parts = |day: u64| {
            let text = date(day * 86_400).unwrap();
            let mut parts = text.split('-').map(|part| part.parse::<u32>().unwrap());
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap())
        };
        let mut last = parts(0);
        for day in 1..60_000 {
            let (year, month, date) = parts(day);
            let next = [(last.0, last.1, last.2 + 1), (last.0, last.1 + 1, 1), (last.0 + 1, 1, 1)];
            assert!(next.contains(&(year, month, date)) && date <= 31 && month <= 12, "{day}: {year}-{month}-{date}");
            last = (year, month, date);
        }
    }

    #[test]
    fn weeks_begin_on_monday_at_midnight() {
        // Monday, 5 January 2026, 00:00 UTC.
        let monday = 1_767_571_200_000_000_000;
        assert_eq!(since_monday(monday), Some(Span::ZERO));
        assert_eq!(since_monday(monday - 1), Some(Span::from_nanos(604_800_000_000_000 - 1)));
        assert_eq!(since_monday(monday + 604_800_000_000_000), Some(Span::ZERO));
        // 1970 began on a Thursday.
        assert_eq!(since_monday(-1), Some(Span::from_nanos(3 * 86_400_000_000_000 - 1)));
        assert_eq!(since_monday(i128::MAX), None);
    }
}
