//! The engine that runs points as job arrays of Slurm, through the commands every site has: `sbatch`, `squeue`,
//! `scontrol`, `scancel`, `sinfo`.
//!
//! [`submit`] cuts what is missing into chunks and arrays and submits them, and after them a job that gathers. A task of
//! an array runs [`run_chunk`]. Nothing waits: the folder holds all that [`status`] and [`cancel`] need.

mod command;
mod script;
mod status;
mod submit;

use std::num::NonZeroUsize;

pub use command::SlurmError;
pub use script::quoted;
pub use status::{LostPoint, Status, cancel, status};
pub use submit::{Submission, refuse_under_way, run_chunk, submit};

/// How to submit.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The partition; by default the site's.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The time limit of a task, in Slurm's own words.
    pub time_limit: Option<String>,
    /// What a task may hold, in bytes; by default the estimate.
    pub memory: Option<u64>,
    /// So many tasks of an array at a time at most.
    pub at_a_time: Option<NonZeroUsize>,
    /// So many points a task at most; by default about half a minute of them.
    pub chunk: Option<NonZeroUsize>,
}
