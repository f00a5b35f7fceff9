//! The daemon of a node: measures the running workloads of one machine, exchanges records with the other nodes, computes
//! weights from the users' heaviness, writes them, and restores the earlier settings at the end (Poullie et al. 2016,
//! Listing 1).
//!
//! An [`Agent`] is one state with one step, [`Agent::update`]: the workloads that run, their loads, the node's record, the
//! records of all nodes, and the weights that follow. All access to the machine goes through [`AgentParts`]: sources of
//! workloads, a meter, an enforcer, peers, a journal. So a crash, a group that vanishes and a lost node are unit tests on a
//! simulated machine; [`assemble`] creates the real parts. [`FairnessRound`] is the step without the machine, from loads to
//! weights; [`LoadTracker`] computes loads from counters; [`Journal`] survives a crash; [`Status`] is the state for people.
//!
//! ```
//! use evenhand_agent::Configuration;
//! use evenhand_documents::Document;
//! use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};
//!
//! let text = "[control]\ninterval = \"5s\"\n[[guests]]\nfrom = \"user-slices\"\n";
//! let document = Document::parse("agent.toml", text, None)?;
//! let configuration = Configuration::read(&document, &Hierarchies::default(), ProtectedCgroups::default())?;
//! assert_eq!(configuration.control.interval.as_secs(), 5);
//! assert_eq!(configuration.heaviness.name, "deviation");
//! # Ok::<(), evenhand_documents::DocumentError>(())
//! ```
//!
//! A workload is a virtual machine, container, job or other control group of one user. The configuration, the status and
//! the metrics call it a guest, and keep that name because they are interfaces.
//!
//! This crate does not define heaviness, and it changes a group only after the group's settings are on the disk.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admitted_workloads;
mod agent;
mod assemble;
mod build_status;
mod configuration;
mod control_socket;
pub mod discovery;
mod fairness_round;
mod journal;
mod largest_node;
mod load_tracker;
mod lock_folder;
mod node_supply;
mod other_devices;
mod quotas;
mod restore;
mod status;
mod trusted_files;
mod weights_to_targets;

pub use agent::{Agent, AgentError, AgentParts, EXIT_LIMIT, Identity, Released, Update, digest, longest_silence};
pub use assemble::{AssembleError, Assembly, assemble, check_named_files, diagnose, left_over};
pub use configuration::{
    AgentPlaces, CONFIGURATION_SCHEMA, ChangedDefault, Configuration, ConfigurationSources, ControlSection,
    HeavinessSection, Law, NetworkSection, NodeSection, PeersSection, Speed, likely_variable,
};
pub use control_socket::{ControlSocket, request, request_within};
pub use fairness_round::{
    ControllerFailure, FairnessRound, Measured, RoundSettings, UserOutcome, WorkloadInfo, WorkloadOutcome,
};
pub use journal::{Entry, Journal, JournalError, Salvaged};
pub use load_tracker::{Load, LoadReading, LoadTracker};
pub use lock_folder::lock_folder;
pub use node_supply::{SupplyError, benchmark, node_supply, processor_speed};
pub use quotas::Quotas;
pub use restore::{RestoreError, restore_entries, restore_journal};
pub use status::{NodeStatus, ResourceStatus, Status, TotalStatus, UserStatus, WorkloadStatus};
pub use trusted_files::{TrustError, check_trusted};
