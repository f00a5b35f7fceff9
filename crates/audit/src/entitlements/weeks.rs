//! The weeks of a history, and the local dates of its times.

use evenhand_model::{Span, Time, calendar};

/// Nanoseconds in a second, and in a week.
const SECOND: i128 = 1_000_000_000;
const WEEK: i128 = 7 * 86_400 * SECOND;

/// Converts the workload's times to local dates, and determines where weeks begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Time zero of the workload, in nanoseconds since 1970 (UTC). If it is unknown (`None`), weeks last seven days
    /// each from the first event.
    pub origin: Option<i128>,
    /// Offset of local time from UTC in nanoseconds; positive east of Greenwich.
    pub ahead: i128,
}

impl Calendar {
    /// Returns the times after `from` and before `until` at which a week begins, in nanoseconds.
    pub(crate) fn boundaries(&self, from: Time, until: Time) -> Vec<u64> {
        // A Monday, 00:00 local time, in the workload's time.
        let mut at = i128::from(from.nanos()) - i128::from(self.since_monday(from).nanos()) + WEEK;
        let mut boundaries = Vec::new();
        while at < i128::from(until.nanos()) {
            // The conversion succeeds: the value lies between `from` and `until`.
            boundaries.extend(u64::try_from(at));
            at += WEEK;
        }
        boundaries
    }

    /// Returns a time as seconds since 1970 in local time; `None` if the origin is unknown or the time is before 1970.
    pub fn local_seconds(&self, at: Time) -> Option<u64> {
        let local = i128::from(at.nanos()) + self.origin? + self.ahead;
        u64::try_from(local.div_euclid(SECOND)).ok()
    }

    /// Returns the time since the local Monday, 00:00, on which the week of `at` began; zero if the origin is unknown.
    pub fn since_monday(&self, at: Time) -> Span {
        let Some(origin) = self.origin else { return Span::ZERO };
        let local = i128::from(at.nanos()) + origin + self.ahead;
        calendar::since_monday(local).unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(boundaries: Vec<u64>) -> Vec<u64> {
        boundaries.into_iter().map(|ns| ns / 1_000_000_000).collect()
    }

    #[test]
    fn weeks_begin_on_local_mondays_or_with_the_history() {
        // Monday, 5 January 2026, 00:00 UTC.
        let monday = 1_767_571_200;
        let week = 604_800;
        let of = |calendar: Calendar, from: u64, until: u64| {
            secs(calendar.boundaries(Time::from_secs(from), Time::from_secs(until)))
        };
        let utc = Calendar { origin: Some(0), ahead: 0 };
        assert_eq!(of(utc, monday - 1, monday + 2 * week), [monday, monday + week]);
        assert_eq!(of(utc, monday, monday + week + 1), [monday + week]);
        // Monday begins an hour earlier in a time zone that is an hour ahead.
        let ahead = Calendar { origin: Some(0), ahead: 3600 * SECOND };
        assert_eq!(of(ahead, monday - 7200, monday + 1), [monday - 3600]);
        assert_eq!(ahead.local_seconds(Time::from_secs(monday)), Some(monday + 3600));
        assert_eq!(ahead.since_monday(Time::from_secs(monday)), Span::from_secs(3600));
        let log = Calendar { origin: Some(i128::from(monday - 10) * SECOND), ahead: 0 };
        assert_eq!(of(log, 0, 100), [10]);
        let unknown = Calendar { origin: None, ahead: 0 };
        assert_eq!(of(unknown, 5, 2 * week), [5 + week]);
        assert_eq!(unknown.local_seconds(Time::ZERO), None);
    }
}
