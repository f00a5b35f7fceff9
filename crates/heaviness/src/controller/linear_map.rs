//! The linear map from heaviness to weights of Poullie et al. (2016).

/// The smallest and the largest value of a kernel or hypervisor interface, `min <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightRange {
    /// The value for the heaviest workload.
    pub min: u64,
    /// The value for the lightest workload.
    pub max: u64,
}

impl WeightRange {
    /// CPU shares as in the paper.
    pub const CPU_SHARES: WeightRange = WeightRange { min: 1, max: 100 };
    /// Disk weights that libvirt accepts.
    pub const DISK_WEIGHT: WeightRange = WeightRange { min: 100, max: 1000 };
    /// Traffic classes.
    pub const TRAFFIC_CLASS: WeightRange = WeightRange { min: 1, max: 98 };

    /// Returns the range of protected memory in bytes: from 10 MiB (or `max`, if it is smaller) to `max`, the memory of
    /// the workload.
    pub fn memory(max: u64) -> WeightRange {
        WeightRange { min: max.min(10 << 20), max }
    }
}

/// Returns the heaviness of a workload as points from -50 (lightest) to 50 (heaviest).
///
/// The result is 50 h for positive h and 125 h for negative h, clamped, and truncated towards 0; 0 for NaN. Poullie et
/// al. (2016) only mention "a basic mapping function"; this is the one in their public code.
pub fn points(heaviness: f64) -> i8 {
    let slope = if heaviness < 0.0 { 125.0 } else { 50.0 };
    // The cast turns NaN into 0.
    (heaviness * slope).clamp(-50.0, 50.0) as i8
}

/// Maps the heaviness of a workload to a weight: min + floor((50 - points) (max - min) / 100).
///
/// In a closed loop it oscillates. It serves to reproduce the paper, and for values outside the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearMap {
    /// The values that the interface takes.
    pub range: WeightRange,
}

impl LinearMap {
    /// Returns the value for a workload of this heaviness. It lies in the range and never increases with heaviness.
    pub fn value(&self, heaviness: f64) -> u64 {
        let WeightRange { min, max } = self.range;
        let width = u128::from(max.saturating_sub(min));
        let from_heaviest = (50 - i16::from(points(heaviness))).unsigned_abs();
        // The quotient is at most the width, so it fits.
        min + (width * u128::from(from_heaviest) / 100) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_equal_those_of_the_authors_code() {
        let cases = [
            (-1.0, [100, 1000, 98]),
            (-0.4, [100, 1000, 98]),
            (-0.2, [75, 775, 73]),
            (0.0, [50, 550, 49]),
            (0.2, [40, 460, 39]),
            (0.5, [25, 325, 25]),
            (1.0, [1, 100, 1]),
            (7.0, [1, 100, 1]),
        ];
        for (h, expected) in cases {
            let ranges = [WeightRange::CPU_SHARES, WeightRange::DISK_WEIGHT, WeightRange::TRAFFIC_CLASS];
            assert_eq!(ranges.map(|range| LinearMap { range }.value(h)), expected, "{h}");
        }
    }

    #[test]
    fn a_heavier_workload_never_gets_more_and_all_values_stay_in_range() {
        let odd = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN, -0.0, f64::MIN_POSITIVE];
        let steps = (-300..=300).map(|i| f64::from(i) / 100.0);
        let constant = WeightRange { min: 7, max: 7 };
        for range in [WeightRange::CPU_SHARES, WeightRange::memory(u64::MAX), WeightRange::memory(5), constant] {
            let map = LinearMap { range };
            let all: Vec<u64> = steps.clone().map(|h| map.value(h)).collect();
            assert!(all.is_sorted_by(|a, b| a >= b));
            assert!(odd.iter().all(|h| (range.min..=range.max).contains(&map.value(*h))));
            assert_eq!((map.value(-9.0), map.value(9.0)), (range.max, range.min));
        }
    }
}
