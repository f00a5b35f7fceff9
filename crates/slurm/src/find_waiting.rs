//! The waiting job that a user asks about.

use thiserror::Error;

use crate::queue::{Job, JobState, Queue};

/// Why there is no waiting job under a number.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotWaiting {
    /// The text is no job number.
    #[error("found {found:?}, expected a job's number, such as 7, 7_3 of an array, or 7+1 of a heterogeneous job")]
    NoNumber {
        /// The text.
        found: String,
    },
    /// The job does not wait.
    #[error("job {job} does not wait: Slurm calls it {state}; expected a job that waits")]
    Other {
        /// Its number.
        job: u64,
        /// Slurm's word.
        state: String,
    },
    /// The job has no such task or component, or it has ended.
    #[error(
        "squeue shows no task or component {found}; it has ended or never was; expected one that waits, see squeue --array --me"
    )]
    NoPart {
        /// The text.
        found: String,
    },
    /// `squeue` does not show the job.
    #[error(
        "squeue shows no job {job}; it has ended or never was, or the site's PrivateData hides it; expected a job that waits, see \
         squeue --me"
    )]
    NotSeen {
        /// Its number.
        job: u64,
    },
}

impl Queue {
    /// Returns the records under a job's number as users write it: `7`, `7_3` and `7_[1-9]` of an array, `7+1` of a
    /// heterogeneous job. Of an array and of a heterogeneous job these are all records.
    ///
    /// # Errors
    /// Returns an error if the text is no such number, or no record has it.
    pub fn records_of(&self, text: &str) -> Result<Vec<usize>, NotWaiting> {
        let number = job_number(text)?;
        let of = |job: &Job| {
            let array = job.array.as_ref().map(|array| array.job);
            let heterogeneous = job.heterogeneous.map(|part| part.job);
            job.id == number || array == Some(number) || heterogeneous == Some(number)
        };
        let records: Vec<usize> = (0..self.jobs.len()).filter(|&at| of(&self.jobs[at])).collect();
        if records.is_empty() { Err(NotWaiting::NotSeen { job: number }) } else { Ok(records) }
    }

    /// Finds the record that waits under a job's number: of an array or a heterogeneous job the first that waits, unless the text
    /// names a task or a component.
    ///
    /// # Errors
    /// Returns an error if the text is no number, or no record of that number waits.
    pub fn find_waiting(&self, text: &str) -> Result<usize, NotWaiting> {
        let mut records = self.records_of(text)?;
        let part = |mark: char| text.split_once(mark).and_then(|(_, part)| part.parse::<u64>().ok());
        let (task, offset) = (part('_'), part('+'));
        let is_named = |at: &usize| {
            let (array, component) = (self.jobs[*at].array.as_ref(), self.jobs[*at].heterogeneous);
            task.is_none_or(|task| array.is_some_and(|array| array.tasks.contains(task)))
                && offset.is_none_or(|offset| component.is_some_and(|component| component.offset == offset))
        };
        records.retain(is_named);
        if records.is_empty() {
            return Err(NotWaiting::NoPart { found: text.chars().take(40).collect() });
        }
        let waiting = records.iter().copied().find(|&at| self.jobs[at].state == JobState::Pending);
        waiting.ok_or_else(|| NotWaiting::Other {
            job: job_number(text).unwrap_or_default(),
            state: self.jobs[records[0]].state.name().to_string(),
        })
    }

    /// Returns the first waiting record of a user in the order of priority.
    pub fn first_waiting_of(&self, user: &str) -> Option<usize> {
        let waits = |at: &usize| self.jobs[*at].user == user && self.jobs[*at].state == JobState::Pending;
        let key = |at: &usize| (std::cmp::Reverse(self.jobs[*at].priority), self.jobs[*at].submit, self.jobs[*at].id);
        (0..self.jobs.len()).filter(waits).min_by_key(key)
    }
}

fn job_number(text: &str) -> Result<u64, NotWaiting> {
    let digits = text.split(['_', '+']).next().unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = plain.then(|| digits.parse().ok()).flatten();
    number.ok_or_else(|| NotWaiting::NoNumber { found: text.chars().take(40).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_the_record_that_waits() {
        let text = "JOBID|USER|STATE|ARRAY_JOB_ID|ARRAY_TASK_ID\n7|ann|RUNNING|7|0\n9|ann|PENDING|7|1-5\n8|bob|RUNNING|8|N/A\n";
        let queue = Queue::parse(text).unwrap();
        assert_eq!(
            (queue.find_waiting("7"), queue.find_waiting("7_[1-5]"), queue.find_waiting("9")),
            (Ok(1), Ok(1), Ok(1))
        );
        assert_eq!(queue.find_waiting("7_4"), Ok(1));
        assert_eq!(queue.find_waiting("7_0"), Err(NotWaiting::Other { job: 7, state: "RUNNING".into() }));
        assert_eq!(queue.find_waiting("7_6"), Err(NotWaiting::NoPart { found: "7_6".into() }));
        assert_eq!(queue.find_waiting("8+1"), Err(NotWaiting::NoPart { found: "8+1".into() }));
        assert_eq!(queue.records_of("7").unwrap(), [0, 1]);
        assert_eq!(queue.find_waiting("8"), Err(NotWaiting::Other { job: 8, state: "RUNNING".into() }));
        assert_eq!(queue.find_waiting("10"), Err(NotWaiting::NotSeen { job: 10 }));
        for text in ["", "x", "+7", "7x", "99999999999999999999", "-7"] {
            assert!(matches!(queue.find_waiting(text), Err(NotWaiting::NoNumber { .. })), "{text}");
        }
        assert_eq!(queue.first_waiting_of("ann"), Some(1));
    }
}
