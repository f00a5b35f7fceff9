//! The metrics, one in each file.

mod asset;
mod bottleneck;
mod deviation;
mod dominant;
mod dominant_share;
mod greediness;
mod root_penalty;

pub use asset::Asset;
pub use bottleneck::Bottleneck;
pub use deviation::Deviation;
pub use dominant::Dominant;
pub use dominant_share::DominantShare;
pub use greediness::Greediness;
pub use root_penalty::RootPenalty;

use crate::Registration;

/// All metrics, the default first. To add one, add a file and an entry here.
pub static METRICS: &[&Registration] = &[
    &deviation::REGISTRATION,
    &greediness::REGISTRATION,
    &asset::REGISTRATION,
    &dominant::REGISTRATION,
    &root_penalty::REGISTRATION,
    &dominant_share::REGISTRATION,
    &bottleneck::REGISTRATION,
];

/// Returns the metric with this name.
pub fn metric_named(name: &str) -> Option<&'static Registration> {
    METRICS.iter().copied().find(|m| m.name == name)
}
