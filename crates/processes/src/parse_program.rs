//! Parses `.prog` files, exactly the language of Zeldes and Feitelson (2013), Figure 1.
//!
//! ```text
//! file  = "# Priority:" NL NUMBER NL "# Requests:" NL { phase } ;
//! phase = "loop" COUNT NL { RESOURCE MEAN WIDTH ("NORM" | "UNIF" | "EXP") NL } ;
//! ```
//!
//! Times are in seconds. Empty lines are ignored, and so is a `#` that does not begin one of the two headings, with the
//! rest of its line.

use std::ops::Range;
use std::path::Path;

use evenhand_documents::{DocumentError, Source, did_you_mean, positive};
use evenhand_model::{Quantity, Span};

use crate::program::{Distribution, Phase, Program, Step};

const PRIORITY: &str = "# Priority:";
const REQUESTS: &str = "# Requests:";
const LOOP: &str = "loop";
/// Longest service, in nanoseconds: 2^53, about 104 days.
pub(crate) const LONGEST: u128 = 1 << 53;
/// Largest number of iterations of one phase; a hundred times more than any run has events.
const MAX_ITERATIONS: u64 = 1_000_000_000_000;

impl Program {
    /// Reads a `.prog` file, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not in the language; the error gives line, column, what was
    /// found and what was expected.
    pub fn read(path: &Path) -> Result<Program, DocumentError> {
        Program::of(&Source::read(path)?)
    }

    /// Parses a text; errors refer to it by `name`.
    ///
    /// # Errors
    /// Returns an error if the text is not in the language.
    pub fn parse(name: &str, text: &str) -> Result<Program, DocumentError> {
        Program::of(&Source::new(name, text))
    }

    /// Parses a source.
    ///
    /// # Errors
    /// Returns an error if the source is not in the language.
    pub fn of(source: &Source) -> Result<Program, DocumentError> {
        let mut lines = Lines { source, at: 0 };
        lines.heading(PRIORITY)?;
        let priority = lines.priority()?;
        lines.heading(REQUESTS)?;
        let mut phases: Vec<Phase> = Vec::new();
        let mut last_loop = 0..0;
        while let Some(line) = lines.next() {
            let mut words = Words { source, line: line.clone(), at: line.start };
            let first = words.next();
            if &source.text()[first.clone()] == LOOP {
                no_empty_phase(source, &phases, &last_loop)?;
                last_loop = first;
                phases.push(Phase { iterations: words.count()?, steps: Vec::new() });
            } else {
                let Some(phase) = phases.last_mut() else {
                    let found = &source.text()[first.clone()];
                    let problem = format!(
                        "found {found:?}, expected \"loop COUNT\" before the first request{}",
                        did_you_mean(found, [LOOP])
                    );
                    return Err(source.error(first, problem));
                };
                phase.steps.push(words.step(first)?);
            }
            words.end()?;
        }
        if phases.is_empty() {
            return Err(lines.end_error("\"loop COUNT\" and requests"));
        }
        no_empty_phase(source, &phases, &last_loop)?;
        Ok(Program { priority, phases })
    }
}

fn no_empty_phase(source: &Source, phases: &[Phase], last_loop: &Range<usize>) -> Result<(), DocumentError> {
    match phases.last() {
        Some(phase) if phase.steps.is_empty() => {
            let problem = "found a loop without requests, expected \"RESOURCE MEAN WIDTH NORM|UNIF|EXP\" after it";
            Err(source.error(last_loop.clone(), problem))
        }
        _ => Ok(()),
    }
}

/// Iterator over the positions of non-empty lines in the text, without comments.
struct Lines<'s> {
    source: &'s Source,
    at: usize,
}

