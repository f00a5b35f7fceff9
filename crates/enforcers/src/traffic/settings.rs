//! What an operator says about the link.

/// Which link is divided, and how fast it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The device that the machine sends by: the physical one, not the bridge in front of it.
    pub device: String,
    /// Bytes a second that the link carries. If not given, what the device says; virtual ones do not say it.
    /// More than it really carries moves the queue to where nobody weighs it.
    pub link: Option<u64>,
    /// Replace a queue that somebody set up. It is not put back at the end: the kernel's own is.
    pub force: bool,
}

/// The quantum of a weight of 1, in bytes: four packets of the largest kind.
pub const NEUTRAL: u32 = 4 * LEAST;

/// The smallest quantum, in bytes: less than a packet of segmentation offload (64 KiB and headers) does not weigh,
/// because every turn sends at least one.
const LEAST: u32 = 66_000;

/// The quantum of a weight, in bytes: [`NEUTRAL`] at 1, from a quarter to 16 times of that. What is not a number is
/// neutral.
///
/// Shares follow weights within some percent between 1/4 and 4 (measured 1:3 as 1:3.0, 1:9 as 1:8.98). Between 1/4
/// and 16, the ends, they fall behind the ratio: 1:64 gives less, as 1:97 gave 1:67 on a link of 100 Mbit/s, because
/// turns become so long that whoever sends little loses its turn.
pub fn quantum(weight: f64) -> u32 {
    if weight.is_nan() {
        return NEUTRAL;
    }
    (f64::from(NEUTRAL) * weight).round().clamp(f64::from(LEAST), 16.0 * f64::from(NEUTRAL)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quanta_of_weights() {
        let all = [0.0, 0.25, 1.0, 3.0, 16.0, f64::INFINITY, f64::NAN, -1.0].map(quantum);
        assert_eq!(all, [66_000, 66_000, 264_000, 792_000, 4_224_000, 4_224_000, 264_000, 66_000]);
    }

    proptest! {
        #[test]
        fn more_weight_is_never_a_smaller_quantum(a in 1e-9..1e9_f64, b in 1e-9..1e9_f64) {
            prop_assert_eq!(a <= b && quantum(a) > quantum(b), false);
            prop_assert!(quantum(a) > 64 * 1024);
        }
    }
}
