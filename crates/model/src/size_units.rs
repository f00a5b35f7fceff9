//! Units of size, as job logs have them.

/// The binary units, each 1024 times the one before.
const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Returns the power of 1024 that a unit of size is in bytes: a `KB` of a job log is 1024 bytes, as a `KiB` is. `None` if it
/// is not a unit of size.
///
/// ```
/// use evenhand_model::size_units::power_of_1024;
/// assert_eq!([power_of_1024("B"), power_of_1024("KB"), power_of_1024("GiB"), power_of_1024("cpu")], [Some(0), Some(1), Some(3), None]);
/// ```
pub fn power_of_1024(unit: &str) -> Option<u32> {
    Some(match unit {
        "B" | "bytes" => 0,
        "KB" | "kB" | "KiB" | "Ki" => 1,
        "MB" | "MiB" | "Mi" => 2,
        "GB" | "GiB" | "Gi" => 3,
        "TB" | "TiB" | "Ti" => 4,
        "PB" | "PiB" | "Pi" => 5,
        _ => return None,
    })
}

/// Returns the largest unit of size of which an amount, which is in `unit`, is at least one: how many of `unit` it has, and its name.
/// `None` if `unit` is none of size.
///
/// ```
/// use evenhand_model::size_units::largest;
/// assert_eq!(largest(33_554_432.0, "KB"), Some((1_048_576.0, "GiB")));
/// assert_eq!(largest(12.0, "cpu"), None);
/// ```
pub fn largest(amount: f64, unit: &str) -> Option<(f64, &'static str)> {
    let mut at = power_of_1024(unit)? as usize;
    let mut size = 1.0;
    while amount.abs() / size >= 1024.0 && at + 1 < UNITS.len() {
        size *= 1024.0;
        at += 1;
    }
    Some((size, UNITS[at]))
}
