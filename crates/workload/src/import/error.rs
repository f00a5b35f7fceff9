//! Errors of an import, with place and remedy.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use evenhand_model::WorkloadError;
use evenhand_model::files::{is_error_of_input, remedy_for_reading};
use evenhand_model::memory::{MemoryLimit, format_size};
use evenhand_model::printable::{is_control, printable};
use thiserror::Error;

use super::{Format, ImportSummary};

/// An error in importing a trace.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be opened or read.
    #[error("{file}: {source}{}", remedy_for_reading(source))]
    Io {
        /// The file or folder.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The output would replace an input.
    #[error("{}: the output is the input {}, which it would replace; name another file for the output", output.display(),
        input.display())]
    OutputIsInput {
        /// The output.
        output: PathBuf,
        /// The same file, as an input.
        input: PathBuf,
    },
    /// The tasks that do not fit in memory cannot be written to a temporary file, or read from it.
    #[error(
        "the temporary file for tasks that do not fit in memory: {source}; free some disk space there, or pass a larger --memory"
    )]
    Overflow {
        /// The cause.
        source: io::Error,
    },
    /// A compressed stream is truncated or damaged.
    #[error("{file}: found {} {compression} data ({detail}), expected a complete {compression} stream; fetch the file again",
        if *truncated { "truncated" } else { "damaged" })]
    Compression {
        /// The file.
        file: String,
        /// `gzip`, `zstd`, `bzip2` or `xz`.
        compression: &'static str,
        /// Whether the stream is truncated.
        truncated: bool,
        /// The message of the decompressor.
        detail: String,
    },
    /// A line is longer than in any trace.
    #[error(
        "{file}: found more than {bytes} bytes without a line end, expected a trace of text lines; check that this is the right file"
    )]
    LongLine {
        /// The file.
        file: String,
        /// The bytes that were read.
        bytes: usize,
    },
    /// A folder has no file of the expected extensions.
    #[error(
        "{folder}: found no file to read in this folder, expected {looked_for} (also with .gz, .zst, .bz2 or .xz); name the files explicitly if they have other extensions"
    )]
    NoShard {
        /// The folder.
        folder: String,
        /// The expected patterns.
        looked_for: String,
    },
    /// No source was given.
    #[error("found no input, expected at least one file, folder or - for standard input; name one")]
    NoSource,
    /// A file is empty.
    #[error("{file}: found an empty file, expected a trace; check that it was written completely")]
    EmptyFile {
        /// The file.
        file: String,
    },
    /// The format cannot be detected.
    #[error(
        "{file}: found a first line {found} of unknown format, expected one of {expected}; name the format with --from"
    )]
    UnclearFormat {
        /// The file.
        file: String,
        /// The first line, shortened.
        found: String,
        /// The formats' names.
        expected: String,
    },
    /// The file is of another format than the one that was named.
    #[error("{file}: found a file that looks like {}, expected {}; pass --from {found}", found.description(), named.description())]
    OtherFormat {
        /// The file.
        file: String,
        /// The format that it looks like.
        found: Format,
        /// The format that was named.
        named: Format,
    },
    /// An option that does nothing for the format of the file.
    #[error("{option}: found {}, expected {expected}, for which the option is; leave it out", found.description())]
    UnusedOption {
        /// The option.
        option: &'static str,
        /// The format of the file.
        found: Format,
        /// The formats that the option is for.
        expected: &'static str,
    },
    /// The file is no trace, but another file of a batch system.
    #[error("{file}: found {found}, expected a trace of jobs; {remedy}")]
    NotATrace {
        /// The file.
        file: String,
        /// What it looks like.
        found: String,
        /// The remedy.
        remedy: String,
    },
    /// A row, or a place in a document, is malformed.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A file as a whole does not have the expected form.
    #[error("{file}: found {found}, expected {expected}; {remedy}")]
    Shape {
        /// The file.
        file: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
        /// The remedy.
        remedy: String,
    },
    /// Every row was dropped.
    #[error("{file}: no task is left. {summary} {}", nothing_left_remedy(summary))]
    NothingLeft {
        /// The file, or the first of several and their number.
        file: String,
        /// The counts of what was dropped.
        summary: Box<ImportSummary>,
    },
    /// The tasks cannot form a workload.
    #[error("{file}: {cause}")]
    Workload {
        /// The file, or the first of several and their number.
        file: String,
        /// Why they cannot.
        cause: WorkloadError,
    },
    /// The tasks do not fit in memory.
    #[error(
        "{file}: found {tasks} tasks{}, which need about {} of memory; expected at most {} ({}). Pass a larger --memory if \
         there is more, use a machine that has more, or import a part of the trace",
        if *estimated { " (estimated)" } else { " so far" }, format_size(*need), format_size(limit.bytes), limit.reason
    )]
    Memory {
        /// The file in which the limit was reached, or the first.
        file: String,
        /// The number of tasks.
        tasks: u64,
        /// Whether the number is an estimate by the size of the files; otherwise it is what was read so far.
        estimated: bool,
        /// The bytes needed.
        need: u64,
        /// The limit.
        limit: MemoryLimit,
    },
    /// A document that must be read as a whole does not fit in memory.
    #[error(
        "{file}: found a document of more than {}, which is read as a whole; expected at most a third of {} of memory ({}). \
         Pass a larger --memory if there is more, or use a machine that has more",
        format_size(*bytes), format_size(limit.bytes), limit.reason
    )]
    LargeDocument {
        /// The file.
        file: String,
        /// The bytes that were read.
        bytes: u64,
        /// The limit.
        limit: MemoryLimit,
    },
    /// A compressed stream holds much more text than traces do.
    #[error(
        "{file}: found more than {} of text in {} of {compression} data, expected at most {}; if the file is a trace all \
         the same, pass --max-unpacked with a size",
        format_size(*limit), format_size(*packed), if *given { "what --max-unpacked allows" } else { "200 times as much" }
    )]
    Unpacked {
        /// The file.
        file: String,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// The compressed bytes that were read.
        packed: u64,
        /// The bytes that the text may have.
        limit: u64,
        /// Whether an option set the limit.
        given: bool,
    },
    /// The threads cannot be started.
    #[error("cannot start {threads} threads: {detail}; ask for fewer with --threads")]
    Threads {
        /// The requested number.
        threads: usize,
        /// The cause.
        detail: String,
    },
}

