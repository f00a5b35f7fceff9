//! The configuration of an exchange, and the interface to it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::exchange::{Ageing, MAX_NAME_LEN, Record, RecordLimits, Totals};
use crate::transport::credentials::{CredentialError, Credentials};
use crate::transport::shared_names::SharedName;

/// The configuration of an exchange. [`Config::new`] sets the defaults.
#[derive(Clone)]
pub struct Config {
    /// The name of this node, unique in the cloud.
    pub node: String,
    /// The number of this node's incarnation, which must increase with each restart. Default: nanoseconds since 1970.
    pub incarnation: u64,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The address at which other nodes reach this one. Default: `listen`. Required if `listen` is a wildcard address.
    pub advertise: Option<SocketAddr>,
    /// Addresses of other nodes; some of them suffice.
    pub seeds: Vec<SocketAddr>,
    /// The secret key that all nodes share, and this node's certificate.
    pub credentials: Credentials,
    /// The interval at which [`Peers::exchange`] is called; at least 10 ms.
    pub interval: Duration,
    /// The protocol.
    pub mode: Mode,
    /// Limits on the records of other nodes.
    pub limits: RecordLimits,
    /// The number of intervals after which a record starts to age. Default 3.
    pub fresh_intervals: u32,
    /// The number of halvings after which a record no longer counts. Default 8.
    pub max_halvings: u32,
    /// Which nodes to communicate with. Default: all.
    pub filter: Option<PeerFilter>,
}

impl Config {
    /// Returns a configuration for gossip without seeds, with the defaults.
    #[must_use]
    pub fn new(
        node: &str,
        listen: SocketAddr,
        credentials: impl Into<Credentials>,
        interval: Duration,
        limits: RecordLimits,
    ) -> Config {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ageing { fresh_intervals, max_halvings, .. } = Ageing::new(interval);
        Config {
            node: node.to_owned(),
            incarnation: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            listen,
            advertise: None,
            seeds: Vec::new(),
            credentials: credentials.into(),
            interval,
            mode: Mode::Gossip,
            limits,
            fresh_intervals,
            max_halvings,
            filter: None,
        }
    }

    pub(crate) fn ageing(&self) -> Ageing {
        Ageing { fresh_intervals: self.fresh_intervals, max_halvings: self.max_halvings, ..Ageing::new(self.interval) }
    }

    pub(crate) fn check(&self) -> Result<(), TransportError> {
        if self.node.is_empty() || self.node.len() > MAX_NAME_LEN || self.node.contains('\n') {
            return Err(TransportError::Name);
        }
        if self.interval < Duration::from_millis(10) {
            return Err(TransportError::Interval(self.interval));
        }
        if self.advertise.unwrap_or(self.listen).ip().is_unspecified() {
            return Err(TransportError::Advertise(self.listen));
        }
        Ok(())
    }
}

impl fmt::Debug for Config {
    /// Prints all but the key.
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

/// Decides which nodes to communicate with, by the address on which the other node listens: an allow list, or a
/// partition in a test. It is called for every message in both directions.
#[derive(Clone)]
pub struct PeerFilter(Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>);

impl PeerFilter {
    /// Creates a filter from a function that returns whether messages to and from an address are allowed.
    #[must_use]
    pub fn new(allows: impl Fn(SocketAddr) -> bool + Send + Sync + 'static) -> PeerFilter {
        PeerFilter(Arc::new(allows))
    }

    pub(crate) fn allows(&self, peer: SocketAddr) -> bool {
        (self.0)(peer)
    }
}

/// The protocol of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Gossip: every node informs a few others, which inform others.
    #[default]
    Gossip,
    /// Aggregation in a ring, as in Poullie et al. (2016).
    Ring,
}

/// The other nodes, as an agent uses them.
pub trait Peers: Send {
    /// Publishes this node's record and returns the latest totals, this record included. It never waits for the
    /// network.
    ///
    /// The record's `sequence` must increase with each call, its `incarnation` with each restart.
    fn exchange(&mut self, record: Record) -> Totals;

    /// Returns the address on which this node listens, if it does.
    fn local_addr(&self) -> Option<SocketAddr>;

    /// Returns why the newest files of the key or the certificate are not in use, if they are not.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Returns the names that two nodes have at present, as far as this node receives messages of both.
    fn shared_names(&self) -> Vec<SharedName> {
        Vec::new()
    }

    /// Returns the traffic since the start.
    fn traffic(&self) -> Traffic;
}

/// Counts of messages and bytes since the start; bytes are TCP payload, with length prefixes and authentication tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent.
    pub sent: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Messages received.
    pub received: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Messages that could not be sent at once, or that the filter rejected.
    pub dropped: u64,
    /// Incoming connections that were not made with the key, or sent an invalid message.
    pub rejected: u64,
}

/// Why an exchange cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The name of the node is invalid.
    #[error("a node's name has 1 to {MAX_NAME_LEN} bytes and no line end")]
    Name,
    /// The interval is too short.
    #[error("an interval of {0:?} is too short for an exchange; the minimum is 10 ms")]
    Interval(Duration),
    /// The address for other nodes is a wildcard.
    #[error("{0} is a wildcard address: set `advertise` to the address at which other nodes reach this one")]
    Advertise(SocketAddr),
    /// The node cannot listen on the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The key or the certificate cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The thread or its event loop cannot be created.
    #[error("the exchange cannot start")]
    Start(#[source] std::io::Error),
}
