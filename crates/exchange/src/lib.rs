//! What nodes tell each other about their users, and what follows (paper 003, section IV).
#![cfg_attr(test, allow(clippy::unwrap_used))]

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
