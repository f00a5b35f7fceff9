//! Exchange among nodes: records, aggregation and rings as state machines, and their sealed transports.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod exchange;
pub mod transport;
