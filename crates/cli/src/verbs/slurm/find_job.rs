//! The waiting job that a user asks about, and the user who asks.

use evenhand_slurm::Queue;

use crate::failure::Failure;

/// Finds the record of the queue that waits under a job's number.
pub(super) fn waiting_record(queue: &Queue, text: &str) -> Result<usize, Failure> {
    queue.find_waiting(text).map_err(|error| Failure::Input(format!("JOB: {error}")))
}

/// Returns the name of the user who runs the program.
pub(super) fn caller() -> Result<String, Failure> {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    named.ok_or_else(|| Failure::Input("me: neither USER nor LOGNAME is set; expected the name of a user".into()))
}
