//! Where a submitted sweep stands, and stopping it.

use super::SlurmError;
use super::command::{Queued, queue, run};
use super::submit::{Submission, name_of};
use crate::sweep::folder::{Folder, SweepError};
use crate::sweep::grid::Grid;
use crate::sweep::point::Point;

/// Where a sweep stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How many points there are.
    pub points: usize,
    /// How many have a result.
    pub done: usize,
    /// Jobs that were submitted last, the one that gathers last; empty if it was never submitted.
    pub jobs: Vec<u64>,
    /// Tasks of arrays that run.
    pub running: usize,
    /// Tasks of arrays that wait, and why, in Slurm's words.
    pub waiting: usize,
    /// Why they wait.
    pub reason: Option<String>,
    /// The state of the job that gathers, if it is in the queue.
    pub gather: Option<String>,
}

impl Status {
    /// Whether something of it is in the queue.
    pub fn is_under_way(&self) -> bool {
        self.running + self.waiting > 0 || self.gather.is_some()
    }
}

/// A point without a result, and what is known of why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPoint {
    /// Its number.
    pub point: usize,
    /// Its axes in words.
    pub axes: String,
    /// The task that should have run it (`42_3`), if it was submitted.
    pub task: Option<String>,
    /// The last thing that task said, if it said anything.
    pub said: Option<String>,
}

/// Where a sweep stands.
///
/// # Errors
/// If what was submitted cannot be read, or Slurm cannot be asked.
pub fn status(folder: &Folder, digests: &[String]) -> Result<Status, SlurmError> {
    let mut status = Status { points: digests.len(), done: folder.done(digests), ..Status::default() };
    let Some(submission) = Submission::read(folder)? else { return Ok(status) };
    status.jobs = submission.jobs();
    for Queued { job, tasks, state, reason } in queue(&name_of(folder))? {
        if Some(job) == submission.gather {
            status.gather = Some(state);
        } else if state == "PENDING" {
            status.waiting += tasks;
            status.reason = Some(reason);
        } else {
            status.running += tasks;
        }
    }
    Ok(status)
}

impl LostPoint {
    /// The points without a result, and what their tasks said.
    ///
    /// # Errors
    /// If what was submitted cannot be read.
    pub fn all(
        folder: &Folder,
        grid: &Grid,
        points: &[Point],
        digests: &[String],
    ) -> Result<Vec<LostPoint>, SweepError> {
        let submission = Submission::read(folder)?.unwrap_or_default();
        let lost = |number: usize| {
            let task = submission.task_of(number);
            let said = task.as_ref().and_then(|(_, log)| {
                let text = std::fs::read(folder.dir().join(log)).ok()?;
                last_words(&String::from_utf8_lossy(&text))
            });
            LostPoint { point: number, axes: points[number].describe(grid), task: task.map(|(task, _)| task), said }
        };
        Ok(folder.missing(digests).into_iter().filter(|n| *n < points.len()).map(lost).collect())
    }
}

/// Why a task ended: what Slurm says of it (cancelled, out of time or memory), else its own last line.
fn last_words(log: &str) -> Option<String> {
    let lines = || log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // slurmstepd: error: …, or slurmstepd-NODE: error: … where a machine has several.
    let slurm = lines().filter(|line| line.starts_with("slurmstepd")).find_map(|line| line.split_once(": error: "));
    let slurm = slurm.map(|(_, said)| said);
    slurm.or_else(|| lines().next()).map(String::from)
}

/// Cancels what of a sweep is in the queue, and returns those jobs. Results stay.
///
/// # Errors
/// If Slurm cannot be asked or refuses.
pub fn cancel(folder: &Folder) -> Result<Vec<u64>, SlurmError> {
    let submission = Submission::read(folder)?.unwrap_or_default();
    let mut jobs: Vec<u64> = queue(&name_of(folder))?.iter().map(|q| q.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    // The one that gathers first: it begins when the arrays are gone.
    let (gather, arrays): (Vec<u64>, Vec<u64>) = jobs.iter().partition(|job| Some(**job) == submission.gather);
    for some in [gather, arrays] {
        if !some.is_empty() {
            run("scancel", some.iter().map(u64::to_string))?;
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_has_the_last_word_on_why_a_task_ended() {
        let log = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\nerror: interrupted\n\n";
        assert!(last_words(log).is_some_and(|said| said.ends_with("DUE TO TIME LIMIT ***")));
        assert_eq!(last_words("slurmstepd-n1: error: *** A ***\nx\n").as_deref(), Some("*** A ***"));
        assert_eq!(last_words("a\nerror: no such file \n\n").as_deref(), Some("error: no such file"));
        assert_eq!(last_words("\n"), None);
    }
}
