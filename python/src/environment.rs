//! Episodes for learning: a simulation that asks step by step who starts next.
//!
//! The simulator calls a policy; a learner calls a step. So the simulation runs on a thread of its own with a policy that
//! waits for the learner's answer, and the two alternate. The policy never touches Python.

mod standings;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenhand_model::{Capacity, Quantity, Rational, Time, UserId, Workload, mean_use};
use evenhand_policies::{Job, Policy, Standing};
use evenhand_simulator::{PoolOptions, Progress, UserTasks, simulate};
use evenhand_workload::store;
use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3};
use pyo3::prelude::*;

use self::standings::{Metrics, Standings};
use crate::errors::{environment_error, input_error};
use crate::workloads::{on_threads, store_error};

/// What all episodes of an environment share: the workload and the pool.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct Replay {
    workload: Arc<Workload>,
    tasks: Arc<UserTasks>,
    capacity: Arc<Capacity>,
    blocking: bool,
}

#[pymethods]
impl Replay {
    /// Reads a stored workload; `capacity` is a multiple of its mean use, or amounts by resource.
    #[new]
    #[pyo3(signature = (path, factor, amounts, blocking))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        factor: Option<String>,
        amounts: Vec<(String, String)>,
        blocking: bool,
    ) -> PyResult<Replay> {
        let workload = on_threads(py, || store::read(&path).map(Workload::expanded))?;
        let workload = workload.map_err(|error| store_error(py, &error))?;
        let capacity = match factor {
            Some(factor) => multiple(&workload, &factor),
            None => of_amounts(&workload, &amounts),
        };
        let capacity = capacity.map_err(|error| input_error(py, format!("capacity: {error}")))?;
        let tasks = UserTasks::new(&workload);
        Ok(Replay { workload: Arc::new(workload), tasks: Arc::new(tasks), capacity: Arc::new(capacity), blocking })
    }

    /// The names of the users, in the workload's order.
    #[getter]
    fn users(&self) -> Vec<String> {
        self.workload.users().to_vec()
    }

    /// The names of the resources.
    #[getter]
    fn resources(&self) -> Vec<String> {
        self.workload.resources().iter().map(|resource| resource.name.clone()).collect()
    }

    /// Begins an episode, whose first decision waits for `Episode.step`.
    fn begin(&self, py: Python<'_>) -> PyResult<Episode> {
        let (ask, asked) = sync_channel(0);
        let (answer, answered) = sync_channel(0);
        let (workload, tasks, capacity) = (self.workload.clone(), self.tasks.clone(), self.capacity.clone());
        let options = PoolOptions { blocking: self.blocking, ..PoolOptions::default() };
        let simulation = move || {
            let progress = Arc::new(Progress::default());
            let standings = Standings::new(&workload, &capacity);
            let mut policy = Learner { standings, ask: ask.clone(), answered, progress: progress.clone() };
            let simulated = simulate(&workload, &tasks, &capacity, &mut policy, options, &progress);
            if let Ok(simulated) = simulated {
                let snapshot = policy.standings.snapshot(simulated.end, true);
                // The learner may have left.
                let _ = ask.send(snapshot);
            }
        };
        let thread = std::thread::Builder::new().name("evenhand".into()).spawn(simulation);
        thread.map_err(|error| environment_error(py, format!("cannot start a thread: {error}")))?;
        Ok(Episode { channels: Mutex::new(Some((answer, asked))) })
    }
}

fn multiple(workload: &Workload, factor: &str) -> Result<Capacity, String> {
    let factor = Quantity::parse(factor).map_err(|error| error.to_string())?;
    Capacity::multiple(workload.resources(), &mean_use(workload), &factor).map_err(|error| error.to_string())
}

