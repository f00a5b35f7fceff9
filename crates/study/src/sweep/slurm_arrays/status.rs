//! Reports the progress of a submitted sweep, and cancels it.

use super::SlurmError;
use super::commands::{Queued, queue, run};
use super::submit::{Submission, name_of};
use crate::sweep::grid::Grid;
use crate::sweep::point::Point;
use crate::sweep::sweep_folder::{Folder, SweepError};

/// The progress of a submitted sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The number of points.
    pub points: usize,
    /// The number of points with a result.
    pub done: usize,
    /// The jobs of the last submission, the one that gathers the results at the end; empty without a submission.
    pub jobs: Vec<u64>,
    /// The number of running tasks of arrays.
    pub running: usize,
    /// The number of waiting tasks of arrays.
    pub waiting: usize,
    /// Slurm's reason for the wait.
    pub reason: Option<String>,
    /// The state of the job that gathers the results, if it is in the queue.
    pub gather: Option<String>,
}

impl Status {
    /// Returns whether a job of the sweep is in the queue.
    pub fn is_queued(&self) -> bool {
        self.running + self.waiting > 0 || self.gather.is_some()
    }
}

/// A point without a result, and the known reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPoint {
    /// Its number.
    pub point: usize,
    /// Its coordinates in words.
    pub axes: String,
    /// The task that should have run it (`42_3`), if it was submitted.
    pub task: Option<String>,
    /// The reason why that task ended, from its log.
    pub message: Option<String>,
}

/// Returns the progress of a submitted sweep.
///
/// # Errors
/// Returns an error if the record of the submission cannot be read, or Slurm cannot be queried.
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
    /// Returns the points without a result, with the reasons from the logs of their tasks.
    ///
    /// # Errors
    /// Returns an error if the record of the submission cannot be read.
    pub fn all(
        folder: &Folder,
        grid: &Grid,
        points: &[Point],
        digests: &[String],
    ) -> Result<Vec<LostPoint>, SweepError> {
        let submission = Submission::read(folder)?.unwrap_or_default();
        let lost = |number: usize| {
            let task = submission.task_of(number);
            let message = task.as_ref().and_then(|(_, log)| {
                let text = std::fs::read(folder.dir().join(log)).ok()?;
                reason_of_end(&String::from_utf8_lossy(&text))
            });
            LostPoint { point: number, axes: points[number].describe(grid), task: task.map(|(task, _)| task), message }
        };
        Ok(folder.missing(digests).into_iter().filter(|n| *n < points.len()).map(lost).collect())
    }
}

/// Returns why a task ended: Slurm's error (cancelled, out of time or memory), otherwise the log's last line.
fn reason_of_end(log: &str) -> Option<String> {
    let lines = || log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let slurm = lines().find_map(error_of_slurmstepd);
    slurm.or_else(|| lines().next()).map(String::from)
}

/// What slurmstepd wrote on a line of a task's log: `slurmstepd: error: …`, `slurmstepd-NODE: error: …` where a machine has
/// several, and `[2026-11-25T14:11:25.563] error: …` from Slurm 26.05 on.
fn error_of_slurmstepd(line: &str) -> Option<&str> {
    let (by, error) = line.split_once(" error: ")?;
    let time = by.strip_prefix('[').and_then(|by| by.strip_suffix(']'));
    let is_time =
        time.is_some_and(|time| time.contains('T') && time.bytes().all(|b| b.is_ascii_digit() || b"-T:.".contains(&b)));
    (is_time || by.starts_with("slurmstepd") && by.ends_with(':')).then_some(error)
}

/// Cancels the jobs of a sweep that are in the queue, and returns them. Results stay.
///
/// # Errors
/// Returns an error if Slurm cannot be queried or refuses.
pub fn cancel(folder: &Folder) -> Result<Vec<u64>, SlurmError> {
    let submission = Submission::read(folder)?.unwrap_or_default();
    let mut jobs: Vec<u64> = queue(&name_of(folder))?.iter().map(|q| q.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    // The job that gathers first, because it would start when the arrays are gone.
    let (gather, arrays): (Vec<u64>, Vec<u64>) = jobs.iter().partition(|job| Some(**job) == submission.gather);
    for group in [gather, arrays] {
        if !group.is_empty() {
            run("scancel", group.iter().map(u64::to_string))?;
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurms_error_takes_precedence_over_the_logs_last_line() {
        let log = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\nerror: interrupted\n\n";
        assert!(reason_of_end(log).is_some_and(|reason| reason.ends_with("DUE TO TIME LIMIT ***")));
        assert_eq!(reason_of_end("slurmstepd-n1: error: *** A ***\nx\n").as_deref(), Some("*** A ***"));
        // Slurm 26.05.
        let log = "[2026-11-25T14:11:25.563] error: *** JOB 1 ON n1 CANCELLED AT 2026-11-25T14:11:25 DUE to SIGNAL Terminated ***\nerror: interrupted\n";
        assert!(reason_of_end(log).is_some_and(|reason| reason.starts_with("*** JOB 1 ON n1 CANCELLED")));
        assert_eq!(reason_of_end("[a] error: x\n").as_deref(), Some("[a] error: x"));
        assert_eq!(reason_of_end("a\nerror: no such file \n\n").as_deref(), Some("error: no such file"));
        assert_eq!(reason_of_end("\n"), None);
    }
}
