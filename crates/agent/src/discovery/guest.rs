//! A guest, and what can go wrong in looking for it.

use evenhand_enforcers::cgroups::{Group, KernelError};
use thiserror::Error;

/// Something of somebody's that runs here and is weighed as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Guest {
    /// What people call it: a machine's or container's name, a job's number, a slice.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// Where the kernel weighs it.
    pub group: Group,
    /// Another guest in a group of the same path has another one.
    pub identity: u64,
    /// Processors it was sized for, if anybody said.
    pub processors: Option<f64>,
    /// Bytes of memory it was sized for, if anybody said.
    pub memory_bytes: Option<u64>,
}

/// What went wrong. The source may be asked again.
#[derive(Debug, Error)]
pub enum GuestError {
    /// Groups cannot be listed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Somebody who has to be asked does not answer, or not what was expected.
    #[error("{whom}: {why}")]
    NoAnswer {
        /// The program, socket or file.
        whom: String,
        /// What it said, or what was expected.
        why: String,
    },
}
