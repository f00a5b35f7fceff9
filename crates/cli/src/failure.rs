//! Why a command failed, as a sentence and an exit status.

use std::io::IsTerminal;
use std::process::ExitCode;

use evenhand_documents::{DocumentError, did_you_mean};
use thiserror::Error;

/// How a verb ended that did what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// And there is nothing to complain of: status 0.
    Done,
    /// And what was asked about does not hold: status 1.
    DoesNotHold,
}

impl Outcome {
    /// As promised in the interface.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::DoesNotHold => ExitCode::from(1),
        }
    }
}

/// What a verb fails with. The text is for people and complete: file, line, what, remedy.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The input or the command line is wrong: status 2.
    #[error("{0}")]
    Input(String),
    /// The environment failed (permission, disk, engine), or the user interrupted: status 3.
    #[error("{0}")]
    Environment(String),
}

impl Failure {
    /// From an error that knows whose fault it is.
    pub(crate) fn new(error: impl std::fmt::Display, environment: bool) -> Failure {
        if environment { Failure::Environment(error.to_string()) } else { Failure::Input(error.to_string()) }
    }

    /// From an input error.
    pub(crate) fn input(error: impl std::fmt::Display) -> Failure {
        Failure::new(error, false)
    }

    /// That an option names what is not there.
    pub(crate) fn unknown<'a>(option: &str, found: &str, known: impl IntoIterator<Item = &'a str>) -> Failure {
        let known: Vec<&str> = known.into_iter().collect();
        let near = did_you_mean(found, known.iter().copied());
        Failure::Input(format!("{option}: found {found:?}, expected one of: {}{near}", known.join(", ")))
    }

    /// From a document that cannot be read or says something else; in colours on a terminal.
    pub(crate) fn document(error: DocumentError) -> Failure {
        let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Failure::new(error.render(colours), error.is_environment())
    }

    /// As promised in the interface.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Input(_) => 2,
            Failure::Environment(_) => 3,
        })
    }
}
