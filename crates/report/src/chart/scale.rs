//! Maps values to positions along an axis.

use super::ticks::{Unit, linear_step, log_ticks};

/// Larger values are drawn at this value, so that no difference of two values overflows.
const FAR: f64 = 1e300;
/// Minimum span of an axis as a fraction of its largest value: on a smaller one, labels run out of digits.
const MIN_SPAN: f64 = 1e-9;
/// Positions of zero and of the lowest positive value on a logarithmic axis.
const ZERO_PLACE: f64 = 0.035;
const FIRST_PLACE: f64 = 0.105;

/// Minimum ratio of the ends of a logarithmic axis, and factor between its ends and the nearest value.
const MIN_RATIO: f64 = 12.0;
const MARGIN: f64 = 1.25;

/// How values are spaced along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences have equal distances.
    Linear,
    /// Equal ratios have equal distances. Zero, which has no logarithm, has a separate position at the low end.
    LogWithZero,
}

/// The range and spacing of an axis. The range is finite and not empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    spacing: Spacing,
    /// Distance of ticks on a linear scale.
    step: f64,
}

impl Scale {
    /// Creates a linear scale that covers the finite `values` and, if `with_zero`, zero, widened to round numbers of
    /// `unit`.
    pub fn linear(values: impl IntoIterator<Item = f64>, with_zero: bool, unit: Unit) -> Scale {
        let (mut low, mut high) = range(values).unwrap_or((0.0, 1.0));
        if with_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let largest = low.abs().max(high.abs());
        if high - low <= largest * MIN_SPAN {
            let margin = if largest < 1.0 / FAR { 1.0 } else { largest / 2.0 };
            // If all waits or counts are zero, the axis starts at zero.
            low = if low >= 0.0 { (low - margin).max(0.0) } else { low - margin };
            high += margin;
        }
        let step = linear_step(high - low, unit);
        Scale { low: (low / step).floor() * step, high: (high / step).ceil() * step, spacing: Spacing::Linear, step }
    }

    /// Creates a linear scale from `low` to `high` exactly, for quantities with natural limits such as shares. Limits
    /// that are not finite or not in order give the scale from 0 to 1.
    pub fn fixed(low: f64, high: f64, unit: Unit) -> Scale {
        let fits = low.is_finite() && high.is_finite() && low < high && (high - low).is_finite();
        let (low, high) = if fits { (low, high) } else { (0.0, 1.0) };
        Scale { low, high, spacing: Spacing::Linear, step: linear_step(high - low, unit) }
    }

    /// Creates a logarithmic scale that covers the positive `values`, with a separate position for zero.
    pub fn log_with_zero(values: impl IntoIterator<Item = f64>, unit: Unit) -> Scale {
        let positive = values.into_iter().filter(|value| *value >= 1.0 / FAR);
        let (low, high) = range(positive).unwrap_or((1.0, 10.0));
        let ticks = log_ticks(low, high, unit);
        let first = ticks.first().map_or(low, |tick| tick.value);
        let last = ticks.last().map_or(high, |tick| tick.value);
        Scale { low: first, high: last, spacing: Spacing::LogWithZero, step: 0.0 }
    }

    /// Creates a logarithmic scale that ends near the smallest and the largest of the positive `values`, so that they
    /// spread over the whole axis, with a separate position for zero.
    pub fn log_around(values: impl IntoIterator<Item = f64>) -> Scale {
        let positive = values.into_iter().filter(|value| *value >= 1.0 / FAR);
        let (low, high) = range(positive).unwrap_or((1.0, 10.0));
        // A narrow range would turn small differences into large distances.
        let widen = (MIN_RATIO * low / high).max(1.0).sqrt() * MARGIN;
        Scale { low: low / widen, high: high * widen, spacing: Spacing::LogWithZero, step: 0.0 }
    }

    /// Returns the low end. On a logarithmic scale zero lies below it.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Returns the high end.
    pub fn high(&self) -> f64 {
        self.high
    }

    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// Returns the spacing.
    pub fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// Returns the position of `value`: 0 is the low end of the axis, 1 the high end. Values outside the range lie at
    /// the nearer end, NaN at the low end.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.spacing {
            Spacing::Linear => (value.clamp(-FAR, FAR) - self.low) / (self.high - self.low),
            Spacing::LogWithZero if value < 1.0 / FAR => ZERO_PLACE,
            Spacing::LogWithZero => {
                // The logarithm of the ratio might overflow.
                let share = (value.min(FAR).ln() - self.low.ln()) / (self.high.ln() - self.low.ln());
                FIRST_PLACE + (1.0 - FIRST_PLACE) * share.clamp(0.0, 1.0)
            }
        };
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// Returns the position of the low end: above 0 if zero has a separate position.
    pub fn first_place(&self) -> f64 {
        match self.spacing {
            Spacing::Linear => 0.0,
            Spacing::LogWithZero => FIRST_PLACE,
        }
    }
}

