//! The linear map of paper 003.

/// The least and the largest value that an interface takes, `least <= most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// What the heaviest guest gets.
    pub least: u64,
    /// What the lightest guest gets.
    pub most: u64,
}

impl Range {
    /// CPU shares, as the paper uses them.
    pub const CPU_SHARES: Range = Range { least: 1, most: 100 };
    /// Weights of disks, as libvirt allows.
    pub const DISK_WEIGHT: Range = Range { least: 100, most: 1000 };
    /// Traffic classes.
    pub const TRAFFIC_CLASS: Range = Range { least: 1, most: 98 };

    /// Memory protected, in bytes: from 10 MiB (or all, if that is less) to all that a guest has.
    pub fn memory(most: u64) -> Range {
        Range { least: most.min(10 << 20), most }
    }
}

/// The heaviness of a guest as points from -50 (lightest) to 50 (heaviest).
///
/// 50 h if h is positive and 125 h if it is negative, clamped, and truncated towards 0. Paper 003 only says
/// that "a basic mapping function" is used; this is the one of its authors' public code. What is not a number
/// is 0 points.
pub fn points(heaviness: f64) -> i8 {
    let slope = if heaviness < 0.0 { 125.0 } else { 50.0 };
    // A NaN becomes 0.
    (heaviness * slope).clamp(-50.0, 50.0) as i8
}

/// A weight for each guest by its heaviness alone: least + floor((50 - points) (most - least) / 100).
///
/// In a closed loop it oscillates; here to reproduce the paper, and for what takes no part in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearMap {
    /// What the interface takes.
    pub range: Range,
}

impl LinearMap {
    /// The value for a guest of this heaviness: never more for a heavier one, and always in the range.
    pub fn value(&self, heaviness: f64) -> u64 {
        let Range { least, most } = self.range;
        let width = u128::from(most.saturating_sub(least));
        let from_heaviest = (50 - i16::from(points(heaviness))).unsigned_abs();
        // At most the width, so it fits.
        least + (width * u128::from(from_heaviest) / 100) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_authors_code() {
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
            let ranges = [Range::CPU_SHARES, Range::DISK_WEIGHT, Range::TRAFFIC_CLASS];
            assert_eq!(ranges.map(|range| LinearMap { range }.value(h)), expected, "{h}");
        }
    }

    #[test]
    fn heavier_never_gets_more_and_all_stay_in_range() {
        let odd = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN, -0.0, f64::MIN_POSITIVE];
        let steps = (-300..=300).map(|i| f64::from(i) / 100.0);
        for range in [Range::CPU_SHARES, Range::memory(u64::MAX), Range::memory(5), Range { least: 7, most: 7 }] {
            let map = LinearMap { range };
            let all: Vec<u64> = steps.clone().map(|h| map.value(h)).collect();
            assert!(all.is_sorted_by(|a, b| a >= b));
            assert!(odd.iter().all(|h| (range.least..=range.most).contains(&map.value(*h))));
            assert_eq!((map.value(-9.0), map.value(9.0)), (range.most, range.least));
        }
    }
}
