//! A policy of the program that another simulator, or a scheduler, notifies and asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use evenhand_model::{Amount, Capacity, Quantity, Resource, Span, Time, UserId, Weights};
use evenhand_policies::equivalents::Equivalents;
use evenhand_policies::{Decay, Job, Policy, PolicyContext, Registry};
use pyo3::prelude::*;

use crate::errors::input_error;

/// A policy of the program outside of its own simulations.
///
/// name: of the policy. capacity: whole amounts by resource. weights: of the users, numbered from 0, as texts.
/// delta, half_life: of the policies that forget, as texts of which at most one is given.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct PolicyHandle(Mutex<Live>);

struct Live {
    policy: Box<dyn Policy>,
    width: usize,
    now: Time,
    /// What each user's first waiting task requested; of the last one while the user does not wait.
    requested: Vec<Span>,
    /// Each user's running tasks: a task ends only if it began.
    running: Vec<Vec<RunningTask>>,
}

/// A task that runs, as its start was notified: its end has to be of the same task, because some policies charge what it
/// requested until then.
struct RunningTask {
    demand: Vec<u64>,
    started: Time,
    requested: Span,
}

impl PolicyHandle {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// Checks a user, and the amounts of a task.
    fn task(&self, user: u32, demand: &[u64]) -> Result<Vec<Amount>, String> {
        self.user(user)?;
        if demand.len() != self.width {
            return Err(format!("found {} amounts, expected one of each of {} resources", demand.len(), self.width));
        }
        Ok(demand.iter().copied().map(Amount).collect())
    }

    fn user(&self, user: u32) -> Result<(), String> {
        let users = self.running.len();
        (user as usize).lt(&users).then_some(()).ok_or_else(|| format!("found user {user}, expected one of {users}"))
    }

    /// Returns what a user holds of each resource.
    fn held(&self, user: u32) -> Vec<u64> {
        let tasks = &self.running[user as usize];
        (0..self.width).map(|r| tasks.iter().map(|task| task.demand[r]).sum()).collect()
    }

    /// Finds a running task of a user: the one of this start, and the first one of several.
    fn find(&self, user: u32, demand: &[u64], started: Time, requested: Option<Span>) -> Result<usize, String> {
        let tasks = &self.running[user as usize];
        let is_meant =
            |task: &RunningTask| task.demand == demand && requested.is_none_or(|asked| asked == task.requested);
        let of_start = tasks.iter().position(|task| is_meant(task) && task.started == started);
        of_start.or_else(|| tasks.iter().position(is_meant)).ok_or_else(|| {
            let held = self.held(user);
            let asked = requested.map_or(String::new(), |asked| format!(" that requested {} s", asked.secs_f64()));
            format!(
                "found an end of {demand:?}{asked}, expected that of a task that runs: at most what is held, {held:?}, and the \
                 demand and the requested time of one start"
            )
        })
    }

    fn advance(&mut self, now: f64) -> Result<Time, String> {
        let now = time("the time", now)?;
        if now < self.now {
            let before = self.now.secs_f64();
            return Err(format!("found the time {} s, expected none before the last one, {before} s", now.secs_f64()));
        }
        self.now = now;
        Ok(now)
    }
}

/// Converts seconds.
fn time(what: &str, seconds: f64) -> Result<Time, String> {
    let nanos = seconds * 1e9;
    if !(0.0..=Time::MAX.nanos() as f64).contains(&nanos) {
        return Err(format!("found {what} {seconds}, expected seconds from 0 on"));
    }
    Ok(Time::from_nanos(nanos.round() as u64))
}

fn span(what: &str, seconds: f64) -> Result<Span, String> {
    Ok(Span::from_nanos(time(what, seconds)?.nanos()))
}

