//! `evenhand agent release`

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use evenhand_agent::{
    AgentPlaces, EXIT_LIMIT, Journal, JournalError, Released, RestoreError, TrustError, request_within,
    restore_entries, restore_journal,
};
use evenhand_enforcers::cgroups::SystemRoot;
use evenhand_model::counted;
use serde::Deserialize;

use super::query_status::no_answer;
use super::read_configuration;
use super::run::released_sentence;
use crate::arguments::{AGENT_CONFIGURATION, AgentReleaseArgs};
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

pub(super) fn run(args: &AgentReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    if let Some(journal) = &args.from_journal {
        return from_damaged_journal(journal, console);
    }
    let AgentPlaces { state, socket, left_out } = AgentPlaces::read(&args.config, std::env::vars_os());
    // A default may be the place of another agent, which only the usual configuration means.
    if let Some(why) = left_out.first().filter(|_| args.config != Path::new(AGENT_CONFIGURATION)) {
        return Err(Failure::Input(format!(
            "{why}; so it is not known where this agent keeps its state, and nothing was changed. Correct it, or restore by the \
             agent's journal: evenhand agent release --from-journal FILE"
        )));
    }
    let wrong = match left_out.is_empty() {
        true => read_configuration(&args.config).err().map(|failure| failure.plain_text()),
        false => None,
    };
    for problem in left_out.iter().chain(&wrong) {
        let first = problem.lines().next().unwrap_or_default();
        console.note(&format!("{first}; uses {} and {} nevertheless.", state.display(), socket.display()));
    }
    match request_within(&socket, "release", ANSWER_LIMIT) {
        Ok(answer) => return outcome(answer.trim(), &socket, console),
        // Without an agent, the journal has what is to be restored.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
        Err(error) => return Err(no_answer(&socket, &error)),
    }
    let journal = Journal::path_in(&state);
    if !journal.exists() {
        return Err(Failure::Input(format!("{}: no such file; nothing was changed", journal.display())));
    }
    report(&restore_journal(&journal, &SystemRoot::default()).map_err(restore_failure)?, console)
}

/// The time for the answer of a running agent, which ends its update, restores everything, and then answers.
pub(super) const ANSWER_LIMIT: Duration = EXIT_LIMIT.saturating_add(Duration::from_secs(5));

/// The answer of an agent that did not restore everything; otherwise it is a sentence.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    /// What it restored, and what it could not.
    failed: Option<String>,
    /// Why it restored nothing yet.
    error: Option<String>,
}

/// Prints the answer of a running agent.
fn outcome(answer: &str, socket: &Path, console: &Console) -> Result<Outcome, Failure> {
    match serde_json::from_str(answer).unwrap_or_default() {
        Answer { error: Some(error), .. } => Err(Failure::Environment(format!("{}: {error}", socket.display()))),
        Answer { failed: Some(failed), .. } => {
            if console.is_json() {
                print(&failed, false, console)?;
            } else {
                console.error(&failed);
            }
            Ok(Outcome::DoesNotHold)
        }
        Answer { failed: None, error: None } => print(answer, true, console).map(|()| Outcome::Done),
    }
}

/// Prints what was done: a sentence, or a record with it. `complete`: nothing is left to restore.
fn print(message: &str, complete: bool, console: &Console) -> Result<(), Failure> {
    if console.is_json() {
        return console.json(&serde_json::json!({ "complete": complete, "message": message }));
    }
    console.result(message)
}

/// Restores what can be read of a journal, which may be damaged and stays as it is.
fn from_damaged_journal(journal: &Path, console: &Console) -> Result<Outcome, Failure> {
    let path = journal.display();
    let salvaged = Journal::salvage(journal).map_err(|error| match &error {
        JournalError::Read { source, .. } if source.kind() == ErrorKind::NotFound => {
            Failure::Input(format!("{path}: no such file; nothing was changed"))
        }
        JournalError::Trust(_) => Failure::input(error),
        _ => environment(error),
    })?;
    let count = salvaged.entries.len();
    if count == 0 && salvaged.is_whole {
        let message = format!("{path} is a whole journal without values of groups: there is nothing to restore.");
        print(&message, true, console)?;
        return Ok(Outcome::Done);
    }
    // Another file must not look like a journal whose groups are all restored.
    if count == 0 {
        return Err(Failure::Input(format!(
            "{path}: found no values of groups, expected a journal of the agent, such as /var/lib/evenhand/agent.redb; nothing was \
             changed. If this is the journal, nothing of it can be read: move it away, and the agent begins a new one"
        )));
    }
    let groups = counted(count, "group", "groups");
    console.note(&if salvaged.is_whole {
        format!("{path} is whole, with the values of {groups}.")
    } else {
        format!(
            "{path} is damaged; found the values of {groups} in it, perhaps not of all, or of some restored before."
        )
    });
    report(&restore_entries(&salvaged.entries, journal, &SystemRoot::default()).map_err(restore_failure)?, console)
}

/// Prints what was restored, and what was not.
fn report(released: &Released, console: &Console) -> Result<Outcome, Failure> {
    let complete = released.failed.is_empty();
    if console.is_json() {
        print(&released_sentence(released), complete, console)?;
    } else {
        console.result(&released_sentence(&Released { groups: released.groups, ..Released::default() }))?;
        released.failed.iter().for_each(|failed| console.error(failed));
    }
    Ok(if complete { Outcome::Done } else { Outcome::DoesNotHold })
}

fn environment(error: impl Display) -> Failure {
    Failure::Environment(error.to_string())
}

fn restore_failure(error: RestoreError) -> Failure {
    match error {
        RestoreError::Trust(TrustError::Read { .. }) => environment(error),
        RestoreError::Trust(_) | RestoreError::Journal(JournalError::Trust(_)) => Failure::input(error),
        other => environment(other),
    }
}
