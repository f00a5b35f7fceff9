//! Traces in and out, generated workloads, and descriptions of both.
//!
//! A trace line becomes a task of the [`evenhand_model::Workload`]; nothing is run here.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod import;
mod input;

pub use import::{
    Format, ImportError, ImportOptions, ImportSummary, Imported, MemoryPer, MemoryUnit, ParseNameError, RowError,
    import, import_with_progress,
};
pub use input::{Progress, Source};
