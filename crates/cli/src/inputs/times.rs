//! Times on the command line, and the clock of a log.

use evenhand_model::calendar::{date_and_time, parse_date_time};
use evenhand_model::{Span, Time, Workload};

use crate::failure::Failure;

/// Parses `2026-01-31` or `2026-01-31T12:00[:00]` in UTC, or a time before `now`: `30d`.
pub(crate) fn parse_time(option: &str, text: &str, now: Time) -> Result<Time, Failure> {
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

/// How the seconds of a log relate to dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogClock {
    /// The log's zero, in seconds since 1970; 0 if its times are already such.
    zero: i64,
    /// The last submission, in seconds of the log: an age counts from there.
    last: i64,
}

impl LogClock {
    /// Returns the clock of a log. Logs in the Standard Workload Format count from `UnixStartTime` in their header; some that state it count
    /// from 1970 all the same.
    pub(crate) fn of(workload: &Workload) -> LogClock {
        let seconds = |time: Option<&Time>| time.map_or(0, |t| t.whole_secs());
        let submit = &workload.columns().submit;
        LogClock { zero: workload.zero_s(), last: seconds(submit.last()) }
    }

    /// Returns this clock of a log whose last submission is at `last` instead.
    pub(crate) fn ending(self, last: Time) -> LogClock {
        LogClock { last: last.whole_secs(), ..self }
    }

    /// Returns the clock of a log whose times count from 1970 and end now.
    #[cfg(feature = "slurm")]
    pub(crate) fn since_1970(now: i64) -> LogClock {
        LogClock { zero: 0, last: now }
    }

    /// Parses a number of seconds of the log, or whatever [`parse_time`] takes; an age is before the last submission. Returns
    /// seconds of the log.
    pub(crate) fn parse(&self, option: &str, text: &str) -> Result<i64, Failure> {
        if let Ok(seconds) = text.parse::<i64>() {
            return Ok(seconds);
        }
        let now = Time::from_secs((self.zero + self.last).max(0) as u64);
        let time = parse_time(option, text, now).map_err(|_| {
            Failure::Input(format!(
                "{option}: found {text:?}, expected seconds of the log (864000), a date or time in UTC (2026-01-31, 2026-01-31T12:00), or a time \
                 before the last submission (30d, 12h)"
            ))
        })?;
        Ok(time.whole_secs() - self.zero)
    }

    /// Returns the last submission, in seconds of the log.
    pub(crate) fn last(&self) -> i64 {
        self.last
    }

    /// Formats seconds of the log as a date and time.
    pub(crate) fn show(&self, seconds: i64) -> String {
        let at = self.zero + seconds;
        let dated = self.zero > 0 || at > 10 * 366 * 86_400;
        let date = u64::try_from(at).ok().filter(|_| dated).and_then(date_and_time);
        date.unwrap_or_else(|| format!("second {seconds}"))
    }
}

/// Returns the time of the system's clock, in whole seconds.
#[cfg(feature = "slurm")]
pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time::from_secs(since.map_or(0, |d| d.as_secs()))
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Resource, Task, WorkloadBuilder};

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

    #[test]
    fn a_logs_clock_takes_its_seconds_dates_and_ages() {
        let workload = |zero: &str, submits: [u64; 2]| {
            let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
            builder.add_header("UnixStartTime", zero);
            for submit in submits {
                builder.push(&Task { submit: Time::from_secs(submit), amounts: &[1], ..Task::default() });
            }
            builder.finish().unwrap()
        };
        let relative = LogClock::of(&workload("1693440000", [0, 86_400]));
        let parsed = |text| relative.parse("--from", text).ok();
        assert_eq!(["-5", "7200", "2023-08-31T01:00", "12h"].map(parsed), [-5, 7200, 3600, 43_200].map(Some));
        assert_eq!(parsed("soon"), None);
        assert_eq!(relative.show(3600), "2023-08-31 01:00");
        let absolute = LogClock::of(&workload("1693440000", [1_693_440_000, 1_693_526_400]));
        assert_eq!(absolute.parse("--from", "2023-08-31").ok(), Some(1_693_440_000));
        assert_eq!(absolute.show(1_693_440_000), "2023-08-31 00:00");
        assert_eq!(LogClock::of(&workload("unknown", [0, 9])).show(3600), "second 3600");
    }
}
