//! The exchange among nodes over sockets: gossip or a ring, sealed with a shared key.
//!
//! It drives the state machines of the room `exchange` and decides nothing itself. [`start`] listens, and runs all in
//! one thread; [`Peers::round`] hands over this node's record and answers the freshest totals without waiting
//! for anybody. [`Alone`] is a cloud of one node.
//!
//! A node that does not have the key can neither read nor write: see `docs/src/reference/protocol.md`.
//!
//! ```
//! use std::{thread, time::{Duration, Instant}};
//! use evenhand_protocol::exchange::{Fixed, Limits, Record};
//! use evenhand_protocol::transport::{Config, start};
//!
//! let one = Fixed::from_f64(1.0).ok_or("not a number")?;
//! let interval = Duration::from_millis(100);
//! let config = |node: &str| {
//!     let listen = ([127, 0, 0, 1], 0).into();
//!     Config::new(node, listen, [7; 32], interval, Limits::by_factor(one))
//! };
//! let mut first = start(config("first"))?;
//! let seeds = first.local_addr().into_iter().collect();
//! let mut second = start(Config { seeds, ..config("second") })?;
//!
//! let record = |node: &str, sequence| Record { node: node.into(), sequence, supply: vec![one], ..Record::default() };
//! let begun = Instant::now();
//! for sequence in 1.. {
//!     first.round(record("first", sequence));
//!     if second.round(record("second", sequence)).supply == [one + one] {
//!         break;
//!     }
//!     assert!(begun.elapsed() < Duration::from_secs(10));
//!     thread::sleep(interval);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod alone;
mod base64;
mod config;
mod gossip;
mod key;
mod link;
mod ring;
mod running;
mod seal;

pub use alone::Alone;
pub use config::{Config, Filter, Mode, Peers, PeersError, Traffic};
pub use key::{KeyError, read_key};
pub use running::start;
