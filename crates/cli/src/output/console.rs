//! Printing: results on standard output, everything else on standard error. No other module prints. A command that a host
//! runs in its own process prints into memory instead.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::arguments::{Common, Format};
use crate::failure::Failure;
use crate::host::{Captured, Host};

/// Output of one command, and the way to stop it.
pub(crate) struct Console {
    format: Format,
    quiet: bool,
    /// The command line that repeats it.
    command: String,
    /// The host that runs the command, and what the command printed; `None`: the process is the command.
    hosted: Option<(Host, Arc<Mutex<Captured>>)>,
}

impl Console {
    /// Returns the console for these options. The default format is a table, also if standard output is no terminal.
    ///
    /// `arguments` are the command line, of which the first is the program's name.
    pub(crate) fn new(common: &Common, arguments: &[OsString]) -> Console {
        let format = common.format.unwrap_or(Format::Table);
        Console { format, quiet: common.quiet, command: command_line(arguments), hosted: None }
    }

    /// Returns the console of a command that `host` runs: it prints into memory.
    pub(crate) fn hosted(common: &Common, arguments: &[OsString], host: &Host) -> Console {
        Console { hosted: Some((host.clone(), Arc::default())), ..Console::new(common, arguments) }
    }

    /// Returns the command line, quoted for a shell where necessary, with the program's name instead of its path.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// Returns the host, if the command has one.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.hosted.as_ref().map(|(host, _)| host)
    }

    /// Returns a console with other options for a part of the same command.
    #[cfg(feature = "slurm")]
    pub(crate) fn with_options(&self, common: &Common) -> Console {
        Console { command: self.command.clone(), hosted: self.hosted.clone(), ..Console::new(common, &[]) }
    }

    /// Takes what the command printed into memory so far.
    pub(crate) fn take_captured(&self) -> Captured {
        match &self.hosted {
            Some((_, captured)) => std::mem::take(&mut *captured.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Captured::default(),
        }
    }

    /// Calls `stop` at the first interrupt: Ctrl-C, or the host's. In a process of its own, the second Ctrl-C ends the
    /// process at once, with status 3.
    pub(crate) fn stop_on_interrupt(&self, stop: impl Fn() + Send + Sync + 'static) -> Result<(), Failure> {
        if let Some(host) = self.host() {
            host.on_interrupt(stop);
            return Ok(());
        }
        let mut interrupted = false;
        ctrlc::set_handler(move || {
            if std::mem::replace(&mut interrupted, true) {
                std::process::exit(3);
            }
            stop();
        })
        .map_err(|e| Failure::Environment(format!("cannot listen for Ctrl-C: {e}")))
    }

    /// Returns whether results are printed as one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns whether progress is drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        self.hosted.is_none() && !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a result. A reader that closes the pipe early (`| head`) is no error.
    pub(crate) fn result(&self, text: &str) -> Result<(), Failure> {
        self.result_bytes(format!("{text}\n").as_bytes())
    }

    /// Prints bytes of a result as they are.
    pub(crate) fn result_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some((_, captured)) = &self.hosted {
            captured.lock().unwrap_or_else(PoisonError::into_inner).output.extend_from_slice(bytes);
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
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
        if self.quiet {
            return;
        }
        match &self.hosted {
            Some((_, captured)) => {
                captured.lock().unwrap_or_else(PoisonError::into_inner).notes.push(text.to_string());
            }
            None => self.error(text),
        }
    }

    /// Prints an error, also if the user asked for quiet. A failure to print it is ignored.
    pub(crate) fn error(&self, text: &str) {
        match &self.hosted {
            Some((_, captured)) => {
                captured.lock().unwrap_or_else(PoisonError::into_inner).error = Some(text.to_string());
            }
            None => _ = writeln!(io::stderr().lock(), "{text}"),
        }
    }
}

/// Formats a value as indented JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|e| Failure::Environment(e.to_string()))
}

/// Returns the command line, quoted for a shell where necessary, with the program's name instead of its path.
fn command_line(arguments: &[OsString]) -> String {
    let quoted = |argument: &OsString| {
        let argument = argument.to_string_lossy().into_owned();
        let is_safe = |c: char| c.is_alphanumeric() || "-_./,=:+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(is_safe) {
            return argument;
        }
        format!("'{}'", argument.replace('\'', "'\\''"))
    };
    let arguments = arguments.iter().skip(1).map(quoted);
    std::iter::once("evenhand".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}
