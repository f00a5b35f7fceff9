//! Imports, exports, stores, generates and describes workloads.
//!
//! A row of a trace becomes a task of an [`evenhand_model::Workload`]. Nothing is simulated here.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod describe;
pub mod export;
pub mod generate;
pub mod import;
pub mod slurm_notation;
mod source;
pub mod store;

pub use source::{Progress, Source};
