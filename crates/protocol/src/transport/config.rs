//! What is to be said before the exchange can start, and what it is from outside.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::exchange::{Ageing, Limits, MOST_NAME, Record, Totals};

/// How the exchange is to go. [`Config::new`] fills in what is seldom said.
#[derive(Clone)]
pub struct Config {
    /// The name of this node; unique in the cloud.
    pub node: String,
    /// Which life of the node: larger after each restart. Nanoseconds since 1970 unless said.
    pub incarnation: u64,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where others can reach this node; `listen` unless said. Must be said if `listen` is a wildcard.
    pub advertise: Option<SocketAddr>,
    /// Where other nodes listen; some of them suffice.
    pub seeds: Vec<SocketAddr>,
    /// What all nodes share, and nobody else knows. See [`read_key`](crate::transport::read_key).
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
    /// To whom this node talks; to all unless said.
    pub filter: Option<Filter>,
}

impl Config {
    /// Gossip without seeds, with all else as it is unless said.
    #[must_use]
    pub fn new(node: &str, listen: SocketAddr, key: [u8; 32], interval: Duration, limits: Limits) -> Config {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ageing { limit, halvings, .. } = Ageing::new(interval);
        Config {
            node: node.to_owned(),
            incarnation: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            listen,
            advertise: None,
            seeds: Vec::new(),
            key,
            interval,
            mode: Mode::Gossip,
            limits,
            age_limit: limit,
            halvings,
            filter: None,
        }
    }

    pub(crate) fn ageing(&self) -> Ageing {
        Ageing { limit: self.age_limit, halvings: self.halvings, ..Ageing::new(self.interval) }
    }

    pub(crate) fn check(&self) -> Result<(), PeersError> {
        if self.node.is_empty() || self.node.len() > MOST_NAME || self.node.contains('\n') {
            return Err(PeersError::Name);
        }
        if self.interval < Duration::from_millis(10) {
            return Err(PeersError::Interval(self.interval));
        }
        if self.advertise.unwrap_or(self.listen).ip().is_unspecified() {
            return Err(PeersError::Advertise(self.listen));
        }
        Ok(())
    }
}

impl fmt::Debug for Config {
    /// All but the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { node, listen, advertise, seeds, interval, mode, .. } = self;
        f.debug_struct("Config")
            .field("node", node)
            .field("listen", listen)
            .field("advertise", advertise)
            .field("seeds", seeds)
            .field("interval", interval)
            .field("mode", mode)
            .finish_non_exhaustive()
    }
}

/// To whom a node talks, by the address at which the other listens: an allow list, or a partition in a test. It is
/// asked for every message in either direction.
#[derive(Clone)]
pub struct Filter(Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>);

impl Filter {
    /// From a function that answers whether a message may go to, or come from, an address.
    #[must_use]
    pub fn new(allows: impl Fn(SocketAddr) -> bool + Send + Sync + 'static) -> Filter {
        Filter(Arc::new(allows))
    }

    pub(crate) fn allows(&self, peer: SocketAddr) -> bool {
        (self.0)(peer)
    }
}

/// How the records go around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every node tells a few others, who tell others.
    #[default]
    Gossip,
    /// A message goes around to which every node adds what it has, as in paper 003.
    Ring,
}

/// The other nodes.
pub trait Peers: Send {
    /// Publishes this node's record and answers the freshest totals, this record included. Never
    /// waits for the network.
    ///
    /// The record's `sequence` must be larger with each, its `incarnation` with each restart.
    fn round(&mut self, own: Record) -> Totals;

    /// Where this node listens, if it does.
    fn local_addr(&self) -> Option<SocketAddr>;

    /// What has gone over the wire since the start.
    fn traffic(&self) -> Traffic;
}

/// Messages and bytes since the start; of TCP payload, seals and lengths included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages that were sent.
    pub sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Messages that came.
    pub received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Messages that could not be sent at once, or that the filter kept.
    pub dropped: u64,
    /// Connections of others that did not have the key, or sent what nobody may send.
    pub refused: u64,
}

/// Why the exchange cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The node's name.
    #[error("a node's name has 1 to {MOST_NAME} bytes and no line end")]
    Name,
    /// Too short an interval.
    #[error("an interval of {0:?} is too short for an exchange; at least 10 ms")]
    Interval(Duration),
    /// Nobody can be told where this node is.
    #[error("{0} is every address: say at which others reach this node (advertise)")]
    Advertise(SocketAddr),
    /// The socket cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// No thread, or nothing to wait for sockets with.
    #[error("the exchange cannot start")]
    Start(#[source] std::io::Error),
}
