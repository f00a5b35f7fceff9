//! What this program wrote to a job, and whose the job's present site factor is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::priorities::Priorities;
use crate::queue::{Job, JobState, Queue};

/// The site factors that this program wrote to a job.
///
/// A job keeps its site factor when it starts, ends, is requeued (by its owner, a preemption, or the failure of a node) or
/// held. So this is kept until the job has its old site factor again, somebody else set another one, or Slurm denies that
/// the job exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFactor {
    /// The site factor before the first write.
    pub original: i64,
    /// The site factors that may be in effect, the last one written at the end. More than one if a write was lost, or its
    /// result is not known.
    pub values: Vec<i64>,
}

/// The number of values that are remembered of a job. Each step writes one at most, and each look shows what is in effect, so
/// older ones are not.
const MOST_VALUES: usize = 64;

/// The owner of a site factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody's: it is the one from before the first write.
    Original,
    /// This program wrote it.
    Ours,
    /// Another program or a person set it; of a running job, whose site factor is not shown, that it is not ours.
    Others,
    /// Slurm does not show it.
    Unknown,
}

impl WrittenFactor {
    /// Returns this after an attempt to write another value, of which the result is not known.
    pub(super) fn attempted(mut self, value: i64) -> WrittenFactor {
        self.values.retain(|known| *known != value);
        self.values.push(value);
        // An array of which tasks have ended never tells that all of it was changed.
        if self.values.len() > MOST_VALUES {
            self.values.remove(0);
        }
        self
    }

    /// Returns the lowest value that has to be put back.
    fn lowest(&self) -> Option<i64> {
        self.values.iter().copied().filter(|value| *value != self.original).min()
    }

    /// Returns whose the site factor is that `shown` describes.
    pub(super) fn owner(&self, shown: &Shown) -> Owner {
        let is_ours = |factor: &i64| self.values.contains(factor);
        match shown.factors.first() {
            Some(_) if shown.factors.iter().any(|f| *f != self.original && !is_ours(f)) => Owner::Others,
            Some(_) if shown.factors.iter().all(|f| *f == self.original) => Owner::Original,
            Some(_) => Owner::Ours,
            // A running job's site factor is not shown, but its priority is at least that minus nice.
            None if shown.running_priority.is_some_and(|priority| self.lowest().is_some_and(|low| priority < low)) => {
                Owner::Others
            }
            None => Owner::Unknown,
        }
    }
}

/// What one look shows of the records of a job: of all tasks of an array, else of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Whether a record waits.
    pub(super) waits: bool,
    /// The distinct site factors of its waiting records. Slurm shows none for records that are held or not yet eligible,
    /// and for those that run.
    pub(super) factors: BTreeSet<i64>,
    /// The lowest priority of its records that run, with nice added.
    pub(super) running_priority: Option<i64>,
}

impl Shown {
    /// Returns the site factor that all of its waiting records have.
    pub(super) fn factor(&self) -> Option<i64> {
        self.factors.first().copied().filter(|_| self.factors.len() == 1)
    }
}

/// What one look shows of all jobs, by the id under which they are modified.
pub(super) struct Look(BTreeMap<u64, Shown>);

impl Look {
    pub(super) fn new(queue: &Queue, priorities: &Priorities) -> Look {
        let mut jobs: BTreeMap<u64, Shown> = BTreeMap::new();
        let mut array_of: HashMap<u64, u64> = HashMap::new();
        for job in &queue.jobs {
            let shown = jobs.entry(update_id(job)).or_default();
            array_of.insert(job.id, update_id(job));
            if job.state == JobState::Pending {
                shown.waits = true;
            } else if let Some(priority) = job.priority.filter(|priority| *priority > 0) {
                let priority = i64::try_from(priority).unwrap_or(i64::MAX);
                let with_nice = priority.saturating_add(job.nice.unwrap_or(0).max(0));
                shown.running_priority = Some(shown.running_priority.map_or(with_nice, |old| old.min(with_nice)));
            }
        }
        for (record, priority) in &priorities.jobs {
            // A record that the queue does not show has started or was submitted between the two commands.
            if let Some(shown) = array_of.get(record).and_then(|id| jobs.get_mut(id)) {
                shown.factors.insert(priority.site_factor);
            }
        }
        Look(jobs)
    }

    /// Returns what is shown of a job; `None` if none of its records is there.
    pub(super) fn of(&self, id: u64) -> Option<&Shown> {
        self.0.get(&id)
    }

    /// Returns whether a record of the job waits.
    pub(super) fn waits(&self, id: u64) -> bool {
        self.of(id).is_some_and(|shown| shown.waits)
    }
}

/// Returns the id by which a job is modified as a whole: for all tasks of an array the array's, since a change of a single
/// waiting task would split the array, and a task that starts inherits what the array had.
pub(super) fn update_id(job: &Job) -> u64 {
    job.array.as_ref().map_or(job.id, |array| array.job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[i64]) -> WrittenFactor {
        WrittenFactor { original: 5, values: values.to_vec() }
    }

    fn waiting(factors: &[i64]) -> Shown {
        Shown { waits: true, factors: factors.iter().copied().collect(), running_priority: None }
    }

    #[test]
    fn a_site_factor_is_ours_if_this_program_may_have_written_it() {
        let lost = written(&[1000]).attempted(2000).attempted(3000).attempted(2000);
        assert_eq!(lost.values, [1000, 3000, 2000]);
        for (factors, owner) in [
            (&[5][..], Owner::Original),
            (&[1000], Owner::Ours),
            (&[3000], Owner::Ours),
            // A task of an array was requeued before the array was written again.
            (&[5, 2000], Owner::Ours),
            (&[77], Owner::Others),
            (&[77, 2000], Owner::Others),
            (&[], Owner::Unknown),
        ] {
            assert_eq!(lost.owner(&waiting(factors)), owner, "{factors:?}");
        }
        // After an attempt to put back, whatever its result, the old value is nobody's.
        assert_eq!(written(&[1000]).attempted(5).owner(&waiting(&[5])), Owner::Original);
    }

    #[test]
    fn a_running_job_with_a_low_priority_was_set_by_others() {
        let runs = |priority| Shown { running_priority: Some(priority), ..Shown::default() };
        assert_eq!(written(&[1000]).owner(&runs(999)), Owner::Others);
        assert_eq!(written(&[1000]).owner(&runs(1000)), Owner::Unknown);
        // After an attempt to put back, the job may still have what was written.
        assert_eq!(written(&[1000]).attempted(5).owner(&runs(77)), Owner::Others);
        assert_eq!(written(&[1000]).attempted(5).owner(&runs(1000)), Owner::Unknown);
    }
}
