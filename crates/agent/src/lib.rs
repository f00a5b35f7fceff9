//! The node's daemon.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod assemble;
mod configuration;
mod journal;
mod levels;
mod loads;
mod report;
mod round;
mod slots;
mod socket;
mod status;
mod supply;

pub use agent::{Agent, AgentError, Identity, Parts, Released, Update, digest};
pub use assemble::{AssembleError, Assembly, assemble, doctor};
pub use configuration::{
    Configuration, ControlSection, HeavinessSection, Law, NetworkSection, NodeSection, PeersSection, Speed,
};
pub use journal::{Entry, Journal, JournalError};
pub use loads::{Load, Loads, Reading};
pub use round::{Facts, Measured, Outcome, Round, Terms, UserOutcome};
pub use socket::{Answers, ask};
pub use status::{GuestStatus, NodeStatus, ResourceStatus, Status, TotalStatus, UserStatus};
pub use supply::{SupplyError, benchmark, speed, supply};