impl Lines<'_> {
    fn next(&mut self) -> Option<Range<usize>> {
        let text = self.source.text();
        while self.at < text.len() {
            let start = self.at;
            let line = text[start..].split('\n').next().unwrap_or("");
            self.at = (start + line.len() + 1).min(text.len());
            // Some editors start a file with a byte order mark.
            let shift = if start == 0 && line.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
            let line = &line[shift..];
            let content = if heading_of(line).is_some() { line } else { line.split('#').next().unwrap_or("") };
            let trimmed = content.trim_start();
            let begin = start + shift + content.len() - trimmed.len();
            if !trimmed.trim_end().is_empty() {
                return Some(begin..begin + trimmed.trim_end().len());
            }
        }
        None
    }

    fn heading(&mut self, expected: &'static str) -> Result<(), DocumentError> {
        let Some(line) = self.next() else { return Err(self.end_error(&format!("{expected:?}"))) };
        let found = &self.source.text()[line.clone()];
        match heading_of(found) {
            Some(heading) if heading == expected => Ok(()),
            _ => Err(self.source.error(line, format!("found {found:?}, expected {expected:?}"))),
        }
    }

    fn priority(&mut self) -> Result<Quantity, DocumentError> {
        let Some(line) = self.next() else { return Err(self.end_error("a priority greater than 0")) };
        positive(&self.source.text()[line.clone()]).map_err(|problem| self.source.error(line, problem))
    }

    fn end_error(&self, expected: &str) -> DocumentError {
        let end = self.source.text().trim_end().len();
        self.source.error(end..end, format!("found the end of the program, expected {expected}"))
    }
}

/// Returns the heading that a line is, with any spaces around its words.
fn heading_of(line: &str) -> Option<&'static str> {
    let word = line.trim().strip_prefix('#')?.trim();
    [PRIORITY, REQUESTS].into_iter().find(|h| h.trim_start_matches(['#', ' ']) == word)
}

/// Words of one line.
struct Words<'s> {
    source: &'s Source,
    line: Range<usize>,
    at: usize,
}

impl Words<'_> {
    /// Returns the position of the next word; empty at the end of the line.
    fn next(&mut self) -> Range<usize> {
        let rest = &self.source.text()[self.at..self.line.end];
        let start = self.at + rest.len() - rest.trim_start().len();
        let word = rest.trim_start().split(char::is_whitespace).next().unwrap_or("");
        self.at = start + word.len();
        start..self.at
    }

    fn error(&self, place: Range<usize>, expected: &str) -> DocumentError {
        let found = &self.source.text()[place.clone()];
        let found = if found.is_empty() { "the end of the line".to_string() } else { format!("{found:?}") };
        self.source.error(place, format!("found {found}, expected {expected}"))
    }

    fn count(&mut self) -> Result<u64, DocumentError> {
        let place = self.next();
        let count = self.source.text()[place.clone()].parse().ok().filter(|n| (1..=MAX_ITERATIONS).contains(n));
        count.ok_or_else(|| {
            self.error(place, &format!("the number of iterations: a whole number from 1 to {MAX_ITERATIONS}"))
        })
    }

    fn step(&mut self, resource: Range<usize>) -> Result<Step, DocumentError> {
        let name = self.source.text()[resource].to_string();
        let mean = self.seconds("the mean service time")?;
        let width = self.seconds("the width (standard deviation or half the range)")?;
        let place = self.next();
        let found = &self.source.text()[place.clone()];
        let Some(distribution) = Distribution::ALL.into_iter().find(|d| d.name() == found) else {
            let upper = found.to_uppercase();
            let near = did_you_mean(&upper, Distribution::ALL.map(Distribution::name));
            return Err(self.error(place, &format!("a distribution: NORM, UNIF or EXP{near}")));
        };
        Ok(Step { resource: name, mean, width, distribution })
    }

    fn seconds(&mut self, what: &str) -> Result<Span, DocumentError> {
        let place = self.next();
        let expected = format!("{what} in seconds, with at most nine decimals and up to {}", LONGEST / 1_000_000_000);
        let quantity = Quantity::parse(&self.source.text()[place.clone()]).ok();
        let nanos = quantity.and_then(|q| q.nano()).filter(|n| *n <= LONGEST);
        nanos.and_then(Span::checked_from_nanos).ok_or_else(|| self.error(place, &expected))
    }

    fn end(&mut self) -> Result<(), DocumentError> {
        let place = self.next();
        if place.is_empty() { Ok(()) } else { Err(self.error(place.start..self.line.end, "the end of the line")) }
    }
}
