//! Utilisation and queue length by hour.

use evenhand_model::{Span, Time};

/// The width of a bin, unless the time covered needs more than [`MAX_BINS`].
const HOUR: u64 = Span::from_secs(3600).nanos();
const MAX_BINS: u64 = 200_000;

/// Collects the levels of one schedule. Integrals are in whole steps times nanoseconds.
pub(super) struct Levels {
    origin: Time,
    end: Time,
    width: u64,
    held: Integral,
    waiting: Integral,
}

/// Levels by bin.
pub(super) struct HourlyLevels {
    /// Held over capacity.
    pub(super) utilization: Vec<f64>,
    /// The number of waiting jobs.
    pub(super) waiting: Vec<f64>,
}

/// The integral of a level over bins: parts of bins, and changes of the level of whole bins.
struct Integral {
    parts: Vec<u128>,
    changes: Vec<i128>,
}

impl Integral {
    fn new(bins: usize) -> Integral {
        Integral { parts: vec![0; bins + 1], changes: vec![0; bins + 2] }
    }

    /// Adds a level from `from` to `to`, in nanoseconds since the origin.
    fn add(&mut self, width: u64, from: u64, to: u64, level: u64) {
        let (first, last) = ((from / width) as usize, (to / width) as usize);
        let part = |nanos: u64| u128::from(nanos) * u128::from(level);
        if first == last {
            self.parts[first] += part(to - from);
            return;
        }
        self.parts[first] += part((first as u64 + 1) * width - from);
        self.parts[last] += part(to - last as u64 * width);
        self.changes[first + 1] += i128::from(level);
        self.changes[last] -= i128::from(level);
    }

    /// Returns the mean level of each of `bins` bins.
    fn means(&self, bins: usize, width: u64) -> Vec<f64> {
        let mut level = 0i128;
        let bin = |(part, change): (&u128, &i128)| {
            level += change;
            (*part as i128 + level * i128::from(width)) as f64 / width as f64
        };
        self.parts.iter().zip(&self.changes).take(bins).map(bin).collect()
    }
}

impl Levels {
    /// Creates empty levels from `origin` to `end`.
    pub(super) fn new(origin: Time, end: Time) -> Levels {
        let span = (end - origin).nanos();
        let width = HOUR.max(span.div_ceil(MAX_BINS));
        let bins = Levels::bins(span, width);
        Levels { origin, end, width, held: Integral::new(bins), waiting: Integral::new(bins) }
    }

    fn bins(span: u64, width: u64) -> usize {
        span.div_ceil(width).max(1) as usize
    }

    /// Adds a job that holds `amount` steps.
    pub(super) fn add(&mut self, submit: Time, start: Time, duration: Span, amount: u64) {
        let at = |time: Time| (time.min(self.end) - self.origin).nanos();
        let (submit, started, finish) = (at(submit), at(start), at(start + duration));
        self.waiting.add(self.width, submit, started, 1);
        self.held.add(self.width, started, finish, amount);
    }

    /// Returns the levels, with use over `capacity` in steps.
    pub(super) fn finish(self, capacity: f64) -> HourlyLevels {
        let bins = Levels::bins((self.end - self.origin).nanos(), self.width);
        HourlyLevels {
            utilization: self.held.means(bins, self.width).into_iter().map(|held| held / capacity).collect(),
            waiting: self.waiting.means(bins, self.width),
        }
    }
}

/// Returns the root of the mean square difference.
pub(super) fn rms_difference(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    (squares / a.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_means_by_hour() {
        let time = Time::from_secs;
        let mut levels = Levels::new(time(100), time(100 + 3 * 3600));
        // Waits for an hour and a half, then holds 3 of 4 for an hour.
        levels.add(time(100), time(100 + 5400), Span::from_secs(3600), 3);
        let found = levels.finish(4.0);
        assert_eq!(found.waiting, [1.0, 0.5, 0.0]);
        assert_eq!(found.utilization, [0.0, 0.375, 0.375]);
    }

    #[test]
    fn what_lasts_longer_than_the_log_is_cut() {
        let mut levels = Levels::new(Time::ZERO, Time::from_secs(3600));
        levels.add(Time::ZERO, Time::from_secs(1800), Span::from_secs(36_000), 1);
        levels.add(Time::ZERO, Time::from_secs(7200), Span::from_secs(36_000), 1);
        let found = levels.finish(1.0);
        assert_eq!((found.waiting, found.utilization), (vec![1.5], vec![0.5]));
    }

    #[test]
    fn differences_are_squared() {
        assert_eq!(rms_difference(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(rms_difference(&[0.0, 0.0], &[3.0, -3.0]), 3.0);
    }
}
