//! Chooses round numbers along an axis and labels them.

use super::date_ticks::date_ticks;
use super::scale::{Scale, Spacing};
use crate::format_numbers::{grouped, trimmed};

/// The unit of an axis: determines which numbers are round and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers, in the unit that the title of the axis names.
    Number,
    /// Fractions, labelled as percentages.
    Percent,
    /// Seconds, labelled in a unit of time that suits the range.
    Seconds,
    /// Seconds since an instant, which is given in seconds since 1970; labelled with dates and times of day.
    Dates(u64),
}

/// One tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Position, in values of the axis.
    pub value: f64,
    /// Label.
    pub label: String,
}

/// Approximate number of intervals of a linear axis, and maximum number of a logarithmic one.
const INTERVALS: f64 = 6.0;
const MAX_LOG_INTERVALS: usize = 8;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// Round steps of time between a second and a day, in seconds.
const CLOCK_STEPS: [f64; 15] = [
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
];

/// Returns the ticks of a scale, and their unit (`h`, `%`) if the labels do not contain it.
pub fn ticks(scale: &Scale, unit: Unit) -> (Vec<Tick>, &'static str) {
    match scale.spacing() {
        Spacing::Linear => match unit {
            Unit::Dates(origin) => (date_ticks(scale.low(), scale.high(), origin), ""),
            _ => linear_ticks(scale, unit),
        },
        Spacing::LogWithZero => {
            let mut all = vec![Tick { value: 0.0, label: "0".into() }];
            let mut positive = log_ticks(scale.low(), scale.high(), unit);
            // A scale that does not begin and end at ticks.
            let (low, high) = (scale.low() * (1.0 - 1e-9), scale.high() * (1.0 + 1e-9));
            positive.retain(|tick| (low..=high).contains(&tick.value));
            if positive.len() < 4 {
                positive = fine_log_ticks(low, high, unit);
            }
            let every = positive.len().div_ceil(MAX_LOG_INTERVALS + 1).max(1);
            all.extend(positive.into_iter().step_by(every));
            (all, "")
        }
    }
}

/// Returns the distance of ticks on a linear axis of length `span`.
pub(super) fn linear_step(span: f64, unit: Unit) -> f64 {
    let minimum = span / INTERVALS;
    match unit {
        Unit::Seconds | Unit::Dates(_) if minimum > DAY / 2.0 => round_step(minimum / DAY) * DAY,
        Unit::Seconds | Unit::Dates(_) if minimum > 1.0 => {
            CLOCK_STEPS.into_iter().find(|step| *step >= minimum).unwrap_or(DAY)
        }
        _ => round_step(minimum),
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is at least `minimum`.
fn round_step(minimum: f64) -> f64 {
    let power = power_of_ten(minimum.log10().floor());
    let digits = [1.0, 2.0, 5.0].into_iter();
    digits.map(|digit| digit * power).find(|step| *step >= minimum * 0.999).unwrap_or(10.0 * power)
}

/// Returns ten to an integer power, parsed from text: `powi` differs in the last bit between platforms.
fn power_of_ten(exponent: f64) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(1.0)
}

fn linear_ticks(scale: &Scale, unit: Unit) -> (Vec<Tick>, &'static str) {
    let step = scale.step();
    let first = (scale.low() / step - 1e-6).ceil();
    let last = (scale.high() / step + 1e-6).floor();
    let largest = scale.low().abs().max(scale.high().abs());
    let (divisor, name) = match unit {
        Unit::Number => (1.0, ""),
        Unit::Percent => (0.01, "%"),
        Unit::Seconds | Unit::Dates(_) => time_unit(largest, step),
    };
    let ticks = (0..=(last - first) as u32)
        .map(|index| {
            let value = (first + f64::from(index)) * step;
            Tick { value, label: number_label(value / divisor, step / divisor, largest / divisor) }
        })
        .collect();
    (ticks, name)
}

/// Returns the unit of time that suits ticks every `step` seconds up to `largest`: its length and its name.
fn time_unit(largest: f64, step: f64) -> (f64, &'static str) {
    if largest >= 2.0 * DAY && step >= DAY / 4.0 {
        (DAY, "d")
    } else if largest >= 2.0 * HOUR && step >= HOUR / 4.0 {
        (HOUR, "h")
    } else if largest >= 2.0 * MINUTE && step >= MINUTE / 4.0 {
        (MINUTE, "min")
    } else if largest >= 1.0 {
        (1.0, "s")
    } else if largest >= 1e-3 {
        (1e-3, "ms")
    } else if largest >= 1e-6 {
        (1e-6, "µs")
    } else {
        (1e-9, "ns")
    }
}

/// Formats a number with as many decimals as ticks every `step` need; long numbers as a power of ten.
fn number_label(value: f64, step: f64, largest: f64) -> String {
    if value.abs() < step / 2.0 {
        return "0".into();
    }
    let magnitude = (step * 1.000_001).log10().floor();
    if (-4.0..=6.0).contains(&magnitude) && largest < 1e7 {
        // A quarter of an hour or of a day needs two decimals although the step's magnitude suggests one.
        let decimals = usize::from(magnitude < 0.0) * (1 - magnitude as i32).unsigned_abs() as usize;
        return trimmed(value, decimals).replace('-', "−");
    }
    let exponent = value.abs().log10().floor();
    let decimals = (exponent - magnitude).clamp(0.0, 15.0) as usize;
    let mantissa = trimmed(value / power_of_ten(exponent), decimals).replace('-', "−");
    format!("{mantissa}×10{}", superscript(exponent as i32))
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits = exponent.unsigned_abs().to_string();
    sign.chars().chain(digits.bytes().map(|digit| DIGITS[usize::from(digit - b'0')])).collect()
}

/// Returns the round numbers of a logarithmic axis from the largest that is at most `low` to the smallest that is at
/// least `high`, at least two; `low` and `high` are positive.
pub(super) fn log_ticks(low: f64, high: f64, unit: Unit) -> Vec<Tick> {
    let candidate = match unit {
        Unit::Seconds | Unit::Dates(_) => time_candidate,
        Unit::Number | Unit::Percent => |index| power_of_ten(f64::from(index)),
    };
    let mut first = low.log10().floor() as i32 + 3;
    while candidate(first) > low && first > -305 {
        first -= 1;
    }
    let mut last = first + 1;
    while candidate(last) < high && last < 305 {
        last += 1;
    }
    (first..=last)
        .map(|index| {
            let value = candidate(index);
            Tick { value, label: log_label(value, unit) }
        })
        .collect()
}

/// Returns the round numbers from `low` to `high` that are nearer to each other than those of [`log_ticks`].
fn fine_log_ticks(low: f64, high: f64, unit: Unit) -> Vec<Tick> {
    const CLOCK: [f64; 14] =
        [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, HOUR, 2.0 * HOUR, 4.0 * HOUR, 12.0 * HOUR];
    let decimal = |base: f64| {
        let powers = (low / base).log10().floor() as i32..=(high / base).log10().ceil() as i32;
        powers.flat_map(move |power| [1.0, 2.0, 5.0].map(|digit| digit * power_of_ten(f64::from(power)) * base))
    };
    let values: Vec<f64> = match unit {
        Unit::Seconds | Unit::Dates(_) => {
            let below = decimal(1.0).filter(|value| *value < 1.0);
            below.chain(CLOCK).chain(decimal(DAY).filter(|value| *value >= DAY)).collect()
        }
        Unit::Number | Unit::Percent => decimal(1.0).collect(),
    };
    let within = values.into_iter().filter(|value| (low..=high).contains(value));
    within.map(|value| Tick { value, label: log_label(value, unit) }).collect()
}

fn log_label(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Number => log_number_label(value),
        Unit::Percent => format!("{} %", log_number_label(value * 100.0)),
        Unit::Seconds | Unit::Dates(_) => log_time_label(value),
    }
}

