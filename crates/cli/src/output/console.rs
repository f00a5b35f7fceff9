//! Printing: results on standard output, everything else on standard error. No other module prints.
//!
//! Text from files and from other machines may hold sequences that control a terminal. All of them pass here, where only
//! line ends are printed as they are.

use std::io::{self, IsTerminal, Write};

use evenhand_model::printable::{is_control, printable_lines};
use serde::Serialize;

use crate::arguments::{Common, Format};
use crate::failure::Failure;
use crate::output::fold_lines::fold_lines;

/// Output of one command.
pub(crate) struct Console {
    format: Format,
    quiet: bool,
}

impl Console {
    /// Returns the console for these options. The default format is a table, also if standard output is no terminal.
    pub(crate) fn new(common: &Common) -> Console {
        Console { format: common.format.unwrap_or(Format::Table), quiet: common.quiet }
    }

    /// Returns whether results are printed as one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns whether progress is drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a result. A reader that closes the pipe early (`| head`) is no error.
    pub(crate) fn result(&self, text: &str) -> Result<(), Failure> {
        let text = if self.is_json() { printable_json(text.to_string()) } else { printable_lines(text).into_owned() };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Environment(format!("cannot write to standard output: {e}")))
            }
            _ => Ok(()),
        }
    }

    /// Prints a result as JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.result(&to_json(value)?)
    }

    /// Prints a note, unless the user asked for quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.error(text);
        }
    }

    /// Prints an error, also if the user asked for quiet. A failure to print it is ignored. On a terminal, long lines are
    /// folded between words; in a file a message stays one line, which programs can search.
    pub(crate) fn error(&self, text: &str) {
        let text = printable_lines(text);
        let mut err = io::stderr().lock();
        let _ = match err.is_terminal() {
            true => writeln!(err, "{}", fold_lines(&text, LONG, "  ")),
            false => writeln!(err, "{text}"),
        };
    }

    /// Prints why a verb failed.
    pub(crate) fn failure(&self, failure: &Failure) {
        match failure {
            // Its colours are control sequences, and its text is safe to print already.
            Failure::Document { rendered, .. } => {
                let _ = writeln!(io::stderr().lock(), "error: {rendered}");
            }
            Failure::Input(_) | Failure::Environment(_) => self.error(&format!("error: {failure}")),
        }
    }
}

/// The length from which a line of a message is folded.
const LONG: usize = 200;

/// Formats a value as indented JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(printable_json).map_err(|e| Failure::Environment(e.to_string()))
}

/// Escapes the control characters of a JSON document that JSON itself leaves as they are. The document stays the same.
fn printable_json(json: String) -> String {
    let is_escaped = |c: char| c != '\n' && is_control(c);
    if !json.contains(is_escaped) {
        return json;
    }
    let mut escaped = String::new();
    for c in json.chars() {
        if is_escaped(c) { escaped += &format!("\\u{:04x}", u32::from(c)) } else { escaped.push(c) }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_printed_without_control_characters_and_means_the_same() {
        let name = "\u{1b}[2J\u{9b}\u{7f}\u{202e}\n\"é\\";
        let text = to_json(&name).unwrap();
        assert!(!text.contains(is_control), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
