//! Instants and durations in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::{Quantity, QuantityError};

const NANOS: u64 = 1_000_000_000;

/// An instant: whole nanoseconds since the origin of the workload (the zero of the trace, or 1970).
///
/// At most [`Time::MAX`] (2^62 ns, 146 years), so that adding a [`Span`] never overflows `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Time(u64);

/// A duration: whole nanoseconds, never negative, at most [`Span::MAX`] (2^62 ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Span(u64);

macro_rules! nanos {
    ($T:ident) => {
        impl $T {
            /// Zero nanoseconds.
            pub const ZERO: $T = $T(0);
            /// The largest value: 2^62 nanoseconds.
            pub const MAX: $T = $T(1 << 62);

            /// Converts from whole nanoseconds; larger values become `MAX`.
            pub const fn from_nanos(ns: u64) -> $T {
                if ns > $T::MAX.0 { $T::MAX } else { $T(ns) }
            }

            /// Converts from whole nanoseconds; returns `None` above `MAX`.
            pub fn checked_from_nanos(ns: u128) -> Option<$T> {
                u64::try_from(ns).ok().filter(|&n| n <= $T::MAX.0).map($T)
            }

            /// Converts from whole microseconds; returns `None` above `MAX`.
            pub fn checked_from_micros(us: u64) -> Option<$T> {
                $T::checked_from_nanos(u128::from(us) * 1000)
            }

            /// Converts from whole seconds; returns `None` above `MAX`.
            pub fn checked_from_secs(s: u64) -> Option<$T> {
                $T::checked_from_nanos(u128::from(s) * u128::from(NANOS))
            }

            /// Converts from whole seconds; larger values become `MAX`.
            pub const fn from_secs(s: u64) -> $T {
                $T::from_nanos(s.saturating_mul(NANOS))
            }

            /// Returns the whole nanoseconds.
            pub const fn nanos(self) -> u64 {
                self.0
            }

            /// Returns the whole seconds, without the fraction of one.
            pub const fn whole_secs(self) -> i64 {
                // At most 2^62 ns.
                (self.0 / NANOS) as i64
            }

            /// Returns seconds as the nearest `f64`. For reports, not for decisions.
            pub fn secs_f64(self) -> f64 {
                // Whole seconds and the rest apart, so that nanoseconds survive past 2^53 ns.
                (self.0 / NANOS) as f64 + (self.0 % NANOS) as f64 / NANOS as f64
            }
        }

        impl fmt::Display for $T {
            /// Formats exact seconds: `12`, `0.5`, `3.000000001`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (s, ns) = (self.0 / NANOS, self.0 % NANOS);
                if ns == 0 {
                    return write!(f, "{s}");
                }
                let digits = format!("{ns:09}");
                write!(f, "{s}.{}", digits.trim_end_matches('0'))
            }
        }
    };
}
nanos!(Time);
nanos!(Span);

impl Time {
    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant `span` earlier; [`Time::ZERO`] if that would be negative.
    ///
    /// ```
    /// use evenhand_model::{Span, Time};
    /// assert_eq!(Time::from_secs(60).saturating_sub(Span::from_secs(50)), Time::from_secs(10));
    /// assert_eq!(Time::from_secs(60).saturating_sub(Span::from_secs(70)), Time::ZERO);
    /// ```
    pub fn saturating_sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    /// Returns `self + span`; `None` above [`Time::MAX`].
    pub fn checked_add(self, span: Span) -> Option<Time> {
        // Both are at most 2^62, so the sum fits u64.
        Some(Time(self.0 + span.0)).filter(|t| *t <= Time::MAX)
    }
}

impl Span {
    /// Parses a duration: a decimal number and a unit (`s`, `m`, `h`, `d`, `w`), such as `90s`, `1.5h` or `8d`.
    ///
    /// # Errors
    /// Returns an error if the text has another form or is longer than [`Span::MAX`].
    ///
    /// ```
    /// use evenhand_model::Span;
    /// assert_eq!(Span::parse("1.5h").unwrap(), Span::from_secs(5400));
    /// assert!(Span::parse("90").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Span, QuantityError> {
        let seconds = |unit: char| match unit {
            's' => Some(1u64),
            'm' => Some(60),
            'h' => Some(3600),
            'd' => Some(86_400),
            'w' => Some(604_800),
            _ => None,
        };
        let trimmed = text.trim();
        let read = || {
            let per_unit = trimmed.chars().next_back().and_then(seconds)?;
            let number = trimmed[..trimmed.len() - 1].strip_suffix(' ').unwrap_or(&trimmed[..trimmed.len() - 1]);
            // A quantity can also be a size or a fraction.
            let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let nanos = Quantity::parse(number).ok().filter(|_| plain)?.nano()?;
            Span::checked_from_nanos(nanos.checked_mul(u128::from(per_unit))?)
        };
        read().ok_or_else(|| QuantityError {
            found: text.to_string(),
            expected: "a number and a unit s, m, h, d or w, such as 90s, 1.5h or 8d",
        })
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time::from_nanos(self.0 + span.0)
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        self.since(earlier)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = Span::from_nanos(self.0 + other.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_print_exactly() {
        assert_eq!(Time::from_secs(12).to_string(), "12");
        assert_eq!(Time::from_nanos(500_000_000).to_string(), "0.5");
        assert_eq!(Span::from_nanos(3_000_000_001).to_string(), "3.000000001");
    }

    #[test]
    fn adding_beyond_the_maximum_returns_none() {
        assert_eq!(Time::MAX.checked_add(Span::from_nanos(1)), None);
        assert_eq!(Time::MAX + Span::MAX, Time::MAX);
        assert_eq!(Time::ZERO.checked_add(Span::MAX), Some(Time::MAX));
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(Span::parse("8d").unwrap(), Span::from_secs(8 * 86_400));
        assert_eq!(Span::parse(" 0.5 s ").unwrap(), Span::from_nanos(500_000_000));
        for bad in ["", "s", "8", "-1d", "1e9w", "1/2h", "8 days", "1kd", "999999999999w", "8ä"] {
            assert!(Span::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nanoseconds_survive_as_seconds() {
        let t = Time::from_nanos(1_356_996_147_000_000_001);
        assert_eq!(t.to_string(), "1356996147.000000001");
        assert_eq!(Span::from_nanos(1_500_000_001).secs_f64(), 1.500000001);
    }
}
