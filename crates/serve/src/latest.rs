//! The last answer of the site. One thread asks, however many visitors there are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use evenhand_forecast::{Forecaster, StartRecord};
use evenhand_model::Time;
use evenhand_slurm::{JobState, NotPlanned, PastAndQueue, ReadError};

use crate::Readers;
use crate::agent_nodes::AgentAnswer;
use crate::forecast_checks::{ForecastChecks, ForecastScore};
use crate::snapshot::{SiteReader, Snapshot};

/// The most records of the queue whose starts are forecast, in the order of priority.
const FORECASTS: usize = 500;

/// What every visitor is answered from. Readers never wait for the site.
#[derive(Debug, Default)]
pub struct Latest {
    now: RwLock<Answer>,
    forecasts: RwLock<Arc<Forecasts>>,
    checks: Mutex<ForecastChecks>,
    agent: RwLock<Option<AgentAnswer>>,
    reads: AtomicU64,
    failures: AtomicU64,
}

/// The last answer, and what went wrong since.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The last snapshot; none until the first answer.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Why the last attempt failed, if it did.
    pub failure: Option<String>,
}

/// Forecast starts by the record's job id.
#[derive(Debug, Default)]
pub struct Forecasts {
    /// The snapshot of which they are.
    pub read_at: Option<Time>,
    /// The starts.
    pub starts: BTreeMap<u64, StartRecord>,
    /// Jobs whose forecast would be wrong, and whose start Slurm has not planned yet.
    pub not_planned: BTreeMap<u64, NotPlanned>,
    /// Why there are none, if that is known.
    pub failure: Option<String>,
}

impl Latest {
    /// Returns the last answer.
    pub fn answer(&self) -> Answer {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the last forecasts.
    pub fn forecasts(&self) -> Arc<Forecasts> {
        Arc::clone(&self.forecasts.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how often the site was asked, and how often it did not answer.
    pub fn reads(&self) -> (u64, u64) {
        (self.reads.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }

    /// Returns how forecasts came true.
    pub fn forecast_score(&self) -> ForecastScore {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).score()
    }

    /// Asks the site once.
    ///
    /// # Errors
    /// Returns the site's error; the last snapshot stays.
    pub fn read(&self, site: &mut dyn SiteReader, now: Time) -> Result<(), ReadError> {
        let read = site.read(now);
        self.reads.fetch_add(1, Ordering::Relaxed);
        if let Ok(snapshot) = &read {
            self.checks.lock().unwrap_or_else(PoisonError::into_inner).check(snapshot);
        }
        let mut latest = self.now.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(snapshot) => {
                *latest = Answer { snapshot: Some(Arc::new(snapshot)), failure: None };
                Ok(())
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                latest.failure = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Returns the last answer of the agent; none if no agent is asked.
    pub fn agent(&self) -> Option<AgentAnswer> {
        self.agent.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the agent once, if one is asked at all; if it does not answer, its last record stays.
    pub fn read_agent(&self, readers: &mut Readers, now: Time) {
        let Some(agent) = &mut readers.agent else { return };
        let read = agent.read();
        let mut latest = self.agent.write().unwrap_or_else(PoisonError::into_inner);
        let answer = latest.get_or_insert_default();
        match read {
            Ok(record) => {
                *answer = AgentAnswer { record: Some(record), answered_at: Some(now), failure: None };
            }
            Err(failure) => answer.failure = Some(failure),
        }
    }

    /// Asks the site again and again, with `interval` from the end of an answer to the next question, until the other
    /// side of `stop` is gone.
    pub fn keep_reading(
        &self,
        readers: &mut Readers,
        interval: Duration,
        clock: impl Fn() -> Time,
        stop: &Receiver<()>,
    ) {
        while stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            // The failure is kept in the answer, where visitors see it.
            let _ = self.read(readers.site.as_mut(), clock());
            self.read_agent(readers, clock());
        }
    }

    /// Forecasts the starts of waiting jobs again and again, at most once in `interval`, until the other side of `stop`
    /// is gone.
    pub fn keep_forecasting(&self, interval: Duration, seed: u64, stop: &Receiver<()>) {
        let mut wait = Duration::ZERO;
        while stop.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let known = self.forecasts().read_at;
            let snapshot = self.answer().snapshot.filter(|snapshot| known != Some(snapshot.read_at));
            wait = if snapshot.is_some() { interval } else { interval.min(Duration::from_secs(1)) };
            let Some(snapshot) = snapshot else { continue };
            let forecasts = Arc::new(forecast(&snapshot, seed, stop));
            self.checks.lock().unwrap_or_else(PoisonError::into_inner).keep(&snapshot, &forecasts);
            *self.forecasts.write().unwrap_or_else(PoisonError::into_inner) = forecasts;
        }
    }
}

/// Forecasts the starts of the waiting jobs of a snapshot.
fn forecast(snapshot: &Snapshot, seed: u64, stop: &Receiver<()>) -> Forecasts {
    let read_at = Some(snapshot.read_at);
    if snapshot.slow.ended.is_empty() {
        // From the queue alone an interval would look certain and mean nothing.
        let failure = "no job that ended is known, and so not how long jobs run of their limits".to_string();
        return Forecasts { read_at, failure: Some(failure), ..Forecasts::default() };
    }
    let (ended, queue, nodes) = (&snapshot.slow.ended, &snapshot.queue, &snapshot.nodes);
    let past = match PastAndQueue::new(ended, queue, nodes, snapshot.counted(), snapshot.read_at) {
        Ok(past) => past,
        Err(error) => return Forecasts { read_at, failure: Some(error.to_string()), ..Forecasts::default() },
    };
    let mut forecaster = Forecaster::at(&past.log, snapshot.read_at.whole_secs(), seed);
    let jobs = &snapshot.queue.jobs;
    let mut records: Vec<usize> = (0..jobs.len()).filter(|&at| jobs[at].state == JobState::Pending).collect();
    records.sort_by_key(|&at| (std::cmp::Reverse(jobs[at].priority), jobs[at].submit, jobs[at].id));
    let (mut starts, mut not_planned) = (BTreeMap::new(), BTreeMap::new());
    for record in records.into_iter().take(FORECASTS) {
        // The end must not wait for hundreds of forecasts.
        if stop.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected) {
            break;
        }
        match past.start_of_record(&mut forecaster, &snapshot.queue, record, snapshot.read_at) {
            Some(Ok(start)) => {
                starts.insert(jobs[record].id, start);
            }
            Some(Err(reason)) => {
                not_planned.insert(jobs[record].id, reason);
            }
            None => (),
        }
    }
    Forecasts { read_at, starts, not_planned, failure: None }
}