/// Returns the lowest and the highest of the finite values, clamped to ±[`FAR`].
fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|value| value.is_finite()).map(|value| value.clamp(-FAR, FAR)).fold(
        None,
        |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chart::ticks::{Tick, ticks};

    const UNITS: [Unit; 3] = [Unit::Number, Unit::Percent, Unit::Seconds];

    fn check(scale: &Scale, unit: Unit, values: &[f64]) {
        assert!(scale.low().is_finite() && scale.high().is_finite() && scale.low() < scale.high(), "{scale:?}");
        let ticks = ticks(scale, unit).0;
        assert!(ticks.len() >= 2, "{scale:?} {ticks:?}");
        assert!(ticks.len() <= 24, "{scale:?}: {} ticks", ticks.len());
        assert!(ticks.iter().all(|tick| tick.value.is_finite() && !tick.label.is_empty()), "{ticks:?}");
        let increasing = |pair: &[Tick]| pair[0].value < pair[1].value && pair[0].label != pair[1].label;
        assert!(ticks.windows(2).all(increasing), "{scale:?} {ticks:?}");
        for &value in values.iter().filter(|value| value.is_finite()) {
            let place = scale.place(value);
            assert!((0.0..=1.0).contains(&place), "{value} at {place} on {scale:?}");
        }
        let mut sorted = values.to_vec();
        sorted.retain(|value| value.is_finite());
        if scale.spacing() == Spacing::LogWithZero {
            sorted.retain(|value| *value >= 0.0);
        }
        sorted.sort_by(f64::total_cmp);
        let places: Vec<f64> = sorted.iter().map(|value| scale.place(*value)).collect();
        assert!(places.is_sorted(), "{sorted:?} at {places:?}");
    }

    #[test]
    fn ends_and_oddities_get_finite_scales() {
        let cases: [&[f64]; 10] = [
            &[],
            &[0.0],
            &[0.0, 0.0],
            &[5e-324],
            &[f64::MAX, -f64::MAX],
            &[f64::NAN, f64::INFINITY],
            &[1e15, 1e15 + 1.0],
            &[-3.0],
            &[1e-12, 3e-12],
            &[12.5, 1e9],
        ];
        for values in cases {
            for unit in UNITS {
                for with_zero in [false, true] {
                    check(&Scale::linear(values.iter().copied(), with_zero, unit), unit, values);
                }
                check(&Scale::log_with_zero(values.iter().copied(), unit), unit, values);
                check(&Scale::log_around(values.iter().copied()), unit, values);
            }
        }
        assert_eq!(Scale::fixed(1.0, f64::NAN, Unit::Number), Scale::fixed(0.0, 1.0, Unit::Number));
    }

    #[test]
    fn zero_lies_apart_from_the_lowest_positive_value() {
        let scale = Scale::log_with_zero([0.0, 0.5, 4000.0], Unit::Seconds);
        assert!(scale.place(0.0) < scale.first_place());
        assert!(scale.place(0.5) >= scale.first_place());
        assert!(scale.place(4000.0) <= 1.0 && scale.place(4000.0) > scale.place(0.5));
    }

    proptest! {
        #[test]
        fn ticks_cover_the_range_and_increase(
            values in prop::collection::vec(prop_oneof![any::<f64>(), -1e3..1e3f64, 0.0..1e-6f64, 1e9..1e12f64], 0..6),
            unit in prop::sample::select(UNITS.to_vec()),
            with_zero: bool,
        ) {
            let scale = Scale::linear(values.iter().copied(), with_zero, unit);
            check(&scale, unit, &values);
            let ticks = ticks(&scale, unit).0;
            let (first, last) = (ticks[0].value, ticks[ticks.len() - 1].value);
            let slack = (scale.high() - scale.low()) * 1e-6;
            for value in values.iter().filter(|value| value.is_finite() && value.abs() < FAR) {
                prop_assert!(first - slack <= *value && *value <= last + slack, "{value} outside {first}..{last}");
            }
            check(&Scale::log_with_zero(values.iter().copied(), unit), unit, &values);
        }
    }
}
