//! The settings of the link that is divided.

use crate::traffic::{TrafficError, link};

/// The link that is divided, and its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The device through which the machine sends: the physical one, not the bridge in front of it.
    pub device: String,
    /// The speed of the link in bytes per second; `None`: as the device reports, which virtual ones do not. If it
    /// exceeds the real speed, packets queue elsewhere, where no weights apply.
    pub link: Option<u64>,
    /// Whether to replace a queueing discipline that another program configured. It is not restored at the end; the
    /// kernel installs its own.
    pub force: bool,
}

impl Settings {
    /// Returns the speed of the link, in bytes per second, if it can be divided.
    pub(super) fn link_speed(&self) -> Result<u64, TrafficError> {
        let link = match self.link {
            Some(link) => link,
            None => link::speed(&self.device)?,
        };
        if (10_000..=1_000_000_000_000).contains(&link) { Ok(link) } else { Err(TrafficError::Speed(link)) }
    }
}

/// The quantum of weight 1, in bytes: four segmentation-offload packets.
pub const NEUTRAL: u32 = 4 * MINIMUM;

/// The smallest quantum, in bytes. A quantum below a segmentation-offload packet (64 KiB and headers) has no effect,
/// because each turn sends at least one packet.
const MINIMUM: u32 = 66_000;

/// Returns the quantum of a weight, in bytes: [`NEUTRAL`] at 1, clamped to a quarter and 16 times of that. NaN counts
/// as 1.
///
/// Shares follow weights within some percent between 1/4 and 4 (1:3 was measured as 1:3.0, 1:9 as 1:8.98). Towards
/// the limit of 16 they fall behind the ratio (1:97 gave 1:67 on a link of 100 Mbit/s), because turns become so long
/// that a class with little to send loses its turn.
pub fn quantum(weight: f64) -> u32 {
    if weight.is_nan() {
        return NEUTRAL;
    }
    (f64::from(NEUTRAL) * weight).round().clamp(f64::from(MINIMUM), 16.0 * f64::from(NEUTRAL)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quanta_are_proportional_to_weights_within_limits() {
        let all = [0.0, 0.25, 1.0, 3.0, 16.0, f64::INFINITY, f64::NAN, -1.0].map(quantum);
        assert_eq!(all, [66_000, 66_000, 264_000, 792_000, 4_224_000, 4_224_000, 264_000, 66_000]);
    }

    proptest! {
        #[test]
        fn a_larger_weight_never_has_a_smaller_quantum(a in 1e-9..1e9_f64, b in 1e-9..1e9_f64) {
            prop_assert_eq!(a <= b && quantum(a) > quantum(b), false);
            prop_assert!(quantum(a) > 64 * 1024);
        }
    }
}
