//! Imports, exports, stores, generates and describes workloads.
//!
//! A row of a trace becomes a task of an [`evenhand_model::Workload`]. Nothing is simulated here.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod byte_source;
pub mod describe;
pub mod export;
pub mod generate;
pub mod import;
mod outcome;
pub mod slurm_notation;
pub mod store;

pub use byte_source::{Progress, Source};