#[pymethods]
impl PolicyHandle {
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        capacity: Vec<(String, u64)>,
        weights: Vec<String>,
        delta: Option<String>,
        half_life: Option<String>,
    ) -> PyResult<PolicyHandle> {
        let decay = decay(delta.as_deref(), half_life.as_deref());
        decay
            .and_then(|decay| live(name, &capacity, &weights, decay))
            .map(|live| PolicyHandle(Mutex::new(live)))
            .map_err(|error| input_error(py, error))
    }

    /// Sets a user's first waiting task; no demand: the user does not wait.
    #[pyo3(signature = (user, demand, submitted_s, position, requested_s))]
    fn set_first_pending(
        &self,
        py: Python<'_>,
        user: u32,
        demand: Option<Vec<u64>>,
        submitted_s: f64,
        position: u64,
        requested_s: f64,
    ) -> PyResult<()> {
        let mut live = self.live();
        let set = || -> Result<(), String> {
            let Some(demand) = demand else {
                live.user(user)?;
                live.policy.set_first_pending(UserId(user), None);
                return Ok(());
            };
            let demand = live.task(user, &demand)?;
            let requested = span("the requested time", requested_s)?;
            live.requested[user as usize] = requested;
            let job = Job { requested, ..Job::new(UserId(user), &demand) };
            live.policy.set_first_pending(UserId(user), Some(&job.at(time("the submission", submitted_s)?, position)));
            Ok(())
        };
        run(py, set)
    }

    /// Notifies of the start of a task; without `requested_s` it requested what the user's first waiting task did.
    #[pyo3(signature = (now_s, user, demand, requested_s))]
    fn started(
        &self,
        py: Python<'_>,
        now_s: f64,
        user: u32,
        demand: Vec<u64>,
        requested_s: Option<f64>,
    ) -> PyResult<()> {
        let mut live = self.live();
        let start = || -> Result<(), String> {
            let amounts = live.task(user, &demand)?;
            let held = live.held(user);
            if held.iter().zip(&demand).any(|(held, d)| held.checked_add(*d).is_none()) {
                return Err(format!("found {demand:?}, with which user {user} holds too much"));
            }
            let requested = match requested_s {
                Some(seconds) => span("the requested time", seconds)?,
                None => live.requested[user as usize],
            };
            let now = live.advance(now_s)?;
            live.running[user as usize].push(RunningTask { demand, started: now, requested });
            live.policy.started(now, &Job { started: now, requested, ..Job::new(UserId(user), &amounts) });
            Ok(())
        };
        run(py, start)
    }

    /// Notifies of the end of a task that started at `started_s`; `requested_s` tells apart tasks that started together.
    #[pyo3(signature = (now_s, user, demand, started_s, requested_s))]
    fn finished(
        &self,
        py: Python<'_>,
        now_s: f64,
        user: u32,
        demand: Vec<u64>,
        started_s: f64,
        requested_s: Option<f64>,
    ) -> PyResult<()> {
        let mut live = self.live();
        let finish = || -> Result<(), String> {
            let amounts = live.task(user, &demand)?;
            let started = time("the start", started_s)?;
            let requested = requested_s.map(|seconds| span("the requested time", seconds)).transpose()?;
            let at = live.find(user, &demand, started, requested)?;
            let now = live.advance(now_s)?;
            let RunningTask { requested, .. } = live.running[user as usize].remove(at);
            live.policy.finished(now, &Job { started, requested, ..Job::new(UserId(user), &amounts) });
            Ok(())
        };
        run(py, finish)
    }

    /// Returns whose first waiting task starts next; None: nobody waits.
    fn next(&self, py: Python<'_>, now_s: f64) -> PyResult<Option<u32>> {
        let mut live = self.live();
        run(py, || {
            let now = live.advance(now_s)?;
            Ok(live.policy.next(now).map(|user| user.0))
        })
    }

    /// Returns a user's key; the lowest goes first.
    fn key(&self, py: Python<'_>, now_s: f64, user: u32) -> PyResult<f64> {
        let mut live = self.live();
        run(py, || {
            live.user(user)?;
            let now = live.advance(now_s)?;
            Ok(live.policy.standing(now, UserId(user)).key)
        })
    }
}

fn run<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, String>) -> PyResult<T> {
    work().map_err(|error| input_error(py, error))
}

/// Returns the decay as a study takes it: at most one is given, and by default it is the study's.
fn decay(delta: Option<&str>, half_life: Option<&str>) -> Result<Decay, String> {
    match (delta, half_life) {
        (Some(_), Some(_)) => Err("found delta and half_life, expected one of them".into()),
        (_, Some(text)) => {
            let span = Span::parse(text).map_err(|error| format!("half_life {text}: {error}"))?;
            Decay::from_half_life(span).map_err(|error| format!("half_life {text}: {error}"))
        }
        (delta, None) => {
            let text = delta.unwrap_or(Decay::DEFAULT_DELTA);
            let delta = Quantity::parse(text).map_err(|error| format!("delta: {error}"))?;
            Decay::from_delta(&delta).map_err(|error| format!("delta: {error}"))
        }
    }
}

fn live(name: &str, capacity: &[(String, u64)], weights: &[String], decay: Decay) -> Result<Live, String> {
    if capacity.is_empty() || weights.is_empty() {
        return Err("found no resource or no user, expected at least one of each".into());
    }
    let resources: Vec<Resource> = capacity.iter().map(|(name, _)| Resource::new(name, "")).collect();
    let units = capacity.iter().map(|(_, amount)| (*amount).into()).collect();
    let capacity = Capacity::new(&resources, units).map_err(|error| format!("capacity: {error}"))?;
    let weights = weights.iter().map(|text| Quantity::parse(text)).collect::<Result<Vec<_>, _>>();
    let weights = weights.map_err(|error| format!("weights: {error}"))?;
    let weights = Weights::new(weights).map_err(|error| format!("weights: {error}"))?;
    // As in a study on a pool: which resource is processors, wherever it stands.
    let equivalents = Equivalents::of_pool(&resources, &capacity).ok();
    let context = PolicyContext::new(&capacity, &weights).resources(&resources).decay(Some(decay));
    let context = context.equivalents(equivalents.as_ref());
    let policy = Registry::built_in().build(name, &context).map_err(|error| error.to_string())?;
    let users = weights.len();
    let (requested, running) = (vec![Span::ZERO; users], (0..users).map(|_| Vec::new()).collect());
    Ok(Live { policy, width: resources.len(), now: Time::ZERO, requested, running })
}
