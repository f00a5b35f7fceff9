//! One file a scheduler.

pub(crate) mod bottleneck;
pub(crate) mod dominant_share;
pub(crate) mod least_use;
pub(crate) mod lottery;
pub(crate) mod round_robin;
pub(crate) mod stride;
