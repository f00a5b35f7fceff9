//! Schedulers, each in a file of its own.

pub(crate) mod bottleneck_priority;
pub(crate) mod dominant_share;
pub(crate) mod lottery;
pub(crate) mod minimal_consumption;
pub(crate) mod round_robin;
pub(crate) mod stride;
