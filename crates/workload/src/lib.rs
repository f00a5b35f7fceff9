//! Traces in and out, generated workloads, and descriptions of both.
//!
//! A trace line becomes a task of the [`evenhand_model::Workload`]; nothing is run here.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod describe;
pub mod export;
pub mod generate;
pub mod import;
mod input;
pub mod slurm;
pub mod store;

pub use input::{Progress, Source};
