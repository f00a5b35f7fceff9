//! `evenhand agent reload`

use std::path::Path;

use evenhand_agent::request_within;
use serde::Deserialize;

use super::query_status::no_answer;
use super::release::ANSWER_LIMIT;
use crate::failure::Failure;
use crate::output::console::Console;

/// The answer of the agent.
#[derive(Debug, Deserialize)]
struct Answer {
    /// The configuration that it reads.
    reloading: Option<String>,
    /// Why it goes on as it was.
    error: Option<String>,
}

pub(super) fn run(socket: &Path, console: &Console) -> Result<(), Failure> {
    let answer = request_within(socket, "reload", ANSWER_LIMIT).map_err(|error| no_answer(socket, &error))?;
    let Answer { reloading, error } = serde_json::from_str(&answer).map_err(|error| {
        Failure::Environment(format!("{}: the answer is not one of this version: {error}", socket.display()))
    })?;
    match (reloading, error) {
        (Some(_), _) if console.is_json() => console.result(answer.trim()),
        (Some(file), _) => console.result(&format!("The agent starts anew with {file}.")),
        (None, Some(error)) => Err(Failure::Input(error)),
        (None, None) => Err(Failure::Environment(format!("{}: the answer is empty", socket.display()))),
    }
}
