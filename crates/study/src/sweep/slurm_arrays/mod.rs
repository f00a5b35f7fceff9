//! The engine that runs points as Slurm job arrays, through the commands that every site has: `sbatch`, `squeue`,
//! `scontrol`, `scancel`, `sinfo`.
//!
//! [`submit`] divides the missing points into chunks and arrays and submits them, and a final job that gathers the
//! results. A task of an array runs [`run_chunk`]. No process has to wait: the folder holds all that [`status`] and
//! [`cancel`] need.

mod commands;
mod scripts;
mod status;
mod submit;

use std::num::NonZeroUsize;

pub use commands::SlurmError;
pub use scripts::quoted;
pub use status::{LostPoint, Status, cancel, status};
pub use submit::{Submission, ensure_not_queued, run_chunk, submit};

/// The options of a submission.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The partition; by default the site's.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The time limit of a task, in Slurm's format.
    pub time_limit: Option<String>,
    /// The memory of a task, in bytes; by default the estimate.
    pub memory: Option<u64>,
    /// The maximum number of an array's tasks that run at a time.
    pub at_a_time: Option<NonZeroUsize>,
    /// The maximum number of points per task; by default about half a minute of work.
    pub chunk: Option<NonZeroUsize>,
}