impl ImportError {
    /// Returns the error about a file that only a program with the feature `formats` reads.
    #[cfg(not(feature = "formats"))]
    pub(crate) fn not_built(file: &str, found: &str) -> ImportError {
        ImportError::Shape {
            file: file.to_string(),
            found: found.to_string(),
            expected: "text, plain or packed by gzip: this evenhand was built without the rest".to_string(),
            remedy: "unpack or convert it, or use an evenhand with the feature `formats`".to_string(),
        }
    }

    /// Returns whether the environment caused the error (exit status 3) and not the input (exit status 2).
    ///
    /// A file that does not exist is an error of the input; a file without read permission is not.
    pub fn is_environment(&self) -> bool {
        match self {
            ImportError::Io { source, .. } => !is_error_of_input(source),
            ImportError::Overflow { .. }
            | ImportError::Threads { .. }
            | ImportError::Memory { .. }
            | ImportError::LargeDocument { .. } => true,
            _ => false,
        }
    }
}

/// Returns what to do about a trace without tasks.
fn nothing_left_remedy(summary: &ImportSummary) -> &'static str {
    let malformed = summary.dropped.iter().filter(|(reason, _)| reason.starts_with(MALFORMED)).count();
    match summary.format {
        _ if summary.rows_read == 0 => "It lists no job: check that it was exported completely",
        _ if malformed > 0 && malformed == summary.dropped.len() => {
            "Without --lenient the first malformed row is an error with its place"
        }
        Format::Google2011 | Format::Google2019 => "Import a longer part of it, which has whole attempts of tasks",
        _ => "Export jobs that have ended, with the fields that the dropped rows lack",
    }
}

