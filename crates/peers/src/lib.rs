//! The exchange among nodes over sockets: gossip or a ring, sealed with a shared key.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alone;
mod config;

pub use alone::Alone;
pub use config::{Config, Mode, Peers, PeersError, start};
