//! What is asked of the running agent.

use std::io::ErrorKind;
use std::path::Path;

use evenhand_agent::{Status, request};
use evenhand_documents::did_you_mean;

use crate::console::Console;
use crate::failure::Failure;

/// What the running agent says of itself.
pub(crate) fn status(socket: &Path) -> Result<Status, Failure> {
    let answer = request(socket, "status").map_err(|e| silent(socket, &e))?;
    serde_json::from_str(&answer).map_err(|e| {
        Failure::Environment(format!("{}: the answer is not a status of this version: {e}", socket.display()))
    })
}

pub(super) fn silent(socket: &Path, error: &std::io::Error) -> Failure {
    let why = match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => "no agent answers there; is it running?".to_owned(),
        ErrorKind::PermissionDenied => "you may not ask there; root and the socket's group may".to_owned(),
        _ => error.to_string(),
    };
    Failure::Environment(format!("{}: {why}", socket.display()))
}

pub(super) fn why(socket: &Path, user: &str, console: &Console) -> Result<(), Failure> {
    let status = status(socket)?;
    let Some(text) = status.why(user) else {
        let near = did_you_mean(user, status.users.iter().map(|user| user.name.as_str()));
        return Err(Failure::Input(format!("found {user:?}, expected a user who has guests on some node{near}")));
    };
    if console.is_json() {
        let of = status.users.iter().find(|of| of.name == user);
        let guests: Vec<_> = status.workloads.iter().filter(|guest| guest.owner == user).collect();
        return console.json(&serde_json::json!({ "user": of, "guests": guests, "why": text }));
    }
    console.result(&text)
}
