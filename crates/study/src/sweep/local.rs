//! The engine that runs points on the cores of this machine.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Prepared;

use crate::sweep::grid::Grid;
use crate::sweep::memory_budget::{MemoryBudget, MemoryNeed, Next};
use crate::sweep::point::Point;
use crate::sweep::run_point::{PointFailure, Problem, Watch, run_point};
use crate::sweep::sweep_folder::{Folder, StoredResult, SweepError};

/// The options of the local engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The maximum number of points that run at a time.
    pub threads: NonZeroUsize,
    /// The memory budget of workloads and runs together, in bytes; use is estimated.
    pub memory: u64,
}

/// Runs those of the points with these numbers whose results are not in the folder. Loads each workload once, shares it
/// among its points, and releases it after the last of them. A point that fails does not stop the others.
///
/// # Errors
/// Returns an error if a workload does not fit the memory, or a result cannot be written; finished points stay in the
/// folder.
pub fn run(
    grid: &Grid,
    points: &[Point],
    digests: &[String],
    numbers: &[usize],
    folder: &Folder,
    options: Options,
    watch: &Watch,
) -> Result<Vec<PointFailure>, SweepError> {
    let pending: Vec<&Point> = folder.missing_of(digests, numbers).into_iter().filter_map(|n| points.get(n)).collect();
    let tasks = sizes(grid, &pending)?;
    let needs: BTreeMap<usize, MemoryNeed> =
        tasks.iter().map(|(w, tasks)| (*w, MemoryNeed::of_tasks(*tasks))).collect();
    for (workload, need) in &needs {
        if need.minimum() > options.memory {
            return Err(too_large(grid, *workload, tasks[workload], options.memory));
        }
    }
    watch.expect(pending.len(), pending.iter().map(|p| tasks[&p.workload]).sum());
    let order: Vec<usize> = pending.iter().map(|p| p.workload).collect();
    let state = State {
        budget: MemoryBudget::new(options.memory, order, &needs),
        loaded: BTreeMap::new(),
        failures: Vec::new(),
        stopped: None,
    };
    let engine = Engine {
        grid,
        digests,
        folder,
        pending,
        tasks,
        memory: options.memory,
        watch,
        state: Mutex::new(state),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.get().min(engine.pending.len()) {
            scope.spawn(|| engine.work(options.threads));
        }
    });
    let State { mut failures, stopped, .. } = engine.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.iter_mut().for_each(|f| f.points.sort_unstable());
    failures.sort_by_key(|f| f.points.first().copied());
    stopped.map_or(Ok(failures), Err)
}

/// Returns the number of tasks of each workload that points need, by its index.
pub(crate) fn sizes(grid: &Grid, points: &[&Point]) -> Result<BTreeMap<usize, u64>, SweepError> {
    let mut tasks = BTreeMap::new();
    for point in points {
        if let std::collections::btree_map::Entry::Vacant(entry) = tasks.entry(point.workload) {
            let workload = &grid.workloads[point.workload];
            let size = workload.size().map_err(|source| SweepError::Read { path: workload.name().into(), source })?;
            entry.insert(size.tasks);
        }
    }
    Ok(tasks)
}

fn too_large(grid: &Grid, workload: usize, tasks: u64, budget: u64) -> SweepError {
    let need = MemoryNeed::of_tasks(tasks).minimum();
    SweepError::Memory { workload: grid.workloads[workload].name(), tasks, need, budget }
}

struct State {
    budget: MemoryBudget,
    loaded: BTreeMap<usize, Arc<Prepared>>,
    failures: Vec<PointFailure>,
    /// An error that stops the sweep, such as a full disk.
    stopped: Option<SweepError>,
}

impl State {
    /// Adds points that failed; those with the same error are reported together.
    fn fail(&mut self, points: &[usize], problem: Problem) {
        let Problem { sentence, environment } = problem;
        match self.failures.iter_mut().find(|f| f.sentence == sentence) {
            Some(failure) => failure.points.extend(points),
            None => self.failures.push(PointFailure { points: points.to_vec(), sentence, environment }),
        }
    }
}

struct Engine<'a> {
    grid: &'a Grid,
    digests: &'a [String],
    folder: &'a Folder,
    pending: Vec<&'a Point>,
    tasks: BTreeMap<usize, u64>,
    memory: u64,
    watch: &'a Watch,
    state: Mutex<State>,
    changed: Condvar,
}

/// Cancels the sweep if a worker panics, so that the others end.
struct StopOnPanic<'a>(&'a Watch);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

impl Engine<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, threads: NonZeroUsize) {
        let _guard = StopOnPanic(self.watch);
        let mut state = self.lock();
        while !self.watch.is_cancelled() {
            match state.budget.begin() {
                Next::Done => return,
                // With a timeout, because a cancellation does not signal this condition variable.
                Next::Wait => {
                    state = self
                        .changed
                        .wait_timeout(state, Duration::from_millis(100))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
                Next::Load(workload) => {
                    drop(state);
                    let accounts = self.grid.accounts.as_ref().map(|(_, path)| path.as_path());
                    let loaded = self.grid.workloads[workload].load(accounts, Some(threads));
                    state = self.lock();
                    self.workload_loaded(&mut state, workload, loaded);
                    self.changed.notify_all();
                }
                Next::Run(at) => {
                    let point = self.pending[at];
                    let Some(prepared) = state.loaded.get(&point.workload).map(Arc::clone) else { return };
                    drop(state);
                    let ran = self.run_point(point, &prepared);
                    drop(prepared);
                    state = self.lock();
                    match ran {
                        Ok(None) => {}
                        Ok(Some(problem)) => state.fail(&[point.number], problem),
                        Err(error) => {
                            state.stopped.get_or_insert(error);
                            self.watch.cancel();
                        }
                    }
                    if let Some(done) = state.budget.ended(at) {
                        state.loaded.remove(&done);
                    }
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Notes that a workload was loaded, or that it could not be.
    fn workload_loaded(&self, state: &mut State, workload: usize, loaded: Result<Prepared, Problem>) {
        let numbers = || self.pending.iter().filter(|p| p.workload == workload).map(|p| p.number).collect::<Vec<_>>();
        match loaded {
            Err(problem) => {
                state.budget.skip_workload(workload);
                state.fail(&numbers(), problem);
            }
            Ok(prepared) => {
                let tasks = prepared.workload().tasks();
                if state.budget.loaded(workload, MemoryNeed::of_tasks(tasks)) {
                    state.loaded.insert(workload, Arc::new(prepared));
                } else {
                    let problem = Problem::input(too_large(self.grid, workload, tasks, self.memory));
                    state.fail(&numbers(), problem);
                }
                self.watch.correct(numbers().len() as u64, self.tasks[&workload], tasks);
            }
        }
    }

    /// Runs a point and stores its result. Returns the problem of a point that failed.
    fn run_point(&self, point: &Point, prepared: &Prepared) -> Result<Option<Problem>, SweepError> {
        match run_point(self.grid, point, prepared, self.watch) {
            Ok(None) => Ok(None),
            Err(problem) => Ok(Some(problem)),
            Ok(Some(run)) => {
                let workload = prepared.record(&self.grid.workloads[point.workload].name());
                let result = StoredResult { digest: self.digests[point.number].clone(), workload, run };
                self.folder.store_result(&result).map(|()| None)
            }
        }
    }
}
