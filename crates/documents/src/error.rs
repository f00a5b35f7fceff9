//! What is wrong with a file, and the line that says so.

use std::fmt;
use std::io;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use thiserror::Error;

/// A file that cannot be read or does not say what it should.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file, as shown to people.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It says something else than expected.
    #[error(transparent)]
    Content(#[from] Box<ContentError>),
}

/// One thing that is wrong in a text, with its place.
///
/// Its text begins with `path:line:column: problem`; the lines after it show the line with the place
/// underlined. Of a long line only what is around the place is shown.
#[derive(Clone, Debug)]
pub struct ContentError {
    path: String,
    line: usize,
    column: usize,
    problem: String,
    excerpts: Vec<Excerpt>,
}

impl ContentError {
    /// `text` may be any text around `span`; the second place is for what is said twice.
    pub(crate) fn new(
        path: &str,
        text: &str,
        span: Range<usize>,
        problem: impl Into<String>,
        other: Option<(Range<usize>, &str)>,
    ) -> Box<ContentError> {
        let (line, column) = place(text, span.start);
        let mut excerpts = vec![Excerpt::new(text, span, None)];
        if let Some((span, label)) = other {
            excerpts.push(Excerpt::new(text, span, Some(label)));
            // As in the file.
            excerpts.sort_by_key(|e| e.line);
        }
        // Names from the file may hold what would move a terminal's cursor.
        let problem = problem.into().replace(char::is_control, "\u{fffd}");
        Box::new(ContentError { path: path.to_string(), line, column, problem, excerpts })
    }

    /// Line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What was found and what was expected, without the place.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The whole error as text; with colours for a terminal.
    pub fn render(&self, colours: bool) -> String {
        let snippets = self.excerpts.iter().map(Excerpt::snippet);
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        let lines =
            renderer.term_width(LONGEST_LINE + 40).render(&[Group::with_level(Level::ERROR).elements(snippets)]);
        // The renderer does so with the older half of control characters.
        let lines = lines.replace(|c| ('\u{80}'..='\u{9f}').contains(&c), "\u{fffd}");
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
    /// The whole error as text; with colours for a terminal.
    pub fn render(&self, colours: bool) -> String {
        match self {
            DocumentError::Read { .. } => self.to_string(),
            DocumentError::Content(content) => content.render(colours),
        }
    }

    /// Whether the fault is not in the file but in the right to read it or in the machine.
    pub fn is_environment(&self) -> bool {
        use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
        matches!(self, DocumentError::Read { source, .. }
            if !matches!(source.kind(), NotFound | IsADirectory | NotADirectory | InvalidInput))
    }
}

/// Lines are shown whole up to so many characters.
const LONGEST_LINE: usize = 120;
/// Of longer ones, so many characters before and after the place.
const BEFORE: usize = 50;
const AFTER: usize = 60;
const CUT: &str = "…";

/// One line of the text, as shown.
#[derive(Clone, Debug)]
struct Excerpt {
    line: usize,
    text: String,
    span: Range<usize>,
    label: Option<String>,
}

impl Excerpt {
    fn new(text: &str, span: Range<usize>, label: Option<&str>) -> Excerpt {
        let start = floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let line = text[line_start..line_end].trim_end_matches('\r');
        // A place that goes on in the next line is underlined to the end of its first.
        let from = (start - line_start).min(line.len());
        let to = floor(line, (span.end.max(start) - line_start).min(line.len())).max(from);
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

/// The line, or what is around `from..to` of a long one, and where that is in it.
fn shortened(line: &str, from: usize, to: usize) -> (String, usize, usize) {
    // As many bytes as characters at least: most lines need no counting.
    if line.len() <= LONGEST_LINE || line.chars().count() <= LONGEST_LINE {
        return (line.to_string(), from, to);
    }
    let begin = line[..from].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let end = line[from..].char_indices().nth(AFTER).map_or(line.len(), |(at, _)| from + at);
    let mut cut = String::new();
    if begin > 0 {
        cut.push_str(CUT);
    }
    let shift = cut.len();
    cut.push_str(&line[begin..end]);
    if end < line.len() {
        cut.push_str(CUT);
    }
    (cut, from - begin + shift, to.min(end) - begin + shift)
}

/// Line and column of a byte, from 1, the column in characters.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..floor(text, at)];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The nearest place at or before `at` where a character begins.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// A text in quotes, its middle left out if it is long.
pub(crate) fn quoted(text: &str) -> String {
    const LONG: usize = 60;
    if text.chars().count() <= LONG {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(LONG - 20).collect();
    let tail: String = text.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{:?}", format!("{head}{CUT}{tail}"))
}
