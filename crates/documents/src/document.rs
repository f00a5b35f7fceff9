//! A text and its tree.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::error::{ContentError, DocumentError};
use crate::node::{Node, Table};
use crate::tree::Value;

/// How standard input is called in errors.
pub const STDIN: &str = "<stdin>";

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.1.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// What a file's ending says: `.toml`, `.json`.
    pub fn of_path(path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_str()?;
        [("toml", Format::Toml), ("json", Format::Json)]
            .into_iter()
            .find_map(|(known, format)| ending.eq_ignore_ascii_case(known).then_some(format))
    }

    /// What the text itself looks like.
    ///
    /// A text that begins with `{`, or with `[` and then `{` or `]`, is JSON: no TOML begins so. All
    /// others are TOML, also `[capacity]` and `[[user]]`. (A JSON list of anything but objects is no
    /// document of this house.)
    pub fn of_text(text: &str) -> Format {
        let mut marks = text.chars().filter(|c| !c.is_whitespace());
        match (marks.next(), marks.next()) {
            (Some('{'), _) | (Some('['), Some('{' | ']')) => Format::Json,
            _ => Format::Toml,
        }
    }
}

/// A text and what errors call it.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// A text that is no file.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// Reads a file, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// If it cannot be read or is not UTF-8.
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
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let bad = e.as_bytes()[at];
            // Up to `at` the text is as it was; the rest is only shown.
            let shown = String::from_utf8_lossy(e.as_bytes());
            let problem = format!("found the byte 0x{bad:02x}, expected text in UTF-8");
            DocumentError::from(ContentError::new(&name, &shown, at..at + '\u{fffd}'.len_utf8(), problem, None))
        })?;
        Ok(Source { name, text })
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// That something is wrong at a place, in bytes of the text.
    pub fn error(&self, span: Range<usize>, problem: impl Into<String>) -> DocumentError {
        ContentError::new(&self.name, &self.text, span, problem, None).into()
    }

    /// That something is wrong at a place because of another one, which gets the label.
    pub(crate) fn error_of_two(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        other: Option<(Range<usize>, &str)>,
    ) -> DocumentError {
        ContentError::new(&self.name, &self.text, span, problem, other).into()
    }
}

/// A text and the tree of what it says.
#[derive(Clone, Debug)]
pub struct Document {
    source: Source,
    value: Value,
}

impl Document {
    /// Reads a file, or standard input if `path` is `-`. The format is what the file's ending says,
    /// else what the text looks like ([`Format::of_text`]).
    ///
    /// # Errors
    /// If it cannot be read, is not UTF-8, or is neither TOML nor JSON.
    pub fn read(path: &Path) -> Result<Document, DocumentError> {
        Document::of(Source::read(path)?, Format::of_path(path))
    }

    /// Parses a text; `name` is what errors call it.
    ///
    /// # Errors
    /// If it is not in the format.
    pub fn parse(name: &str, text: &str, format: Option<Format>) -> Result<Document, DocumentError> {
        Document::of(Source::new(name, text), format)
    }

    /// Parses what was read.
    ///
    /// # Errors
    /// If it is not in the format.
    pub fn of(mut source: Source, format: Option<Format>) -> Result<Document, DocumentError> {
        // Some editors begin a file with a byte order mark, which is no part of what it says.
        if let Some(rest) = source.text.strip_prefix('\u{feff}') {
            source.text = rest.to_string();
        }
        let parsed = match format.unwrap_or_else(|| Format::of_text(&source.text)) {
            Format::Toml => crate::toml::parse(&source.text),
            Format::Json => crate::json::parse(&source.text),
        };
        match parsed {
            Ok(value) => Ok(Document { source, value }),
            Err(refusal) => Err(source.error_of_two(refusal.span, refusal.problem, refusal.other)),
        }
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// All of it, as a value.
    pub fn node(&self) -> Node<'_> {
        Node::new(self, &self.value, "the document".into())
    }

    /// All of it, as a table.
    ///
    /// # Errors
    /// If it is a list or a single value.
    pub fn root(&self) -> Result<Table<'_>, DocumentError> {
        self.node().table()
    }
}
