//! Writes site factors with one `scontrol`, and reads from its errors what became of which job.

use std::collections::BTreeSet;

use super::assign_site_factors::SiteFactorChange;
use super::driver::DriveError;
use crate::error::ReadError;
use crate::run_commands::{Call, CommandError, Commands, FailureKind, LINE_SEPARATOR};

/// What Slurm made of some changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteOutcome {
    /// The jobs of which Slurm says that they do not exist.
    pub(super) unknown: BTreeSet<u64>,
    /// The jobs that have ended. They keep their site factor, and can still be requeued until Slurm forgets them.
    pub(super) ended: BTreeSet<u64>,
    /// The jobs that were rejected for another reason.
    pub(super) rejected: BTreeSet<u64>,
    /// Jobs that were accepted beside a message that names no job.
    accepted: BTreeSet<u64>,
    /// Whether a message names no job, so that any of the changes may have been rejected.
    pub(super) is_unclear: bool,
    /// Slurm's message, if it rejected something.
    pub(super) message: Option<String>,
}

impl WriteOutcome {
    /// Returns whether Slurm accepted the change of this job.
    pub(super) fn is_accepted(&self, job: u64) -> bool {
        self.accepted.contains(&job)
            || !self.is_unclear && ![&self.unknown, &self.ended, &self.rejected].iter().any(|jobs| jobs.contains(&job))
    }

    /// Returns whether Slurm says that this job does not exist.
    pub(super) fn is_unknown(&self, job: u64) -> bool {
        self.unknown.contains(&job)
    }

    /// Takes what a write of this job alone has shown.
    pub(super) fn resolve(&mut self, job: u64, alone: &WriteOutcome) {
        if alone.is_accepted(job) {
            self.accepted.insert(job);
        }
    }

    /// Reads the messages of `scontrol` about these changes: `Invalid job id specified for job 7`, or `7_[1-3]: Job has already finished`.
    fn parse(message: &str, changes: &[SiteFactorChange]) -> WriteOutcome {
        let mut outcome = WriteOutcome { message: Some(message.to_owned()), ..WriteOutcome::default() };
        for line in message.split(LINE_SEPARATOR) {
            let (reason, job) = match (line.rsplit_once(" for job "), line.split_once(": ")) {
                (Some((reason, job)), _) | (None, Some((job, reason))) => (reason, job),
                (None, None) => (line, ""),
            };
            let digits = job.len() - job.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            // A message that names no job is about the only one there is.
            let (id, is_whole) = match (job[..digits].parse(), changes) {
                (Ok(id), _) => (id, digits == job.len()),
                (Err(_), [only]) => (only.job, true),
                (Err(_), _) => {
                    outcome.is_unclear = true;
                    continue;
                }
            };
            let reason = if digits == 0 { line } else { reason }.to_ascii_lowercase();
            // A task that does not exist says nothing about the rest of its array.
            let jobs = if reason.contains("invalid job id") && is_whole {
                &mut outcome.unknown
            } else if reason.contains("already finished") {
                &mut outcome.ended
            } else {
                &mut outcome.rejected
            };
            jobs.insert(id);
        }
        outcome
    }
}

/// Writes site factors.
///
/// # Errors
/// Returns an error if the user may not write, or the controller does not answer; then each change may have been made or
/// not.
pub(super) fn write(commands: &dyn Commands, changes: &[SiteFactorChange]) -> Result<WriteOutcome, DriveError> {
    if changes.is_empty() {
        return Ok(WriteOutcome::default());
    }
    let line = |c: &SiteFactorChange| format!("update JobId={} SiteFactor={}\n", c.job, c.value);
    let call = Call { input: Some(changes.iter().map(line).collect()), ..Call::new("scontrol", Vec::<String>::new()) };
    match commands.run(&call) {
        Ok(_) => Ok(WriteOutcome::default()),
        Err(error @ CommandError::Failed { kind: FailureKind::Denied, .. }) => Err(DriveError::Denied(error)),
        Err(CommandError::Failed { message, kind: FailureKind::Other, .. }) => {
            Ok(WriteOutcome::parse(&message, changes))
        }
        Err(error) => Err(ReadError::Command(error).into()),
    }
}

/// Returns whether Slurm knows a job: one that waits, runs, or ended a short time ago.
///
/// # Errors
/// Returns an error if Slurm does not answer.
pub(super) fn is_known(commands: &dyn Commands, job: u64) -> Result<bool, DriveError> {
    match commands.run(&Call::new("scontrol", ["show".to_owned(), "job".to_owned(), job.to_string()])) {
        Ok(_) => Ok(true),
        Err(CommandError::Failed { message, .. }) if message.to_ascii_lowercase().contains("invalid job id") => {
            Ok(false)
        }
        Err(error) => Err(ReadError::Command(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_tell_what_became_of_each_job() {
        let changes = [1, 2, 7, 8, 11, 99].map(|job| SiteFactorChange { job, value: 0 });
        let outcome = WriteOutcome::parse(
            "Invalid job id specified for job 99; Job has already finished for job 2; 7_[1-3]: Job has already finished; \
             Invalid job id specified for job 8_1; Job is being requeued for job 11",
            &changes,
        );
        assert_eq!(outcome.unknown, [99].into());
        assert_eq!(outcome.ended, [2, 7].into());
        assert_eq!(outcome.rejected, [8, 11].into());
        assert!(!outcome.is_unclear && outcome.is_accepted(1) && !outcome.is_accepted(8));
        let mut unclear = WriteOutcome::parse("slurm_update error: something else", &changes);
        assert!(unclear.is_unclear && !unclear.is_accepted(1));
        unclear.resolve(1, &WriteOutcome::default());
        assert!(unclear.is_accepted(1) && !unclear.is_accepted(2));
        let alone = WriteOutcome::parse("slurm_update error: Invalid job id specified", &changes[..1]);
        assert!(alone.is_unknown(1) && !alone.is_unclear);
    }
}
