//! Errors of enforcers and meters.

use std::io;

use thiserror::Error;

use crate::cgroups::{GroupId, Resource};

/// Why a group could not be read or changed.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The group no longer exists: its workload ended, which is normal.
    #[error("{0} no longer exists")]
    Gone(String),
    /// A resource that could be divided cannot be divided any more.
    #[error("{resource} of {group} can no longer be set: {why}")]
    Withdrawn {
        /// The resource.
        resource: Resource,
        /// The path of the group, or the unit.
        group: String,
        /// The cause.
        why: String,
    },
    /// A group that was not admitted before.
    #[error("group {} was not admitted", .0.0)]
    NotAdmitted(GroupId),
    /// Not the path of a group: empty, absolute, or leading out of the hierarchy.
    #[error("{0:?} is not the path of a group")]
    InvalidPath(String),
    /// A group in which this process runs, or an ancestor of such a group.
    #[error("this process itself runs in {0}, which is never changed")]
    Protected(String),
    /// Another agent holds the lock on these groups.
    #[error("another agent is managing the groups in {0}")]
    Locked(String),
    /// A file access or call that failed.
    #[error("{what}: {source}")]
    Io {
        /// The path of the file, or the call.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file with unexpected content.
    #[error("{what}: found {found:?}, expected {expected}")]
    Content {
        /// The path of the file, or the call.
        what: String,
        /// The text, or its beginning.
        found: String,
        /// The expected form.
        expected: &'static str,
    },
}
