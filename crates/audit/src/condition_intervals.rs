//! Statistics of the intervals in which a condition holds: number, total, longest, first.

use evenhand_model::{NO_TIME, Span, Time};

/// Statistics of the maximal intervals in which a condition holds, updated when the condition changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntervalStatistics {
    since: u64,
    first: u64,
    total: u64,
    longest: u64,
    count: u64,
}

impl Default for IntervalStatistics {
    fn default() -> Self {
        IntervalStatistics { since: NO_TIME, first: NO_TIME, total: 0, longest: 0, count: 0 }
    }
}

impl IntervalStatistics {
    /// Returns whether the condition holds now.
    pub(crate) fn is_open(&self) -> bool {
        self.since != NO_TIME
    }

    /// Records whether the condition holds from `now` on (nanoseconds, not before the previous call's).
    #[inline]
    pub(crate) fn set(&mut self, holds: bool, now: u64) {
        if holds == self.is_open() {
            return;
        }
        if holds {
            self.since = now;
            self.first = self.first.min(now);
            self.count += 1;
        } else {
            let length = now - self.since;
            self.since = NO_TIME;
            self.total += length;
            self.longest = self.longest.max(length);
        }
    }

    /// Returns the number of intervals.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total length of the closed intervals.
    pub(crate) fn total(&self) -> Span {
        Span::from_nanos(self.total)
    }

    /// Returns the length of the longest closed interval.
    pub(crate) fn longest(&self) -> Span {
        Span::from_nanos(self.longest)
    }

    /// Returns the beginning of the first interval; meaningless if there is none.
    pub(crate) fn first(&self) -> Time {
        Time::from_nanos(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_cover_all_maximal_intervals() {
        let mut e = IntervalStatistics::default();
        for (holds, now) in [(false, 0), (true, 5), (true, 6), (false, 8), (false, 9), (true, 10), (false, 11)] {
            e.set(holds, now);
        }
        assert_eq!((e.count(), e.total().nanos(), e.longest().nanos(), e.first().nanos()), (2, 4, 3, 5));
        assert!(!e.is_open());
    }
}
