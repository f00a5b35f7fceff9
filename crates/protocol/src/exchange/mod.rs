//! What nodes tell each other about their users, and what follows (paper 003, section IV).
//!
//! A user's heaviness depends on what it has on all nodes, so each node needs the sums of all. Each says of itself one
//! [`Record`]: its supply, and of every user with guests on it the terms of the metric. They go around
//! in one of two ways, and either ends in the same [`Totals`]:
//!
//! - A [`Board`] keeps the freshest record of every node, however it came: by gossip, or sent to all.
//! - In a [`ring`] a message collects the sums from node to node, and no node sees another's record.
//!
//! Neither waits for anybody. What is not heard of any more ages: it counts by halves, and then not at all.
//!
//! Numbers are [`Fixed`], so that sums do not depend on the order, and all nodes find the same to the last bit.
//!
//! These are state machines: no socket, no clock, no thread. Whoever drives them says what time it is and carries
//! the messages; a network of a thousand nodes that loses a third of them is a test
//! (`tests/ring.rs`, `tests/board.rs`). The room `peers` drives them over sockets.
//!
//! ```
//! use std::{collections::BTreeMap, time::Duration};
//! use evenhand_protocol::exchange::{Ageing, Board, Fixed, Limits, Record, UserSums};
//!
//! let number = |n| Fixed::from_f64(n).ok_or("not a number");
//! let record = |node: &str, term| -> Result<Record, &str> {
//!     let users = BTreeMap::from([("ada".into(), UserSums { terms: vec![number(term)?], guests: 1 })]);
//!     let supply = vec![number(64.0)?];
//!     Ok(Record { node: node.into(), incarnation: 1, sequence: 1, digest: 0, supply, users })
//! };
//! let limits = Limits::by_factor(number(2.5)?);
//! let mut board = Board::new(Ageing::new(Duration::from_secs(5)), limits, "a");
//! let now = Duration::ZERO;
//! board.publish(now, record("a", 0.1)?);
//! // What comes from another node is bytes.
//! board.hear(now, Record::decode(&record("b", 0.2)?.encode())?);
//! // It claims more for ada than all its cores could be: refused.
//! board.hear(now, record("c", 1000.0)?);
//!
//! let totals = board.totals(now);
//! assert!((totals.users["ada"].terms[0].to_f64() - 0.3).abs() < 1e-9);
//! assert_eq!(totals.supply, [number(128.0)?]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod board;
mod codec;
mod fixed;
mod limits;
mod record;
pub mod ring;
mod totals;

pub use board::{Ageing, Board, Heard};
pub use codec::DecodeError;
pub use fixed::{Fixed, add_to};
pub use limits::{Bounds, Limits, Refusal};
pub use record::{MOST_NAME, MOST_NODES, MOST_TERMS, MOST_USERS, Record, UserSums};
pub use totals::{NodeState, NodeStatus, Totals};

/// The examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/src/reference/protocol.md")]
struct Documentation;
