//! A running workload, and the errors of looking for workloads.

use evenhand_enforcers::cgroups::{Group, KernelError};
use thiserror::Error;

/// A virtual machine, container, job or other control group of one user that runs on this machine and gets one weight.
///
/// The configuration and the status call it a guest (`[[guests]]`, `evenhand_guest_weight`); these interfaces keep the name.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningWorkload {
    /// The name for people: that of a virtual machine, container or slice, or the number of a job.
    pub name: String,
    /// The name of the user who owns it.
    pub owner: String,
    /// The control group in which it runs.
    pub group: Group,
    /// The inode number of the group's directory, which distinguishes this group from a later one of the same path.
    pub identity: u64,
    /// The number of processors for which it was sized, if known.
    pub processors: Option<f64>,
    /// The bytes of memory for which it was sized, if known.
    pub memory_bytes: Option<u64>,
}

/// Why a source could not list its workloads. A later attempt may succeed.
#[derive(Debug, Error)]
pub enum DiscoveryError {
    /// The control groups cannot be listed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A program, socket or file did not answer as expected.
    #[error("{source_name}: {why}")]
    NoAnswer {
        /// The program, socket or file.
        source_name: String,
        /// The error, or what was expected.
        why: String,
    },
}
