//! Durations as people write them: `41.7 min`, `2.1 h`.

/// Formats seconds in the largest unit that gives at least 1: `12 s`, `41.7 min`, `2.1 h`, `3.5 d`.
pub fn duration(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s")];
    let size = seconds.abs();
    // Days only from two of them on: 30 h says more than 1.3 d.
    let fits = |(length, name): &&(f64, &str)| size >= if *name == "d" { 2.0 * length } else { *length };
    let (length, name) = units.iter().find(fits).copied().unwrap_or((1.0, "s"));
    let value = seconds / length;
    let text = if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{} {name}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Formats an interval of which both ends are formatted: `1 min to 2 min`, and `1 min` where the ends read the same.
///
/// ```
/// use evenhand_model::duration_text::{duration, interval};
/// assert_eq!(interval([60.0, 120.0].map(duration)), "1 min to 2 min");
/// assert_eq!(interval([60.0, 60.1].map(duration)), "1 min");
/// ```
pub fn interval([low, high]: [String; 2]) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

/// Formats whole seconds as Slurm writes wall times: `18:00:00`, `2-00:30:00`.
pub fn wall_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = if days > 0 { format!("{days}-") } else { String::new() };
    format!("{days}{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_largest_unit_that_fits() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.25, "0.2 s"),
            (59.0, "59 s"),
            (2501.0, "41.7 min"),
            (7_560.0, "2.1 h"),
            (108_000.0, "30 h"),
            (302_400.0, "3.5 d"),
            (-2501.0, "-41.7 min"),
            (86_400_000.0, "1000 d"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn wall_times_have_days_if_they_are_that_long() {
        assert_eq!([0, 64_800, 174_600].map(wall_time), ["00:00:00", "18:00:00", "2-00:30:00"]);
    }
}
