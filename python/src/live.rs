//! A policy of the program that another simulator, or a scheduler, notifies and asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use evenhand_model::{Amount, Capacity, Quantity, Resource, Span, Time, UserId, Weights};
use evenhand_policies::{Decay, Job, Policy, PolicyContext, Registry};
use pyo3::prelude::*;

use crate::errors::input_error;

/// A policy of the program outside of its own simulations.
///
/// name: of the policy. capacity: whole amounts by resource. weights: of the users, numbered from 0, as texts.
/// half_life_s: of the policies that forget.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct PolicyHandle(Mutex<Live>);

struct Live {
    policy: Box<dyn Policy>,
    width: usize,
    now: Time,
    /// What each user holds of each resource: a task ends only if it began.
    held: Vec<Vec<u64>>,
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
        let users = self.held.len();
        (user as usize).lt(&users).then_some(()).ok_or_else(|| format!("found user {user}, expected one of {users}"))
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

#[pymethods]
impl PolicyHandle {
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        capacity: Vec<(String, u64)>,
        weights: Vec<String>,
        half_life_s: Option<f64>,
    ) -> PyResult<PolicyHandle> {
        live(name, &capacity, &weights, half_life_s)
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
            let requested = Span::from_nanos(time("the requested time", requested_s)?.nanos());
            let job = Job { requested, ..Job::new(UserId(user), &demand) };
            live.policy.set_first_pending(UserId(user), Some(&job.at(time("the submission", submitted_s)?, position)));
            Ok(())
        };
        run(py, set)
    }

    /// Notifies of the start of a task.
    fn started(&self, py: Python<'_>, now_s: f64, user: u32, demand: Vec<u64>) -> PyResult<()> {
        let mut live = self.live();
        let start = || -> Result<(), String> {
            let amounts = live.task(user, &demand)?;
            let held = &live.held[user as usize];
            let sums = held.iter().zip(&demand).map(|(held, d)| held.checked_add(*d)).collect::<Option<Vec<u64>>>();
            let sums = sums.ok_or_else(|| format!("found {demand:?}, with which user {user} holds too much"))?;
            let now = live.advance(now_s)?;
            live.held[user as usize] = sums;
            live.policy.started(now, &Job { started: now, ..Job::new(UserId(user), &amounts) });
            Ok(())
        };
        run(py, start)
    }

    /// Notifies of the end of a task that started at `started_s`.
    fn finished(&self, py: Python<'_>, now_s: f64, user: u32, demand: Vec<u64>, started_s: f64) -> PyResult<()> {
        let mut live = self.live();
        let finish = || -> Result<(), String> {
            let amounts = live.task(user, &demand)?;
            let started = time("the start", started_s)?;
            let held = &live.held[user as usize];
            let rest = held.iter().zip(&demand).map(|(held, d)| held.checked_sub(*d)).collect::<Option<Vec<u64>>>();
            let rest =
                rest.ok_or_else(|| format!("found an end of {demand:?}, expected at most what is held, {held:?}"))?;
            let now = live.advance(now_s)?;
            live.held[user as usize] = rest;
            live.policy.finished(now, &Job { started, ..Job::new(UserId(user), &amounts) });
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

fn live(name: &str, capacity: &[(String, u64)], weights: &[String], half_life_s: Option<f64>) -> Result<Live, String> {
    if capacity.is_empty() || weights.is_empty() {
        return Err("found no resource or no user, expected at least one of each".into());
    }
    let resources: Vec<Resource> = capacity.iter().map(|(name, _)| Resource::new(name, "")).collect();
    let units = capacity.iter().map(|(_, amount)| (*amount).into()).collect();
    let capacity = Capacity::new(&resources, units).map_err(|error| format!("capacity: {error}"))?;
    let weights = weights.iter().map(|text| Quantity::parse(text)).collect::<Result<Vec<_>, _>>();
    let weights = weights.map_err(|error| format!("weights: {error}"))?;
    let weights = Weights::new(weights).map_err(|error| format!("weights: {error}"))?;
    let decay = match half_life_s {
        None => None,
        Some(seconds) => {
            let half_life = Span::from_nanos(time("the half-life", seconds)?.nanos());
            Some(Decay::from_half_life(half_life).map_err(|error| format!("half_life: {error}"))?)
        }
    };
    let context = PolicyContext::new(&capacity, &weights).resources(&resources).decay(decay);
    let policy = Registry::built_in().build(name, &context).map_err(|error| error.to_string())?;
    let held = vec![vec![0; resources.len()]; weights.len()];
    Ok(Live { policy, width: resources.len(), now: Time::ZERO, held })
}
