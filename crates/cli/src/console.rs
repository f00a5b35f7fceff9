//! The one place that prints: results on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::args::{Common, Format};
use crate::failure::Failure;

/// Where output goes.
pub(crate) struct Console {
    format: Format,
    quiet: bool,
}

impl Console {
    /// As the user asked; without `--format`, tables on a terminal and everywhere else too (JSON is
    /// asked for).
    pub(crate) fn new(common: &Common) -> Console {
        Console { format: common.format.unwrap_or(Format::Table), quiet: common.quiet }
    }

    /// Whether results are one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether progress may be drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a result. A reader that went away (`| head`) is no error.
    pub(crate) fn result(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Environment(format!("cannot write to standard output: {e}")))
            }
            _ => Ok(()),
        }
    }

    /// Prints a result as the one JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.result(&json(value)?)
    }

    /// Tells something by the way.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// Says what went wrong, quiet or not; if even that fails there is nobody to tell.
    pub(crate) fn complain(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// A JSON document for people to read too.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|e| Failure::Environment(e.to_string()))
}