/// A malformed row: its place, what was found, what was expected, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: found {found}, expected {expected}; {remedy}")]
pub struct RowError {
    /// The file.
    pub file: String,
    /// The line, counted from 1 in the decompressed text.
    pub line: u64,
    /// The byte in the line, counted from 1.
    pub column: u64,
    /// What was found, shortened.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// The remedy.
    pub remedy: String,
}

/// A malformed field or row, whose file and line are not yet known; see [`RowError`].
#[derive(Debug)]
pub(super) struct FieldError {
    /// The byte in the line, counted from 0.
    pub(super) at: usize,
    pub(super) found: String,
    pub(super) expected: Cow<'static, str>,
    pub(super) remedy: &'static str,
}

/// What the reason for a malformed row that was dropped begins with.
pub(super) const MALFORMED: &str = "malformed";

const REMEDY: &str = "correct the row, or pass --lenient to skip such rows";

impl FieldError {
    /// Creates an error about the text `found` at byte `at` of the line, counted from 0.
    pub(super) fn new(at: usize, found: &[u8], expected: impl Into<Cow<'static, str>>) -> Box<FieldError> {
        FieldError::described(at, quoted(found), expected)
    }

    /// Creates an error about byte `at` of the line, in which `found` is a description, not a quotation.
    pub(super) fn described(
        at: usize,
        found: impl fmt::Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Box<FieldError> {
        Box::new(FieldError { at, found: found.to_string(), expected: expected.into(), remedy: REMEDY })
    }

    pub(super) fn remedy(mut self: Box<FieldError>, remedy: &'static str) -> Box<FieldError> {
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

/// Returns what is expected in place of a malformed number: where `found` has only digits, it is larger than the largest.
pub(super) fn up_to(
    found: &[u8],
    expected: impl Into<Cow<'static, str>>,
    largest: impl fmt::Display,
) -> Cow<'static, str> {
    let expected = expected.into();
    let digits = found.strip_prefix(b"-").unwrap_or(found);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { Cow::Owned(format!("{expected}, at most {largest}")) } else { expected }
}

/// Quotes text of the input for a message: printable and short. Bytes that are not UTF-8 appear as `\xff`.
pub(super) fn quoted(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    if text.is_empty() {
        return "nothing".to_string();
    }
    let (mut shown, mut characters) = (String::new(), 0);
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars().take(LONGEST - characters) {
            characters += 1;
            match c {
                '"' | '\\' => shown.extend(c.escape_default()),
                c if is_control(c) => shown += &printable(c.encode_utf8(&mut [0; 4])),
                c => shown.push(c),
            }
        }
        let invalid = chunk.invalid().iter().take(LONGEST - characters);
        characters += invalid.len();
        invalid.for_each(|byte| shown += &format!("\\x{byte:02x}"));
        if characters == LONGEST {
            break;
        }
    }
    // Each character and each byte that is not UTF-8 counts as one.
    let is_all = text.utf8_chunks().map(|c| c.valid().chars().count() + c.invalid().len()).sum::<usize>() <= LONGEST;
    format!("\"{shown}{}\"", if is_all { "" } else { "…" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_it_is_and_only_what_does_not_print_is_escaped() {
        let long = "é".repeat(41);
        for (text, expected) in [
            ("año 東京 it's".as_bytes(), "\"año 東京 it's\""),
            (b"a\xc3(\xff", "\"a\\xc3(\\xff\""),
            (b"\"\\\t\x1b[2J", "\"\\\"\\\\\\t\\x1b[2J\""),
            ("\u{202e}a".as_bytes(), "\"\\u{202e}a\""),
            (b"", "nothing"),
            (&long.as_bytes()[..80], &format!("\"{}\"", "é".repeat(40))),
            (long.as_bytes(), &format!("\"{}…\"", "é".repeat(40))),
            (&[0xff; 41], &format!("\"{}…\"", "\\xff".repeat(40))),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
