//! The waiting job that a user asks about, and the user who asks.

use evenhand_slurm::{NotWaiting, Queue};

use crate::failure::Failure;

/// Finds the record of the queue that waits under a job's number.
pub(super) fn waiting_record(queue: &Queue, text: &str) -> Result<usize, Failure> {
    queue.find_waiting(text).map_err(|error| Failure::Input(format!("JOB: {error}")))
}

/// Refuses a text that is no job's number, before Slurm is asked.
pub(super) fn check_number(text: &str) -> Result<(), Failure> {
    match Queue::default().records_of(text) {
        Err(error @ NotWaiting::NoNumber { .. }) => Err(Failure::Input(format!("JOB: {error}"))),
        _ => Ok(()),
    }
}

/// Returns the name of the user who runs the program, for an argument with the remedy where it is not known.
pub(super) fn caller(argument: &str, remedy: &str) -> Result<String, Failure> {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    named.ok_or_else(|| {
        Failure::Input(format!("{argument}: neither USER nor LOGNAME is set, which name the caller; {remedy}"))
    })
}
