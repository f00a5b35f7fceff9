//! The waiting job that a user asks about.

use evenhand_slurm::{Job, JobState, Queue};

use crate::failure::Failure;

/// Finds the record of the queue that waits under a job's number: of an array or a heterogeneous job the first that waits.
pub(super) fn waiting_record(queue: &Queue, text: &str) -> Result<usize, Failure> {
    let number = job_number(text)?;
    let of = |job: &Job| {
        let array = job.array.as_ref().map(|array| array.job);
        let heterogeneous = job.heterogeneous.map(|part| part.job);
        job.id == number || array == Some(number) || heterogeneous == Some(number)
    };
    let records: Vec<usize> = (0..queue.jobs.len()).filter(|&at| of(&queue.jobs[at])).collect();
    let waiting = records.iter().copied().find(|&at| queue.jobs[at].state == JobState::Pending);
    waiting.ok_or_else(|| {
        Failure::Input(match records.first() {
            Some(&at) => {
                let state = queue.jobs[at].state.name();
                format!("JOB: job {number} does not wait: Slurm calls it {state}; expected a job that waits")
            }
            None => format!(
                "JOB: squeue shows no job {number}; it has ended or never was, or the site's PrivateData hides it; expected a job that waits, see \
                 squeue --me"
            ),
        })
    })
}

/// Parses `7`, `7_3`, `7_[1-9]` and `7+1` to 7.
fn job_number(text: &str) -> Result<u64, Failure> {
    let digits = text.split(['_', '+']).next().unwrap_or(text);
    digits.parse().map_err(|_| {
        Failure::Input(format!(
            "JOB: found {text:?}, expected a job's number, such as 7, 7_3 of an array, or 7+1 of a heterogeneous job"
        ))
    })
}

/// Returns the name of the user who runs the program.
pub(super) fn caller() -> Result<String, Failure> {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    named.ok_or_else(|| Failure::Input("me: neither USER nor LOGNAME is set; expected the name of a user".into()))
}
