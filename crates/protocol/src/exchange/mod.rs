//! The exchange of users' sums among nodes (Poullie et al. 2016, section IV).
//!
//! A user's heaviness depends on the user's workloads on all nodes, so each node needs the sums over all nodes. Each node
//! publishes a [`Record`]: its supply, and the terms of the metric for each user with workloads on it. There are two
//! protocols, with the same result, [`Totals`]:
//!
//! - A [`RecordStore`] keeps the newest record of every node, however it was received: by gossip, or by broadcast.
//! - In a [`ring`] a token collects the sums from node to node, and no node sees the record of another.
//!
//! Neither waits for other nodes. The record of a node that no longer sends ages: it counts half, then a quarter, and so
//! on, and finally not at all.
//!
//! Numbers are [`Fixed`], so that sums do not depend on the order, and all nodes compute identical totals, bit for bit.
//!
//! The protocols are state machines without sockets, clocks or threads: the caller passes the time and carries the messages.
//! A network of a thousand nodes that loses a third of all messages is a test (`tests/ring_under_faults.rs`,
//! `tests/record_store_under_faults.rs`). [`transport`](crate::transport) runs them over sockets.
//!
//! ```
//! use std::{collections::BTreeMap, time::Duration};
//! use evenhand_protocol::exchange::{Ageing, RecordStore, Fixed, RecordLimits, Record, UserSums};
//!
//! let number = |n| Fixed::from_f64(n).ok_or("not a number");
//! let record = |node: &str, term| -> Result<Record, &str> {
//!     let users = BTreeMap::from([("ada".into(), UserSums { terms: vec![number(term)?], workloads: 1 })]);
//!     let supply = vec![number(64.0)?];
//!     Ok(Record { node: node.into(), incarnation: 1, sequence: 1, digest: 0, supply, users })
//! };
//! let limits = RecordLimits::by_factor(number(2.5)?);
//! let mut store = RecordStore::new(Ageing::new(Duration::from_secs(5)), limits, "a");
//! let now = Duration::ZERO;
//! store.publish(now, record("a", 0.1)?);
//! // Records of other nodes are received as bytes.
//! store.receive(now, Record::decode(&record("b", 0.2)?.encode())?);
//! // More for ada than the supply allows: rejected.
//! store.receive(now, record("c", 1000.0)?);
//!
//! let totals = store.totals(now);
//! assert!((totals.users["ada"].terms[0].to_f64() - 0.3).abs() < 1e-9);
//! assert_eq!(totals.supply, [number(128.0)?]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod fixed_point;
mod record;
mod record_limits;
mod record_store;
pub mod ring;
mod totals;
mod wire_format;

pub use fixed_point::{Fixed, add_elementwise};
pub use record::{MAX_NAME_LEN, MAX_NODES, MAX_TERMS, MAX_USERS, Record, UserSums};
pub use record_limits::{RecordError, RecordLimits, TermBounds};
pub use record_store::{Ageing, ReceiveOutcome, RecordStore};
pub use totals::{NodeState, NodeStatus, Totals};
pub use wire_format::DecodeError;

/// The examples of the documentation, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/src/reference/protocol.md")]
struct Documentation;
