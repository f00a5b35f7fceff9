//! Episodes for learning: a simulation that asks step by step who starts next.
//!
//! The simulator calls a policy; a learner calls a step. So the simulation runs on a thread of its own with a policy that
//! waits for the learner's answer, and the two alternate. The policy never touches Python.

mod standings;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use evenhand_model::{Capacity, Quantity, Rational, Time, UserId, Workload, mean_use};
use evenhand_policies::{Job, Policy, Standing};
use evenhand_simulator::{PoolOptions, Progress, UserTasks, simulate};
use evenhand_workload::store;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
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
    channels: Mutex<Option<(SyncSender<UserId>, Receiver<Snapshot>)>>,
}

#[pymethods]
impl Episode {
    /// Starts the first waiting task of a user, and goes on to the next decision, or to the end. Without a user: to the
    /// first decision.
    ///
    /// Returns whether this is the end, the time in seconds, the arrays, and the metrics of started tasks.
    #[pyo3(signature = (user=None))]
    fn step<'py>(&self, py: Python<'py>, user: Option<u32>) -> PyResult<(bool, f64, Arrays<'py>, Metrics)> {
        let snapshot = py.detach(|| {
            let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
            let (answer, asked) = channels.as_ref()?;
            if let Some(user) = user {
                answer.send(UserId(user)).ok()?;
            }
            asked.recv().ok()
        });
        let Some(s) = snapshot else { return Err(input_error(py, "the episode has ended, expected a reset")) };
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
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
