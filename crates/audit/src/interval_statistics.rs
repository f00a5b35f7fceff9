//! When something was so: total, longest, first, how often.

use evenhand_model::{NO_TIME, Span, Time};

/// The maximal intervals in which something holds, reported as they begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Episodes {
    since: u64,
    first: u64,
    total: u64,
    longest: u64,
    count: u64,
}

impl Default for Episodes {
    fn default() -> Self {
        Episodes { since: NO_TIME, first: NO_TIME, total: 0, longest: 0, count: 0 }
    }
}

impl Episodes {
    pub(crate) fn is_open(&self) -> bool {
        self.since != NO_TIME
    }

    /// From `now` (nanoseconds, never before the last call's) it holds or does not.
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

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn total(&self) -> Span {
        Span::from_nanos(self.total)
    }

    pub(crate) fn longest(&self) -> Span {
        Span::from_nanos(self.longest)
    }

    /// When it first held; of no meaning if it never did.
    pub(crate) fn first(&self) -> Time {
        Time::from_nanos(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up() {
        let mut e = Episodes::default();
        for (holds, now) in [(false, 0), (true, 5), (true, 6), (false, 8), (false, 9), (true, 10), (false, 11)] {
            e.set(holds, now);
        }
        assert_eq!((e.count(), e.total().nanos(), e.longest().nanos(), e.first().nanos()), (2, 4, 3, 5));
        assert!(!e.is_open());
    }
}
