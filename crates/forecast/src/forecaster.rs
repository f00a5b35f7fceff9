//! Forecasts at an instant: of jobs that wait then, and of jobs that could be submitted.

use std::ops::Range;

use crate::calibrate::{LEARNED_S, observe};
use crate::forest::Features;
use crate::log::{Job, Log};
use crate::observe::Observer;
use crate::predict::{Forecast, LEARNED, Predictor};

/// The most jobs that wait at the submissions of all jobs from which is learned, together: those are the steps of their replays. A
/// queue of ten thousand jobs would take minutes otherwise.
const WAITING: usize = 2_000_000;

/// What is known of a log at an instant, and what was learned from the jobs before it.
#[derive(Clone, Debug)]
pub struct Forecaster<'a> {
    log: &'a Log,
    now: i64,
    seed: u64,
    observer: Observer<'a>,
    predictor: Predictor<'a>,
    /// The jobs of which some were observed.
    range: Range<usize>,
    /// Observes the others, if they are asked for, at the submission of the next of them.
    others: Option<Observer<'a>>,
}

impl<'a> Forecaster<'a> {
    /// Learns from the jobs that were submitted by `now`, as calibration does: at most 8000, of ten weeks. Where the queue was long it
    /// learns from one in so many of these.
    pub fn at(log: &'a Log, now: i64, seed: u64) -> Forecaster<'a> {
        Forecaster::after(log, log.first_from(now + 1), now, seed)
    }

    /// The same at the submission of a job, before the jobs that stand behind it in the log at that instant.
    ///
    /// # Panics
    /// Panics if the log has no such job.
    pub fn at_submission(log: &'a Log, job: usize, seed: u64) -> Forecaster<'a> {
        Forecaster::after(log, job + 1, log.jobs()[job].submit, seed)
    }

    /// The same at `now` after the submission of the jobs before `end`.
    fn after(log: &'a Log, end: usize, now: i64, seed: u64) -> Forecaster<'a> {
        Forecaster::learning(log, end, now, seed, WAITING)
    }

    fn learning(log: &'a Log, end: usize, now: i64, seed: u64, most: usize) -> Forecaster<'a> {
        let first = end.saturating_sub(LEARNED).max(log.first_from(now - LEARNED_S)).min(end);
        let range = first..end;
        let learned = learned_from(log, range.clone(), most);
        let mut predictor = Predictor::new(log, seed);
        for (&job, observation) in learned.iter().zip(observe(log, &learned, seed)) {
            predictor.next(job, &observation);
        }
        predictor.learn_until(now);
        let mut observer = Observer::new(log);
        observer.go_to(end, now);
        Forecaster { log, now, seed, observer, predictor, range, others: None }
    }

    /// The instant.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The jobs that wait, by submission, as indexes of the log.
    pub fn waiting(&self) -> &[u32] {
        self.observer.waiting()
    }

    /// Forecasts how long a job would wait that is submitted now, behind those that wait; its times are not read.
    pub fn new_job(&mut self, job: &Job) -> Forecast {
        let job = Job { submit: self.now, start: self.now, end: self.now, ..*job };
        // All shapes are held against the same draws.
        let observation = self.observer.observe_new(&job, self.log.jobs().len(), self.seed);
        self.predictor.forecast_new(&job, &observation)
    }

    /// Returns whether a job that is submitted now would start now in most replays: by what runs and waits alone, not by what similar
    /// jobs waited.
    pub fn new_job_starts_now(&mut self, job: &Job) -> bool {
        let job = Job { submit: self.now, start: self.now, end: self.now, ..*job };
        let observation = self.observer.observe_new(&job, self.log.jobs().len(), self.seed);
        most_are_now(observation.replays)
    }

    /// The same of a job that waits; false if it does not wait now.
    pub fn waiting_job_starts_now(&mut self, job: usize) -> bool {
        let Ok(place) = self.waiting().binary_search(&(job as u32)) else { return false };
        most_are_now(self.observer.replay_waiting(place, self.now, self.seed))
    }

    /// Forecasts how much longer a job waits; none if it does not wait now.
    pub fn waiting_job(&mut self, job: usize) -> Option<Forecast> {
        let place = self.waiting().binary_search(&(job as u32)).ok()?;
        let remaining = self.observer.replay_waiting(place, self.now, self.seed);
        let features = self.features_of(job);
        Some(self.predictor.forecast_waiting(job, &remaining, features.as_ref(), self.now))
    }

    /// Returns what was known of a job at its submission; none if that is too long ago.
    fn features_of(&mut self, job: usize) -> Option<Features> {
        if !self.range.contains(&job) {
            return None;
        }
        if let Some(features) = self.predictor.features_of(job) {
            return Some(*features);
        }
        // An observer goes forward only.
        let others = self.others.take().filter(|others| others.submitted() <= job);
        let mut observer = others.unwrap_or_else(|| Observer::new(self.log));
        let features = observer.observe(job, self.seed).features;
        self.others = Some(observer);
        Some(features)
    }
}

/// Returns the jobs of a range from which is learned: every n-th, where n is how many times `most` goes into the jobs that wait at the
/// submissions of all of them together, rounded up.
fn learned_from(log: &Log, range: Range<usize>, most: usize) -> Vec<usize> {
    let jobs = log.jobs();
    let (by_start, _) = log.orders();
    let submitted = by_start.iter().map(|&job| job as usize).filter(|job| *job < range.end);
    let starts: Vec<i64> = submitted.map(|job| jobs[job].start).collect();
    let waiting = |job: usize| (job + 1).saturating_sub(starts.partition_point(|start| *start <= jobs[job].submit));
    let all: usize = range.clone().map(waiting).sum();
    range.step_by(all.div_ceil(most).max(1)).collect()
}

fn most_are_now(waits: impl IntoIterator<Item = i64>) -> bool {
    let (mut now, mut all) = (0, 0);
    for wait in waits {
        now += usize::from(wait <= 0);
        all += 1;
    }
    2 * now > all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::NONE;
    use crate::size::Size;

    /// A job a minute for 4 hours on a site on which one runs at a time, for five minutes each.
    fn long_queue() -> Log {
        let job = |n: i64| Job {
            submit: 60 * n,
            start: 300 * n,
            end: 300 * (n + 1),
            size: Size::from(1),
            limit: 600,
            user: (n % 3) as u32,
            account: NONE,
            queue: NONE,
            pool: 0,
        };
        Log::from_jobs((0..240).map(job).collect(), 3, vec![Size::from(1)]).unwrap()
    }

    #[test]
    fn every_nth_job_is_learned_from_where_the_queue_is_long() {
        let log = long_queue();
        // At the submission of job n, n / 5 + 1 jobs have started.
        let all: usize = (100..240).map(|n| n + 1 - (n / 5 + 1)).sum();
        assert_eq!(learned_from(&log, 100..240, all), (100..240).collect::<Vec<_>>());
        assert_eq!(learned_from(&log, 100..240, all - 1), (100..240).step_by(2).collect::<Vec<_>>());
        assert_eq!(learned_from(&log, 100..240, all.div_ceil(7)), (100..240).step_by(7).collect::<Vec<_>>());
        assert_eq!(learned_from(&log, 100..100, 1), Vec::<usize>::new());
    }

    #[test]
    fn of_a_job_that_was_not_learned_from_the_same_is_known() {
        let log = long_queue();
        let now = 60 * 239;
        let at = |most| Forecaster::learning(&log, 240, now, 1, most);
        let (mut all, mut some) = (at(usize::MAX), at(1000));
        assert_eq!(all.predictor.features_of(239).is_some(), some.predictor.features_of(0).is_some());
        let waiting = all.waiting().to_vec();
        assert!(waiting.iter().any(|&job| some.predictor.features_of(job as usize).is_none()));
        // Forwards, as jobs are mostly asked for, and back to the first.
        for job in waiting.iter().chain(&waiting[..1]).map(|&job| job as usize) {
            let features = all.features_of(job);
            assert!(features.is_some());
            assert_eq!(some.features_of(job), features);
            assert!(some.waiting_job(job).is_some());
        }
        assert_eq!(some.features_of(1000), None);
    }
}