/// Returns the round times 1 s, 10 s, 1 min, 10 min, 1 h, 1 d, 10 d and so on; below a second powers of ten. Ten
/// hours are omitted, being too close to a day.
fn time_candidate(index: i32) -> f64 {
    match index {
        i32::MIN..=1 => power_of_ten(f64::from(index)),
        2 => MINUTE,
        3 => 10.0 * MINUTE,
        4 => HOUR,
        _ => power_of_ten(f64::from(index - 5)) * DAY,
    }
}

fn log_number_label(value: f64) -> String {
    let exponent = value.log10().floor();
    let is_power = (value / power_of_ten(value.log10().round()) - 1.0).abs() < 1e-9;
    let exponent = if is_power { value.log10().round() } else { exponent };
    if !is_power && !(-3.0..=5.0).contains(&exponent) {
        return format!("{}×10{}", trimmed(value / power_of_ten(exponent), 1), superscript(exponent as i32));
    }
    if (-3.0..=5.0).contains(&exponent) { trimmed(value, 3) } else { format!("10{}", superscript(exponent as i32)) }
}

fn log_time_label(seconds: f64) -> String {
    let (divisor, name) = match seconds {
        DAY.. => (DAY, "d"),
        HOUR.. => (HOUR, "h"),
        MINUTE.. => (MINUTE, "min"),
        1.0.. => (1.0, "s"),
        0.99e-3.. => (1e-3, "ms"),
        0.99e-6.. => (1e-6, "µs"),
        _ => (1e-9, "ns"),
    };
    let count = seconds / divisor;
    if (0.5..1e6).contains(&count) {
        return format!("{} {name}", grouped(count.round() as u64));
    }
    format!("{} {name}", log_number_label(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, unit: Unit) -> (Vec<String>, &'static str) {
        let (ticks, name) = ticks(scale, unit);
        (ticks.into_iter().map(|tick| tick.label).collect(), name)
    }

    #[test]
    fn labels_are_round_and_short() {
        let of = |high, unit| labels(&Scale::linear([0.0, high], true, unit), unit);
        assert_eq!(of(10.0, Unit::Number).0, ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(
            of(0.3, Unit::Percent),
            (vec!["0".into(), "5".into(), "10".into(), "15".into(), "20".into(), "25".into(), "30".into()], "%")
        );
        assert_eq!(of(86_400.0 * 7.0, Unit::Seconds).1, "d");
        assert_eq!(
            of(20_000.0, Unit::Seconds),
            (vec!["0".into(), "1".into(), "2".into(), "3".into(), "4".into(), "5".into(), "6".into()], "h")
        );
        assert_eq!(of(40_000.0, Unit::Number).0[1], "10\u{202f}000");
        assert_eq!(of(3e9, Unit::Number).0[1], "5×10⁸");
        assert_eq!(of(3e-9, Unit::Number).0[1], "5×10⁻¹⁰");
        assert_eq!(labels(&Scale::linear([-0.2, 0.3], true, Unit::Percent), Unit::Percent).0[0], "−20");
    }

    #[test]
    fn times_on_a_logarithmic_axis_are_labelled_with_their_units() {
        let scale = Scale::log_with_zero([0.5, 200_000.0], Unit::Seconds);
        assert_eq!(
            labels(&scale, Unit::Seconds).0,
            ["0", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "1 d", "10 d"]
        );
    }
}
