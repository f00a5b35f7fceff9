//! The exchange over sockets: gossip or a ring, over connections sealed with a shared key, and within mutual TLS if there
//! are certificates.
//!
//! It runs the state machines of [`exchange`](crate::exchange) and makes no decisions itself. [`start`] listens and
//! runs everything in one thread; [`Peers::exchange`] publishes this node's record and returns the latest totals
//! without waiting for other nodes. [`SingleNode`] is a cloud of one node.
//!
//! A node without the key can neither read nor send messages: see `docs/src/reference/protocol.md`.
//!
//! ```
//! use std::{thread, time::{Duration, Instant}};
//! use evenhand_protocol::exchange::{Fixed, RecordLimits, Record};
//! use evenhand_protocol::transport::{Config, start};
//!
//! let one = Fixed::from_f64(1.0).ok_or("not a number")?;
//! let interval = Duration::from_millis(100);
//! let config = |node: &str| {
//!     let listen = ([127, 0, 0, 1], 0).into();
//!     Config::new(node, listen, [7; 32], interval, RecordLimits::by_factor(one))
//! };
//! let mut first = start(config("first"))?;
//! let seeds = first.local_addr().into_iter().collect();
//! let mut second = start(Config { seeds, ..config("second") })?;
//!
//! let record = |node: &str, sequence| Record { node: node.into(), sequence, supply: vec![one], ..Record::default() };
//! let begun = Instant::now();
//! for sequence in 1.. {
//!     first.exchange(record("first", sequence));
//!     if second.exchange(record("second", sequence)).supply == [one + one] {
//!         break;
//!     }
//!     assert!(begun.elapsed() < Duration::from_secs(10));
//!     thread::sleep(interval);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod config;
mod connection_cipher;
mod credentials;
mod exchange_thread;
mod gossip_driver;
mod ring_driver;
mod sealed_connections;
mod shared_key;
mod shared_names;
mod single_node;
mod tls;

pub use config::{Config, Mode, PeerFilter, Peers, Traffic, TransportError};
pub use credentials::{CredentialError, CredentialFiles, Credentials};
pub use exchange_thread::start;
pub use shared_key::{KeyError, read_keys};
pub use shared_names::SharedName;
pub use single_node::SingleNode;
pub use tls::{TlsError, TlsFiles};
