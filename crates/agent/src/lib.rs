//! The node's daemon: measures the guests of one machine, tells other nodes, weighs, writes, and puts back (paper 003, Listing 1).
//!
//! An [`Agent`] is one state with one step, [`Agent::update`]: who is here, what they used, what this node says of its users,
//! what all nodes say, and the weights that follow. Everything that touches the machine is handed to it in [`Parts`]: sources of
//! guests, a meter, an enforcer, peers, a journal. So a crash, a group that vanishes and a node that is lost are unit tests on a
//! machine that is simulated; [`assemble`] is what puts in the real ones. [`Round`] is the step without the machine, from loads to
//! weights; [`Loads`] makes loads of counters; [`Journal`] is what survives a crash; [`Status`] what people see.
//!
//! ```
//! use evenhand_agent::Configuration;
//! use evenhand_documents::Document;
//! use evenhand_agent::discovery::Own;
//! use evenhand_enforcers::cgroups::Hierarchies;
//!
//! let text = "[control]\ninterval = \"5s\"\n[[guests]]\nfrom = \"user-slices\"\n";
//! let document = Document::parse("agent.toml", text, None)?;
//! let configuration = Configuration::read(&document, &Hierarchies::default(), Own::default())?;
//! assert_eq!(configuration.control.interval.as_secs(), 5);
//! assert_eq!(configuration.heaviness.name, "deviation");
//! # Ok::<(), evenhand_documents::DocumentError>(())
//! ```
//!
//! This room contains no fairness maths, and writes nothing to a group before what that has is on the disk.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod assemble;
mod configuration;
pub mod discovery;
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
