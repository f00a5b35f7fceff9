//! `evenhand agent release`

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use evenhand_agent::{Configuration, EXIT_LIMIT, Journal, JournalError, assemble, request_within};
use evenhand_enforcers::cgroups::SystemRoot;
use evenhand_model::counted;
use serde::Deserialize;

use super::query_status::no_answer;
use super::{assemble_failure, read_configuration};
use crate::arguments::AgentReleaseArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

pub(super) fn run(args: &AgentReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    let (configuration, sources) = read_configuration(&args.config)?;
    sources.check_trusted().map_err(Failure::input)?;
    if let Some(journal) = &args.from_journal {
        return from_damaged_journal(journal, configuration, console);
    }
    let socket = &configuration.node.socket;
    match request_within(socket, "release", ANSWER_LIMIT) {
        Ok(answer) => return outcome(answer.trim(), socket, console),
        // Without an agent, the journal has what is to be restored.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
        Err(error) => return Err(no_answer(socket, &error)),
    }
    let state = configuration.node.state.join("agent.redb");
    if !state.exists() {
        return Err(Failure::Input(format!("{}: no such file; nothing was changed", state.display())));
    }
    restore(configuration, console)
}

/// The time for the answer of a running agent, which ends its update, restores everything, and then answers.
const ANSWER_LIMIT: Duration = EXIT_LIMIT.saturating_add(Duration::from_secs(5));

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
            console.error(&failed);
            Ok(Outcome::DoesNotHold)
        }
        Answer { failed: None, error: None } => console.result(answer).map(|()| Outcome::Done),
    }
}

/// Restores what can be read of a damaged journal, by a new journal beside it.
fn from_damaged_journal(
    journal: &Path,
    mut configuration: Configuration,
    console: &Console,
) -> Result<Outcome, Failure> {
    let environment = |error: &dyn std::fmt::Display| Failure::Environment(error.to_string());
    let path = journal.display();
    let salvaged = Journal::salvage(journal).map_err(|error| match &error {
        JournalError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Failure::Input(format!("{path}: no such file; nothing was changed"))
        }
        _ => environment(&error),
    })?;
    let count = salvaged.entries.len();
    if count == 0 && salvaged.is_whole {
        console.result(&format!("{path} is a whole journal without values of groups: there is nothing to restore."))?;
        return Ok(Outcome::Done);
    }
    // Another file must not look like a journal whose groups are all restored.
    if count == 0 {
        let usual = configuration.node.state.join("agent.redb");
        return Err(Failure::Input(format!(
            "{path}: found no values of groups, expected a journal of the agent, such as {}; nothing was changed. If this is the \
             journal, nothing of it can be read: move it away, and the agent begins a new one",
            usual.display()
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
    let folder = configuration.node.state.join("recovery");
    std::fs::create_dir_all(&folder).map_err(|error| environment(&format!("{}: {error}", folder.display())))?;
    let recovered = Journal::open(&folder.join("agent.redb")).map_err(|error| environment(&error))?;
    recovered.put(&salvaged.entries).map_err(|error| environment(&error))?;
    drop(recovered);
    configuration.node.state.clone_from(&folder);
    let outcome = restore(configuration, console)?;
    if outcome == Outcome::Done {
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ok(outcome)
}

/// Restores what the journal in the state folder contains.
fn restore(mut configuration: Configuration, console: &Console) -> Result<Outcome, Failure> {
    // Restoring needs no exchange with other nodes.
    configuration.peers = None;
    let mut assembly = assemble(configuration, true, &SystemRoot::default()).map_err(assemble_failure)?;
    let released = assembly.agent.release();
    let groups = counted(released.groups, "group has its", "groups have their");
    console.result(&format!("{groups} old values again."))?;
    released.failed.iter().for_each(|failed| console.error(failed));
    Ok(if released.failed.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}
