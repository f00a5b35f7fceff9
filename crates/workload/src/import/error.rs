//! Why an import fails, in sentences that name the place and the remedy.

use std::borrow::Cow;
use std::fmt;
use std::io;

use evenhand_model::WorkloadError;
use thiserror::Error;

use super::ImportSummary;

/// Why a trace cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The operating system refused to open or read.
    #[error("{file}: {source}{}", io_remedy(source))]
    Io {
        /// The file or folder.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A compressed stream is cut off or damaged.
    #[error("{file}: found {} {compression} data ({detail}), expected a whole {compression} stream; fetch the file again",
        if *truncated { "truncated" } else { "damaged" })]
    Compression {
        /// The file.
        file: String,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// Whether the stream ends too early.
        truncated: bool,
        /// What the decompressor said.
        detail: String,
    },
    /// A line that no trace has.
    #[error(
        "{file}: found more than {bytes} bytes without a line end, expected a trace of text lines; check that this is the right file"
    )]
    LongLine {
        /// The file.
        file: String,
        /// How many bytes were looked at.
        bytes: usize,
    },
    /// A folder without a file that could be a part of the trace.
    #[error(
        "{folder}: found no file to read in this folder, expected {looked_for} (also with .gz or .zst); name the files themselves if they are called otherwise"
    )]
    NoShard {
        /// The folder.
        folder: String,
        /// The patterns that were looked for.
        looked_for: String,
    },
    /// No source was given.
    #[error("found no input, expected at least one file, folder or - for standard input; name one")]
    NoSource,
    /// A file with nothing in it.
    #[error("{file}: found an empty file, expected a trace; check that it was written completely")]
    EmptyFile {
        /// The file.
        file: String,
    },
    /// The content tells no format.
    #[error(
        "{file}: found a first line {found} that tells no format, expected one of {expected}; say which it is with --from"
    )]
    UnclearFormat {
        /// The file.
        file: String,
        /// Its first line, shortened.
        found: String,
        /// The formats' names.
        expected: String,
    },
    /// A row, or a place in a document, is not what the format says.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A file lacks something it needs as a whole.
    #[error("{file}: found {found}, expected {expected}; {remedy}")]
    Shape {
        /// The file.
        file: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
        /// What to do.
        remedy: String,
    },
    /// Every row was dropped.
    #[error("no task is left of this trace. {0} Give a longer part of it, or other options")]
    NothingLeft(Box<ImportSummary>),
    /// The tasks make no workload.
    #[error("the trace makes no workload: {0}")]
    Workload(#[from] WorkloadError),
    /// The threads to work with could not be started.
    #[error("cannot start {threads} threads: {detail}; ask for fewer with --threads")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        detail: String,
    },
}

impl ImportError {
    /// Whether the environment failed (exit status 3) rather than the input being wrong (2).
    ///
    /// A file that does not exist is a wrong input; one that may not be read is not.
    pub fn is_environment(&self) -> bool {
        match self {
            ImportError::Io { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput
            ),
            ImportError::Threads { .. } => true,
            _ => false,
        }
    }
}

fn io_remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; check the path",
        io::ErrorKind::PermissionDenied => "; make it readable for this user",
        _ => "",
    }
}

/// A malformed row: where, what was found, what was expected, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: found {found}, expected {expected}; {remedy}")]
pub struct RowError {
    /// The file.
    pub file: String,
    /// Counted from 1, in the decompressed text.
    pub line: u64,
    /// The byte in the line, counted from 1.
    pub column: u64,
    /// What is there, shortened.
    pub found: String,
    /// What should be.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

/// A [`RowError`] before its file and line are known.
#[derive(Debug)]
pub(super) struct Problem {
    /// The byte in the line, counted from 0.
    pub(super) at: usize,
    pub(super) found: String,
    pub(super) expected: Cow<'static, str>,
    pub(super) remedy: &'static str,
}

const REMEDY: &str = "correct the row, or pass --lenient to skip such rows";

impl Problem {
    /// A problem with the text `found`, which stands at byte `at` of the line.
    pub(super) fn new(at: usize, found: &[u8], expected: impl Into<Cow<'static, str>>) -> Box<Problem> {
        Problem::of(at, quoted(found), expected)
    }

    /// A problem whose finding is a phrase of ours.
    pub(super) fn of(at: usize, found: impl fmt::Display, expected: impl Into<Cow<'static, str>>) -> Box<Problem> {
        Box::new(Problem { at, found: found.to_string(), expected: expected.into(), remedy: REMEDY })
    }

    pub(super) fn remedy(mut self: Box<Problem>, remedy: &'static str) -> Box<Problem> {
        self.remedy = remedy;
        self
    }

    pub(super) fn located(self, file: &str, line: u64) -> RowError {
        RowError {
            file: file.to_string(),
            line,
            column: self.at as u64 + 1,
            found: self.found,
            expected: self.expected.into_owned(),
            remedy: self.remedy.to_string(),
        }
    }
}

/// Text of the input as a message shows it: quoted, printable, not long.
pub(super) fn quoted(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    if text.is_empty() {
        return "nothing".to_string();
    }
    let shown = text.get(..LONGEST).unwrap_or(text).escape_ascii();
    let dots = if text.len() > LONGEST { "…" } else { "" };
    format!("\"{shown}{dots}\"")
}
