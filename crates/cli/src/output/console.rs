//! Printing: results on standard output, everything else on standard error. No other module prints.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::arguments::{Common, Format};
use crate::failure::Failure;

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

    /// Prints an error, also if the user asked for quiet. A failure to print it is ignored.
    pub(crate) fn error(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Formats a value as indented JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|e| Failure::Environment(e.to_string()))
}