fn of_amounts(workload: &Workload, amounts: &[(String, String)]) -> Result<Capacity, String> {
    let unit = |name: &String| -> Result<Rational, String> {
        let amount = amounts.iter().find(|(resource, _)| resource == name);
        let (_, text) = amount.ok_or_else(|| format!("found no amount of {name}, expected one of each resource"))?;
        Ok(Quantity::parse(text).map_err(|error| error.to_string())?.exact().clone())
    };
    let units = workload.resources().iter().map(|resource| unit(&resource.name)).collect::<Result<_, _>>()?;
    Capacity::new(workload.resources(), units).map_err(|error| error.to_string())
}

/// The policy of a learner.
struct Learner {
    standings: Standings,
    ask: SyncSender<Snapshot>,
    answered: Receiver<UserId>,
    progress: Arc<Progress>,
}

impl Policy for Learner {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.standings.set_first_pending(user, first);
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.standings.started(now, job);
    }

    fn finished(&mut self, _now: Time, job: &Job<'_>) {
        self.standings.finished(job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        match self.standings.waiting() {
            [] => None,
            // No choice, no step.
            [only] => Some(*only),
            _ => {
                let user =
                    self.ask.send(self.standings.snapshot(now, false)).ok().and_then(|()| self.answered.recv().ok());
                if user.is_none() {
                    // The learner has left.
                    self.progress.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                user
            }
        }
    }

    fn standing(&mut self, _now: Time, _user: UserId) -> Standing {
        Standing::default()
    }
}

/// What a learner sees at a decision, by user and resource.
#[derive(Debug)]
pub(crate) struct Snapshot {
    now_s: f64,
    is_end: bool,
    width: usize,
    waiting: Vec<i8>,
    shares: Vec<f64>,
    demand: Vec<f64>,
    age_s: Vec<f64>,
    queued: Vec<i64>,
    mean_wait_s: Vec<f64>,
    free: Vec<f64>,
    metrics: Metrics,
}

/// Arrays of a step: `waiting`, `shares`, `demand`, `age_s`, `queued`, `mean_wait_s`, `free`.
type Arrays<'py> = (
    Bound<'py, PyArray1<i8>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// A simulation that waits for decisions.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct Episode {
    channels: Mutex<Option<Channels>>,
}

/// Where decisions go to, and what comes back.
type Channels = (SyncSender<UserId>, Receiver<Snapshot>);

#[pymethods]
impl Episode {
    /// Starts the first waiting task of a user, and goes on to the next decision, or to the end. Without a user: to the
    /// first decision.
    ///
    /// Returns whether this is the end, the time in seconds, the arrays, and the metrics of started tasks.
    #[pyo3(signature = (user=None))]
    fn step<'py>(&self, py: Python<'py>, user: Option<u32>) -> PyResult<(bool, f64, Arrays<'py>, Metrics)> {
        let snapshot = py.detach(|| {
            self.answer(user);
            self.receive()
        });
        let Some(s) = snapshot else { return Err(ended(py)) };
        let matrix = |values: Vec<f64>| -> PyResult<Bound<'py, PyArray2<f64>>> {
            let rows = s.waiting.len();
            let array = Array2::from_shape_vec((rows, s.width), values);
            Ok(array.map_err(|error| environment_error(py, error))?.into_pyarray(py))
        };
        let arrays = (
            s.waiting.clone().into_pyarray(py),
            matrix(s.shares)?,
            matrix(s.demand)?,
            s.age_s.into_pyarray(py),
            s.queued.into_pyarray(py),
            s.mean_wait_s.into_pyarray(py),
            s.free.into_pyarray(py),
        );
        Ok((s.is_end, s.now_s, arrays, s.metrics))
    }

    /// Ends the simulation.
    fn close(&self) {
        self.channels().take();
    }
}

impl Episode {
    fn channels(&self) -> MutexGuard<'_, Option<Channels>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the simulation go on with a decision, or begin.
    fn answer(&self, user: Option<u32>) {
        if let (Some((answer, _)), Some(user)) = (self.channels().as_ref(), user) {
            // If the simulation has ended, there will be no next decision either.
            let _ = answer.send(UserId(user));
        }
    }

