//! Outcomes and failures of verbs, with their exit statuses.

use std::io::IsTerminal;

use evenhand_documents::{DocumentError, did_you_mean};
use thiserror::Error;

use crate::output::console::colours_are_wanted;

/// Outcome of a verb that did what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The answer is positive, or there is none: status 0.
    Done,
    /// The answer is negative, such as an audit with findings: status 1.
    #[cfg(feature = "analysis")]
    DoesNotHold,
}

impl Outcome {
    /// Returns the documented exit status.
    pub(crate) fn status(self) -> u8 {
        match self {
            Outcome::Done => 0,
            #[cfg(feature = "analysis")]
            Outcome::DoesNotHold => 1,
        }
    }
}

/// Failure of a verb. The text is a complete sentence for people: file, line, what was found, what was expected.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The input or the command line is invalid: status 2.
    #[error("{0}")]
    Input(String),
    /// The environment failed (permission, disk, engine), or the user interrupted: status 3.
    #[error("{0}")]
    Environment(String),
    /// A document cannot be read or is invalid. The text shows its lines, in colours on a terminal.
    #[error("{}", error.render(*colours))]
    Document { error: Box<DocumentError>, colours: bool },
}

impl Failure {
    /// Refuses options that apply only beside another one, which is not there; each with whether it is given.
    ///
    /// clap drops what an option requires where that conflicts with an argument that is present.
    #[cfg(feature = "analysis")]
    pub(crate) fn refuse_without(needed: &str, options: &[(&str, bool)]) -> Result<(), Failure> {
        match options.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => {
                Err(Failure::Input(format!("{option}: applies to {needed} only; give {needed}, or leave {option} out")))
            }
        }
    }

    /// Returns the failure for an error of the environment or of the input.
    pub(crate) fn new(error: impl std::fmt::Display, environment: bool) -> Failure {
        if environment { Failure::Environment(error.to_string()) } else { Failure::Input(error.to_string()) }
    }

    /// Returns the failure for an error of the input.
    pub(crate) fn input(error: impl std::fmt::Display) -> Failure {
        Failure::new(error, false)
    }

    /// Returns the failure for an option whose value is none of `known`.
    pub(crate) fn unknown<'a>(option: &str, found: &str, known: impl IntoIterator<Item = &'a str>) -> Failure {
        let known: Vec<&str> = known.into_iter().collect();
        let near = did_you_mean(found, known.iter().copied());
        Failure::Input(format!("{option}: found {found:?}, expected one of: {}{near}", known.join(", ")))
    }

    /// Returns the failure for a document that cannot be read or is invalid; in colours on a terminal.
    pub(crate) fn document(error: DocumentError) -> Failure {
        let colours = std::io::stderr().is_terminal() && colours_are_wanted();
        Failure::Document { error: Box::new(error), colours }
    }

    /// Returns the text without colours.
    #[cfg(feature = "agent")]
    pub(crate) fn plain_text(&self) -> String {
        match self {
            Failure::Document { error, .. } => error.render(false),
            other => other.to_string(),
        }
    }

    /// Returns the documented exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::Environment(_) => 3,
            Failure::Document { error, .. } => {
                if error.is_environment() {
                    3
                } else {
                    2
                }
            }
        }
    }
}
