//! Forecasts at an instant: of jobs that wait then, and of jobs that could be submitted.

use crate::calibrate::{LEARNED_S, observe};
use crate::log::{Job, Log};
use crate::observe::Observer;
use crate::predict::{Forecast, LEARNED, Predictor};

/// What is known of a log at an instant, and what was learned from the jobs before it.
#[derive(Clone, Debug)]
pub struct Forecaster<'a> {
    log: &'a Log,
    now: i64,
    seed: u64,
    observer: Observer<'a>,
    predictor: Predictor<'a>,
}

impl<'a> Forecaster<'a> {
    /// Learns from the jobs that were submitted by `now`, as calibration does: at most 8000, of ten weeks.
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
        let first = end.saturating_sub(LEARNED).max(log.first_from(now - LEARNED_S)).min(end);
        let mut predictor = Predictor::new(log, first, seed);
        for observation in observe(log, first..end, seed) {
            predictor.next(&observation);
        }
        predictor.learn_until(now);
        let mut observer = Observer::new(log);
        observer.go_to(end, now);
        Forecaster { log, now, seed, observer, predictor }
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
        Some(self.predictor.forecast_waiting(job, &remaining, self.now))
    }
}

fn most_are_now(waits: impl IntoIterator<Item = i64>) -> bool {
    let (mut now, mut all) = (0, 0);
    for wait in waits {
        now += usize::from(wait <= 0);
        all += 1;
    }
    2 * now > all
}