    /// Waits for the next decision; `None`: the simulation has ended.
    fn receive(&self) -> Option<Snapshot> {
        self.channels().as_ref()?.1.recv().ok()
    }
}

fn ended(py: Python<'_>) -> PyErr {
    input_error(py, "the episode has ended, expected a reset")
}

/// Takes a step of each of several episodes, whose simulations go on at the same time: see `Episode.step`.
///
/// Returns for each episode whether this is the end and the time, then the arrays of all (one row for each episode), and
/// the metrics by name.
#[pyfunction]
pub(crate) fn step_all<'py>(
    py: Python<'py>,
    episodes: Vec<Py<Episode>>,
    users: Vec<Option<u32>>,
) -> PyResult<Steps<'py>> {
    if episodes.len() != users.len() {
        let error = format!("found {} decisions, expected one for each of {} episodes", users.len(), episodes.len());
        return Err(input_error(py, error));
    }
    let episodes: Vec<&Episode> = episodes.iter().map(Py::get).collect();
    let snapshots: Option<Vec<Snapshot>> = py.detach(|| {
        episodes.iter().zip(&users).for_each(|(episode, user)| episode.answer(*user));
        episodes.iter().map(|episode| episode.receive()).collect()
    });
    let Some(all) = snapshots else { return Err(ended(py)) };
    let (n, width) = all.first().map_or((0, 0), |s| (s.waiting.len(), s.width));
    if all.iter().any(|s| (s.waiting.len(), s.width) != (n, width)) {
        return Err(input_error(py, "the episodes differ in their users or resources"));
    }
    let k = all.len();
    let shape = |error: numpy::ndarray::ShapeError| environment_error(py, error);
    let cube = |of: fn(&Snapshot) -> &[f64]| -> PyResult<Bound<'py, PyArray3<f64>>> {
        Ok(Array3::from_shape_vec((k, n, width), joined(&all, of)).map_err(shape)?.into_pyarray(py))
    };
    let matrix = |columns: usize, of: fn(&Snapshot) -> &[f64]| -> PyResult<Bound<'py, PyArray2<f64>>> {
        Ok(Array2::from_shape_vec((k, columns), joined(&all, of)).map_err(shape)?.into_pyarray(py))
    };
    let arrays = (
        Array2::from_shape_vec((k, n), joined(&all, |s| &s.waiting)).map_err(shape)?.into_pyarray(py),
        cube(|s| &s.shares)?,
        cube(|s| &s.demand)?,
        matrix(n, |s| &s.age_s)?,
        Array2::from_shape_vec((k, n), joined(&all, |s| &s.queued)).map_err(shape)?.into_pyarray(py),
        matrix(n, |s| &s.mean_wait_s)?,
        matrix(width, |s| &s.free)?,
    );
    let column = |of: &dyn Fn(&Snapshot) -> f64| all.iter().map(of).collect::<Vec<_>>().into_pyarray(py);
    let metrics = Metrics::COLUMNS.iter().map(|(name, of)| (*name, column(&|s| of(&s.metrics)))).collect();
    let ends = all.iter().map(|s| s.is_end).collect::<Vec<_>>().into_pyarray(py);
    Ok((ends, column(&|s| s.now_s), arrays, metrics))
}

/// Of several episodes: whether each is at its end, its time, the arrays, and the metrics by name.
type Steps<'py> = (
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
    Batch<'py>,
    HashMap<&'static str, Bound<'py, PyArray1<f64>>>,
);

/// The arrays of a step of several episodes.
type Batch<'py> = (
    Bound<'py, PyArray2<i8>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<i64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);

fn joined<T: Clone>(all: &[Snapshot], of: impl Fn(&Snapshot) -> &[T]) -> Vec<T> {
    all.iter().flat_map(|snapshot| of(snapshot).iter().cloned()).collect()
}
