//! Runs single points and reports their progress.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::RunRecord;
use crate::{
    JobRules, Point as StudyPoint, PointError, PolicyInputs, Prepared, RequestedCapacity, read_pool, read_weights,
};
use evenhand_model::Weights;
use evenhand_simulator::{Progress, SimulationError};

use crate::sweep::grid::{CapacityAxis, Grid, WeightsAxis};
use crate::sweep::point::Point;

/// An error message, and whether the environment failed.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) sentence: String,
    pub(crate) environment: bool,
}

impl Problem {
    pub(crate) fn input(error: impl std::fmt::Display) -> Problem {
        Problem { sentence: error.to_string(), environment: false }
    }
}

/// The points that failed with the same error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointFailure {
    /// Their numbers.
    pub points: Vec<usize>,
    /// The error.
    pub sentence: String,
    /// Whether the environment failed, and not the input.
    pub environment: bool,
}

/// The progress of a running sweep, and the way to stop it.
#[derive(Debug, Default)]
pub struct Watch {
    cancel: AtomicBool,
    points: AtomicUsize,
    points_done: AtomicUsize,
    tasks: AtomicU64,
    tasks_done: AtomicU64,
    running: Mutex<Vec<Arc<Progress>>>,
}

impl Watch {
    /// Stops the running points soon. Finished results stay.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.running().iter().for_each(|p| p.cancel.store(true, Ordering::Relaxed));
    }

    /// Returns whether the sweep was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Returns the number of points to run, and the number of finished ones.
    pub fn points(&self) -> (usize, usize) {
        (self.points.load(Ordering::Relaxed), self.points_done.load(Ordering::Relaxed))
    }

    /// Returns the total number of tasks that all points simulate, as far as it is known, and the number done.
    pub fn tasks(&self) -> (u64, u64) {
        let running: u64 = self.running().iter().map(|p| p.tasks.load(Ordering::Relaxed)).sum();
        (self.tasks.load(Ordering::Relaxed), self.tasks_done.load(Ordering::Relaxed) + running)
    }

    /// Sets the number of points and tasks to run.
    pub(crate) fn expect(&self, points: usize, tasks: u64) {
        self.points.store(points, Ordering::Relaxed);
        self.tasks.store(tasks, Ordering::Relaxed);
    }

    /// Corrects the number of tasks of points whose workload has another number than expected.
    pub(crate) fn correct(&self, points: u64, expected: u64, found: u64) {
        self.tasks.fetch_add(points.wrapping_mul(found.wrapping_sub(expected)), Ordering::Relaxed);
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Progress>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        self.running().push(Arc::clone(&progress));
        // After it is in the list: a later cancellation finds it there, an earlier one is seen here.
        progress.cancel.store(self.is_cancelled(), Ordering::Relaxed);
        progress
    }

    fn end(&self, progress: &Arc<Progress>, tasks: Option<u64>) {
        let mut running = self.running();
        running.retain(|p| !Arc::ptr_eq(p, progress));
        if let Some(tasks) = tasks {
            self.tasks_done.fetch_add(tasks, Ordering::Relaxed);
            self.points_done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Runs a point. Returns `None` if it was cancelled. The record has no time series.
pub(crate) fn run_point(
    grid: &Grid,
    point: &Point,
    prepared: &Prepared,
    watch: &Watch,
) -> Result<Option<RunRecord>, Problem> {
    let workload = prepared.workload();
    let document =
        |e: evenhand_documents::DocumentError| Problem { environment: e.is_environment(), sentence: e.to_string() };
    let weights = match (&grid.weights[point.weights], prepared.accounts()) {
        (_, Some(tree)) => tree.weights(),
        (WeightsAxis::Equal, None) => Weights::equal(workload.users().len()),
        (WeightsAxis::File(_, path), None) => read_weights(path, workload.users()).map_err(document)?.0,
    };
    let inputs = PolicyInputs {
        registry: grid.registry.clone(),
        weights,
        accounts: prepared.accounts().cloned(),
        settings: grid.variants[point.variant].settings.clone(),
        order: grid.order,
        site: None,
    };
    let capacity = match &grid.capacities[point.capacity] {
        CapacityAxis::Multiple(name, factor) => RequestedCapacity::Multiple(name.clone(), factor.clone()),
        CapacityAxis::File(name, path) => {
            RequestedCapacity::Pool(name.clone(), read_pool(path, workload.resources()).map_err(document)?.0)
        }
    };
    let asked = StudyPoint {
        policy: point.registration(grid).name,
        decay: point.decay(grid).map(|axis| axis.decay),
        capacity: &capacity,
        inputs: &inputs,
        blocking: !point.no_blocking,
        until_trace_end: point.until_trace_end,
        jobs: JobRules { backfill: grid.schedulers[point.scheduler], ..JobRules::default() },
    };
    let progress = watch.begin();
    let ran = prepared.run(&asked, &progress);
    watch.end(&progress, ran.is_ok().then(|| prepared.workload().tasks()));
    match ran {
        Ok(mut record) => {
            record.series = Default::default();
            Ok(Some(record))
        }
        Err(PointError::Simulation(SimulationError::Cancelled)) => Ok(None),
        Err(error) => Err(Problem::input(error)),
    }
}
