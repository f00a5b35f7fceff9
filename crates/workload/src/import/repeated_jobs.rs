//! Finds jobs that a trace has twice, as exports of months that overlap do.

use std::hash::{DefaultHasher, Hash, Hasher};

use evenhand_model::{Time, counted};
use rayon::slice::ParallelSliceMut;

use super::JobId;

/// A key of each job, in 8 bytes: a hash of its id, its submission and its start. A job that was requeued has the same id and another
/// start. Of a hundred million different jobs two have one key with a probability of 0.0003.
#[derive(Clone, Debug, Default)]
pub(super) struct JobKeys {
    keys: Vec<u64>,
    /// Whether there were too many keys for the memory.
    forgotten: bool,
}

impl JobKeys {
    /// The memory of a key, in bytes.
    pub(super) const BYTES: u64 = 8;

    /// Adds the key of a job. If that is one more than `most`, all keys are dropped.
    pub(super) fn add(&mut self, id: &JobId, submit: Time, start: Option<Time>, most: usize) {
        if self.keys.len() >= most && id.is_known() {
            self.forget();
        } else if id.is_known() && !self.forgotten {
            let mut hasher = DefaultHasher::new();
            (id.number, &id.text, submit, start).hash(&mut hasher);
            self.keys.push(hasher.finish());
        }
    }

    pub(super) fn merge(&mut self, other: JobKeys) {
        self.keys.extend(other.keys);
        if other.forgotten {
            self.forget();
        }
    }

    fn forget(&mut self) {
        *self = JobKeys { keys: Vec::new(), forgotten: true };
    }

    /// Returns the sentence about jobs that occur again, if there are any.
    pub(super) fn sentence(mut self) -> Option<String> {
        if self.forgotten {
            return Some(
                "Whether jobs occur twice is not known: their ids do not fit in memory; pass a larger --memory.".into(),
            );
        }
        self.keys.par_sort_unstable();
        let rows = self.keys.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        let sentence = || {
            format!(
                "{} the job of another row (same id, submission and start); all are kept. Import each file once, and periods \
                 that do not overlap.",
                counted(rows, "row repeats", "rows repeat")
            )
        };
        (rows > 0).then(sentence)
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
        keys.sentence()
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
        assert_eq!(keys.clone().sentence(), None);
        keys.add(&JobId::of("7"), Time::ZERO, None, 1);
        let mut all = JobKeys::default();
        all.merge(keys);
        assert!(all.sentence().is_some_and(|text| text.contains("not known")));
    }
}
