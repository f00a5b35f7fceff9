//! A document: a text and its tree of values.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::error::{ContentError, DocumentError};
use crate::node::{Node, Table};
use crate::tree::Value;

/// The name of standard input in errors.
pub const STDIN: &str = "<stdin>";

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.1.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// Returns the format that a file's extension names: `.toml` or `.json`.
    pub fn of_path(path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_str()?;
        [("toml", Format::Toml), ("json", Format::Json)]
            .into_iter()
            .find_map(|(known, format)| ending.eq_ignore_ascii_case(known).then_some(format))
    }

    /// Detects the format from the text.
    ///
    /// A text that begins with `{`, or with `[` and then `{` or `]`, is JSON, since no TOML begins like this. All other
    /// texts are TOML, for example `[capacity]` and `[[user]]`. A JSON list of anything but objects is never expected.
    pub fn of_text(text: &str) -> Format {
        let mut marks = text.chars().filter(|c| !c.is_whitespace());
        match (marks.next(), marks.next()) {
            (Some('{'), _) | (Some('['), Some('{' | ']')) => Format::Json,
            _ => Format::Toml,
        }
    }
}

/// A text and its name in errors.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// Creates a source from a text in memory.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// Reads a file, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Source, DocumentError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { STDIN.to_string() } else { path.display().to_string() };
        let bytes = if is_stdin {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            std::fs::read(path)
        };
        let bytes = bytes.map_err(|source| DocumentError::Read { path: name.clone(), source })?;
        Source::of_bytes(name, bytes)
    }

    /// Creates a source from the bytes of a file that was read.
    ///
    /// # Errors
    /// Returns an error if they are not UTF-8.
    pub fn of_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Source, DocumentError> {
        let name = name.into();
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let bad = e.as_bytes()[at];
            // Up to `at` the text is unchanged; the rest is only printed.
            let printed = String::from_utf8_lossy(e.as_bytes());
            let problem = format!("found the byte 0x{bad:02x}, expected text in UTF-8");
            DocumentError::from(ContentError::new(&name, &printed, at..at + '\u{fffd}'.len_utf8(), problem, None))
        })?;
        Ok(Source { name, text })
    }

    /// Returns the name in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Creates an error about a place, given in bytes of the text.
    pub fn error(&self, span: Range<usize>, problem: impl Into<String>) -> DocumentError {
        ContentError::new(&self.name, &self.text, span, problem, None).into()
    }

    /// Creates an error about a place, with a label at another place that explains it.
    pub(crate) fn error_with_related(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        other: Option<(Range<usize>, &str)>,
    ) -> DocumentError {
        ContentError::new(&self.name, &self.text, span, problem, other).into()
    }
}

/// A parsed text: its tree of values and their places.
#[derive(Clone, Debug)]
pub struct Document {
    source: Source,
    value: Value,
}

impl Document {
    /// Reads a file, or standard input if `path` is `-`. The file's extension decides the format, or else the text
    /// ([`Format::of_text`]).
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not UTF-8, or is neither TOML nor JSON.
    pub fn read(path: &Path) -> Result<Document, DocumentError> {
        Document::of(Source::read(path)?, Format::of_path(path))
    }

    /// Reads a file, or standard input if `path` is `-`, that is TOML unless its extension states another format.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not UTF-8, or is not in the format.
    pub fn read_toml(path: &Path) -> Result<Document, DocumentError> {
        Document::of(Source::read(path)?, Some(Format::of_path(path).unwrap_or(Format::Toml)))
    }

    /// Parses a text; `name` names it in errors.
    ///
    /// # Errors
    /// Returns an error if the text is not in the format.
    pub fn parse(name: &str, text: &str, format: Option<Format>) -> Result<Document, DocumentError> {
        Document::of(Source::new(name, text), format)
    }

    /// Parses a source; without a format, [`Format::of_text`] detects it.
    ///
    /// # Errors
    /// Returns an error if the text is not in the format.
    pub fn of(mut source: Source, format: Option<Format>) -> Result<Document, DocumentError> {
        // Some editors begin a file with a byte order mark.
        if let Some(rest) = source.text.strip_prefix('\u{feff}') {
            source.text = rest.to_string();
        }
        let parsed = match format.unwrap_or_else(|| Format::of_text(&source.text)) {
            Format::Toml => crate::toml::parse(&source.text),
            Format::Json => crate::json::parse(&source.text),
        };
        match parsed {
            Ok(value) => Ok(Document { source, value }),
            Err(error) => Err(source.error_with_related(error.span, error.problem, error.related)),
        }
    }

    /// Returns the text that was parsed.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the whole document as a node.
    pub fn node(&self) -> Node<'_> {
        Node::new(self, &self.value, "the document".into())
    }

    /// Returns the whole document as a table.
    ///
    /// # Errors
    /// Returns an error if it is a list or a single value.
    pub fn root(&self) -> Result<Table<'_>, DocumentError> {
        self.node().table()
    }
}
