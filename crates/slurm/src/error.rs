//! Why a site cannot be read.

use evenhand_workload::import::ImportError;
use thiserror::Error;

use crate::commands::CommandError;

/// Why a site cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A command did not do its work.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A command printed what is not understood.
    #[error(transparent)]
    Text(#[from] TextError),
    /// What `sacct` printed makes no workload.
    #[error(transparent)]
    Import(#[from] ImportError),
}

impl ReadError {
    /// Whether the environment failed (exit status 3) and not the input (2): all but an empty history did.
    pub fn is_environment(&self) -> bool {
        !matches!(self, ReadError::Import(ImportError::NothingLeft(_)))
    }
}

/// Text of a command that is not as documented: where, what was found, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{source_name}:{line}:{column}: found {found}, expected {expected}")]
pub struct TextError {
    /// The command that printed it.
    pub source_name: &'static str,
    /// Counted from 1, the header included.
    pub line: usize,
    /// The byte in the line, counted from 1.
    pub column: usize,
    /// What is there, shortened.
    pub found: String,
    /// What should be.
    pub expected: String,
}

/// Text as a message shows it: quoted, printable, not long.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.is_empty() {
        return "nothing".into();
    }
    let shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let dots = if text.chars().count() > LONGEST { "…" } else { "" };
    format!("\"{shown}{dots}\"")
}
