//! What can go wrong with a group.

use std::io;

use thiserror::Error;

use crate::cgroups::{Control, GroupId};

/// What went wrong.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The group is not there any more: it ended, which is no fault.
    #[error("{0} is not there any more")]
    Gone(String),
    /// What could be divided cannot be divided now.
    #[error("{control} of {group} can no longer be set: {why}")]
    Withdrawn {
        /// Which.
        control: Control,
        /// Whose.
        group: String,
        /// What happened.
        why: String,
    },
    /// A group that was not admitted.
    #[error("group {} was not admitted", .0.0)]
    Unknown(GroupId),
    /// A path that is none: empty, absolute, or leading out of the hierarchy.
    #[error("{0:?} is not the path of a group")]
    Path(String),
    /// A group in which this process itself runs, or around such a group.
    #[error("this process itself runs in {0}")]
    Own(String),
    /// Somebody else weighs the groups there.
    #[error("another agent is at work on {0}")]
    Locked(String),
    /// A file or call that failed.
    #[error("{what}: {source}")]
    Io {
        /// The path of the file, or the call.
        what: String,
        /// How.
        source: io::Error,
    },
    /// A file that does not say what it should.
    #[error("{what}: found {found:?}, expected {expected}")]
    Content {
        /// The path of the file, or the call.
        what: String,
        /// The text, or its beginning.
        found: String,
        /// What would have been right.
        expected: &'static str,
    },
}
