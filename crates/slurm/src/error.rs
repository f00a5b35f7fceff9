//! Errors of reading a site.

use evenhand_workload::import::ImportError;
use thiserror::Error;

use crate::run_commands::CommandError;

/// Why a site cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The output of a command is not understood.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The output of `sacct` cannot be imported as a workload.
    #[error(transparent)]
    Import(#[from] ImportError),
}

impl ReadError {
    /// Returns whether the environment failed (exit status 3) rather than the input (2): all errors but an empty
    /// history.
    pub fn is_environment(&self) -> bool {
        !matches!(self, ReadError::Import(ImportError::NothingLeft { .. }))
    }
}

/// Text of a command that differs from its documentation, with its position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{source_name}:{line}:{column}: found {found}, expected {expected}")]
pub struct TextError {
    /// The command that printed it.
    pub source_name: &'static str,
    /// The line, counted from 1 with the header.
    pub line: usize,
    /// The byte in the line, counted from 1.
    pub column: usize,
    /// The text at this position, shortened.
    pub found: String,
    /// The expected text, in words.
    pub expected: String,
}

/// Returns text quoted, printable and shortened for a message.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_LEN: usize = 40;
    if text.is_empty() {
        return "nothing".into();
    }
    let shown: String = text.chars().take(MAX_LEN).flat_map(char::escape_debug).collect();
    let dots = if text.chars().count() > MAX_LEN { "…" } else { "" };
    format!("\"{shown}{dots}\"")
}
