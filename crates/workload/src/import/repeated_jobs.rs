//! Finds jobs that a trace has twice, as exports of months that overlap do.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use evenhand_model::{Time, counted};
use rayon::slice::ParallelSliceMut;

use super::JobId;

/// Why a row is dropped that is the job of a row in another file.
pub(super) const IN_ANOTHER_FILE: &str = "repeated in another file";

/// Returns the key of a job, if its source has ids: a hash of its id, its submission and its start. A job that was requeued
/// has the same id and another start. Of a hundred million different jobs two have one key with a probability of 0.0003.
fn key(id: &JobId, submit: Time, start: Option<Time>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    (id.number, &id.text, submit, start).hash(&mut hasher);
    id.is_known().then(|| hasher.finish())
}

/// The keys of the jobs of the files that were read before. Of a job that several files have, one row counts: `sacct -S -E`
/// lists each job that overlaps its period, so that months have the jobs that ran across their ends in common.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherFiles(Arc<HashSet<u64>>);

impl OtherFiles {
    /// Adds the jobs of a file whose reading has ended, and returns what is left of its keys: how many rows repeat another one.
    pub(super) fn add(&mut self, of_file: JobKeys) -> JobKeys {
        let (keys, repeats) = of_file.counted();
        Arc::make_mut(&mut self.0).extend(keys);
        repeats
    }
}

/// A key of each job, in 8 bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct JobKeys {
    keys: Vec<u64>,
    /// Whether there were too many keys for the memory.
    forgotten: bool,
    /// The rows that repeat another one, beside those with these keys.
    repeats: u64,
    /// What the other files have, if jobs that they have are dropped. Then all keys are kept: which jobs a workload has does
    /// not depend on the memory.
    others: Option<OtherFiles>,
}

impl JobKeys {
    /// The memory of a key, in bytes.
    pub(super) const BYTES: u64 = 8;

    /// Creates the keys of a file of several.
    pub(super) fn beside(others: &OtherFiles) -> JobKeys {
        JobKeys { others: Some(others.clone()), ..JobKeys::default() }
    }

    /// Returns whether a file that was read before has the job.
    pub(super) fn is_in_another_file(&self, id: &JobId, submit: Time, start: Option<Time>) -> bool {
        let others = self.others.as_ref().filter(|others| !others.0.is_empty());
        others.is_some_and(|others| key(id, submit, start).is_some_and(|key| others.0.contains(&key)))
    }

    /// Adds the key of a job. If that is one more than `most`, all keys are dropped.
    pub(super) fn add(&mut self, id: &JobId, submit: Time, start: Option<Time>, most: usize) {
        let Some(key) = key(id, submit, start) else { return };
        if self.keys.len() >= most && self.others.is_none() {
            self.forget();
        } else if !self.forgotten {
            self.keys.push(key);
        }
    }

    pub(super) fn merge(&mut self, other: JobKeys) {
        self.keys.extend(other.keys);
        self.repeats += other.repeats;
        if other.forgotten {
            self.forget();
        }
    }

    fn forget(&mut self) {
        *self = JobKeys { forgotten: true, ..JobKeys::default() };
    }

    /// Returns the keys, and without them how many rows repeat another one.
    fn counted(mut self) -> (Vec<u64>, JobKeys) {
        self.keys.par_sort_unstable();
        let rows = self.keys.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        let left = JobKeys { repeats: self.repeats + rows, forgotten: self.forgotten, ..JobKeys::default() };
        (self.keys, left)
    }

    /// Returns the sentence about jobs that occur again and were kept, if there are any, with what to do about them.
    pub(super) fn sentence(self, remedy: &str) -> Option<String> {
        if self.forgotten {
            return Some(
                "Whether jobs occur twice is not known: their ids do not fit in memory; pass a larger --memory.".into(),
            );
        }
        let (_, JobKeys { repeats, .. }) = self.counted();
        let rows = || counted(repeats, "row repeats", "rows repeat");
        (repeats > 0).then(|| {
            format!("{} the job of another row (same id, submission and start); all are kept. {remedy}", rows())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(jobs: &[(&str, u64, Option<u64>)]) -> Option<String> {
        let mut keys = JobKeys::default();
        let (first, second) = jobs.split_at(jobs.len() / 2);
        for part in [first, second] {
            let mut of_part = JobKeys::default();
            part.iter().for_each(|(id, submit, start)| {
                of_part.add(&JobId::of(id), Time::from_secs(*submit), start.map(Time::from_secs), 9);
            });
            keys.merge(of_part);
        }
        keys.sentence("Import each file once.")
    }

    #[test]
    fn only_jobs_with_the_same_id_submission_and_start_are_repeated() {
        let different = [("7", 1, Some(2)), ("7", 1, Some(3)), ("7", 2, Some(3)), ("7_1", 1, Some(2)), ("7", 1, None)];
        assert_eq!(sentence(&different), None);
        assert_eq!(sentence(&[("", 1, None), ("", 1, None)]), None);
        let one = sentence(&[("7", 1, None), ("8", 1, None), ("7", 1, None)]).unwrap_or_default();
        assert!(one.starts_with("1 row repeats the job of another row"), "{one}");
        let three =
            sentence(&[("9_1", 1, Some(1)), ("9_1", 1, Some(1)), ("9_1", 1, Some(1)), ("x", 0, None), ("x", 0, None)]);
        assert!(three.is_some_and(|text| text.starts_with("3 rows repeat the job")));
    }

    #[test]
    fn what_does_not_fit_is_reported() {
        let mut keys = JobKeys::default();
        keys.add(&JobId::of("7"), Time::ZERO, None, 1);
        assert_eq!(keys.clone().sentence(""), None);
        keys.add(&JobId::of("7"), Time::ZERO, None, 1);
        let mut all = JobKeys::default();
        all.merge(keys);
        assert!(all.sentence("").is_some_and(|text| text.contains("not known")));
    }
}
