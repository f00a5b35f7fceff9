//! Queries of the running agent at its control socket.

use std::io::ErrorKind;
use std::path::Path;

use evenhand_agent::{Status, request};

use crate::failure::Failure;

/// Returns the status of the running agent.
pub(crate) fn query_status(socket: &Path) -> Result<Status, Failure> {
    let answer = request(socket, "status").map_err(|e| no_answer(socket, &e))?;
    serde_json::from_str(&answer).map_err(|e| {
        Failure::Environment(format!("{}: the answer is not a status of this version: {e}", socket.display()))
    })
}

/// Returns the failure for an agent that does not answer.
pub(super) fn no_answer(socket: &Path, error: &std::io::Error) -> Failure {
    let why = match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            "no agent answers at this socket; is it running?".to_owned()
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            "the agent does not answer; it is stopped, or other clients keep its socket busy".to_owned()
        }
        ErrorKind::PermissionDenied => "no permission for this socket; only root and its group have it".to_owned(),
        _ => error.to_string(),
    };
    Failure::Environment(format!("{}: {why}", socket.display()))
}
