//! Errors in files, with the line that they are about.

use std::fmt;
use std::io;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use evenhand_model::files::{is_error_of_input, remedy_for_reading};
use evenhand_model::printable::{is_control, printable};
use thiserror::Error;

/// An error in reading a file or in its content.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("{path}: {source}{}", remedy_for_reading(source))]
    Read {
        /// The name of the file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The content is not as expected.
    #[error(transparent)]
    Content(#[from] Box<ContentError>),
}

/// An error at a place in a text.
///
/// It prints as `path:line:column: problem`, followed by the line with the place underlined. Of a long line, only the
/// surroundings of the place are printed.
#[derive(Clone, Debug)]
pub struct ContentError {
    path: String,
    line: usize,
    column: usize,
    problem: String,
    excerpts: Vec<Excerpt>,
}

impl ContentError {
    /// Creates an error about `span` of `text`. `related` is a second place with its label, such as the first
    /// occurrence of a duplicate key.
    pub(crate) fn new(
        path: &str,
        text: &str,
        span: Range<usize>,
        problem: impl Into<String>,
        related: Option<(Range<usize>, &str)>,
    ) -> Box<ContentError> {
        let (line, column) = place(text, span.start);
        let mut excerpts = vec![Excerpt::new(text, span, None)];
        if let Some((span, label)) = related {
            excerpts.push(Excerpt::new(text, span, Some(label)));
            // In the order of the file.
            excerpts.sort_by_key(|e| e.line);
        }
        // Names from the file may hold characters that control a terminal.
        let problem = printable(&problem.into()).into_owned();
        Box::new(ContentError { path: printable(path).into_owned(), line, column, problem, excerpts })
    }

    /// Returns the name of the text, as a rule a path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the line, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns the text of the error, without the place: what was found and what was expected.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Renders the whole error as text, with colours for a terminal if `colours` is set.
    pub fn render(&self, colours: bool) -> String {
        let snippets = self.excerpts.iter().map(Excerpt::snippet);
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        let lines =
            renderer.term_width(LONGEST_LINE + 40).render(&[Group::with_level(Level::ERROR).elements(snippets)]);
        // The renderer itself replaces only the control characters of ASCII, and its colours need them.
        let lines = lines.replace(|c: char| !c.is_ascii() && is_control(c), "\u{fffd}");
        let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
        format!("{}:{}:{}: {}\n{}", self.path, self.line, self.column, self.problem, lines.join("\n"))
    }
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ContentError {}

impl DocumentError {
    /// Renders the whole error as text, with colours for a terminal if `colours` is set.
    pub fn render(&self, colours: bool) -> String {
        match self {
            DocumentError::Read { .. } => printable(&self.to_string()).into_owned(),
            DocumentError::Content(content) => content.render(colours),
        }
    }

    /// Returns whether the environment caused the error (permissions, input and output) and not the input.
    pub fn is_environment(&self) -> bool {
        matches!(self, DocumentError::Read { source, .. } if !is_error_of_input(source))
    }
}

/// The longest line, in characters, that is printed whole.
const LONGEST_LINE: usize = 120;
/// The characters of a longer line that are printed before and after the place.
const CONTEXT_BEFORE: usize = 50;
const CONTEXT_AFTER: usize = 60;
const ELLIPSIS: &str = "…";

/// One line of the text, as it is printed.
#[derive(Clone, Debug)]
struct Excerpt {
    line: usize,
    text: String,
    span: Range<usize>,
    label: Option<String>,
}

impl Excerpt {
    fn new(text: &str, span: Range<usize>, label: Option<&str>) -> Excerpt {
        let start = char_floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let line = text[line_start..line_end].trim_end_matches('\r');
        // A place of several lines is underlined to the end of its first line.
        let from = (start - line_start).min(line.len());
        let to = char_floor(line, (span.end.max(start) - line_start).min(line.len())).max(from);
        let (cut, from, to) = shortened(line, from, to);
        let label = label.map(String::from);
        Excerpt { line: text[..start].matches('\n').count() + 1, text: cut, span: from..to, label }
    }

    fn snippet(&self) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        let kind = if self.label.is_some() { AnnotationKind::Context } else { AnnotationKind::Primary };
        let annotation = kind.span(self.span.clone()).label(self.label.as_deref());
        Snippet::source(self.text.as_str()).line_start(self.line).annotation(annotation)
    }
}

/// Shortens a long line to the surroundings of `from..to`, and returns that range in the shortened line.
fn shortened(line: &str, from: usize, to: usize) -> (String, usize, usize) {
    // A line has at least as many bytes as characters, so most lines need no counting.
    if line.len() <= LONGEST_LINE || line.chars().count() <= LONGEST_LINE {
        return (line.to_string(), from, to);
    }
    let begin = line[..from].char_indices().rev().nth(CONTEXT_BEFORE - 1).map_or(0, |(at, _)| at);
    let end = line[from..].char_indices().nth(CONTEXT_AFTER).map_or(line.len(), |(at, _)| from + at);
    let mut cut = String::new();
    if begin > 0 {
        cut.push_str(ELLIPSIS);
    }
    let shift = cut.len();
    cut.push_str(&line[begin..end]);
    if end < line.len() {
        cut.push_str(ELLIPSIS);
    }
    (cut, from - begin + shift, to.min(end) - begin + shift)
}

/// Returns the line and the column, in characters, of a byte; both count from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..char_floor(text, at)];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Returns the last character boundary at or before `at`.
fn char_floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// Quotes a text; the middle of a long text is omitted.
pub(crate) fn quoted(text: &str) -> String {
    const LONG: usize = 60;
    if text.chars().count() <= LONG {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(LONG - 20).collect();
    let tail: String = text.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{:?}", format!("{head}{ELLIPSIS}{tail}"))
}
