//! The simulations of Figures 4 to 6, on a generated month and on a trace.

use std::sync::{Arc, OnceLock};

use evenhand_model::{Capacity, MeanUse, Quantity, Time, Weights, Workload, mean_use};
use evenhand_policies::{Decay, Order};
use evenhand_report::chart::Axis;
use evenhand_report::chart::{Scale, Unit};
use evenhand_simulator::{Metrics, PoolOptions, Progress, SimulationError, UserTasks};
use evenhand_study::record::{ComparisonRecord, RunRecord};
use evenhand_study::{PolicyInputs, ReplayOn, compare, heavy_users, replay};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
use rayon::prelude::*;

use crate::{ReproduceError, Settings};

/// The paper's capacities: multiples of R, the workload's own mean use.
pub(super) const CAPACITIES: [&str; 6] = ["0.5", "0.6", "0.7", "0.8", "0.9", "1.0"];
/// delta = 1 - 10^-k a second for these k.
pub(super) const EXPONENTS: [usize; 7] = [1, 2, 3, 4, 5, 6, 7];
/// Indices of the cell that the paper discusses in detail: half of R, delta = 1 - 10^-6.
pub(super) const HALF: usize = 0;
pub(super) const BEST: usize = 5;
/// The users and days of the paper's month.
pub(super) const USERS: u32 = 627;
const DAYS: f64 = 29.0;

pub(super) const SETTING: &str = "The paper simulates the month of Google's trace of 2011: 32 million tasks of 627 users, \
     on pools of 50 to 100 % of R, the mean use of that month, under drf and sdrf with delta = 1 - 10^-1 to 1 - 10^-7 \
     a second. That month does not come with evenhand, so a similar month is generated: 627 users, 29 days, --tasks tasks. \
     The statements are also tested on the trace of --data. A run stops where the workload ends: at half of R the \
     remaining tasks never start. Waits are those of started tasks. A task that does not fit stops all scheduling \
     (Algorithm 1). Key: the largest sum of share and commitment (Algorithm 1); the notes report the changes with the \
     other key (Eq. 5, and the authors' code).";

/// The key by which sdrf orders users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// max (share + commitment): Algorithm 1.
    Sum,
    /// max share + max commitment: Eq. 5 and the authors' code.
    Dominant,
}

/// One simulation of the grid: indices into [`CAPACITIES`] and [`EXPONENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) capacity: usize,
    /// `None`: drf.
    pub(super) stateful: Option<(Key, usize)>,
}

impl Cell {
    pub(super) fn drf(capacity: usize) -> Cell {
        Cell { capacity, stateful: None }
    }

    pub(super) fn sdrf(capacity: usize, key: Key, exponent: usize) -> Cell {
        Cell { capacity, stateful: Some((key, exponent)) }
    }

    fn index(self) -> usize {
        let policy = match self.stateful {
            None => 0,
            Some((Key::Sum, exponent)) => 1 + exponent,
            Some((Key::Dominant, exponent)) => 1 + EXPONENTS.len() + exponent,
        };
        self.capacity * (1 + 2 * EXPONENTS.len()) + policy
    }

    /// Returns drf at every capacity, or sdrf with one key at every capacity and every delta.
    pub(super) fn all(key: Option<Key>) -> Vec<Cell> {
        let capacities = 0..CAPACITIES.len();
        match key {
            None => capacities.map(Cell::drf).collect(),
            Some(key) => capacities
                .flat_map(|c| (0..EXPONENTS.len()).map(move |exponent| Cell::sdrf(c, key, exponent)))
                .collect(),
        }
    }
}

/// A workload and its simulations so far: each is run once and shared by the figures.
#[derive(Debug)]
pub(crate) struct Grid {
    /// `generated month` or `trace`
    pub(super) name: &'static str,
    workload: Arc<Workload>,
    tasks: UserTasks,
    weights: Weights,
    until: Time,
    capacities: Vec<Capacity>,
    runs: Vec<OnceLock<Result<RunRecord, SimulationError>>>,
}

/// Returns the grids of these settings: of the generated month, and of the trace if there is one.
pub(super) fn grids(settings: &Settings) -> Result<&[Grid], ReproduceError> {
    if let Some(grids) = settings.grids.get() {
        return Ok(grids);
    }
    let options = GenerateOptions {
        model: TraceModel::Google2011,
        tasks: settings.tasks,
        users: USERS,
        days: DAYS,
        seed: settings.seed,
    };
    let mut grids = vec![Grid::new("generated month", Arc::new(generate(&options)?))?];
    if let Some(trace) = &settings.trace {
        grids.push(Grid::new("trace", Arc::clone(trace))?);
    }
    Ok(settings.grids.get_or_init(|| grids))
}

impl Grid {
    fn new(name: &'static str, workload: Arc<Workload>) -> Result<Grid, ReproduceError> {
        let mean_use: MeanUse = mean_use(&workload);
        let capacity = |factor: &&str| {
            let factor = Quantity::parse(factor).map_err(|e| ReproduceError::Setup(e.to_string()))?;
            Ok(Capacity::multiple(workload.resources(), &mean_use, &factor)?)
        };
        let last = workload.columns().submit.last().copied().unwrap_or_default();
        Ok(Grid {
            name,
            tasks: UserTasks::new(&workload),
            weights: Weights::equal(workload.users().len()),
            until: last.max(mean_use.last_finish),
            capacities: CAPACITIES.iter().map(capacity).collect::<Result<_, ReproduceError>>()?,
            runs: (0..CAPACITIES.len() * (1 + 2 * EXPONENTS.len())).map(|_| OnceLock::new()).collect(),
            workload,
        })
    }

    /// Returns by user whether it uses more than its entitlement of some resource.
    pub(super) fn heavy_users(&self) -> Vec<bool> {
        heavy_users(&self.workload, &self.weights)
    }

    /// Returns the length of the workload in days.
    pub(super) fn days(&self) -> f64 {
        let first = self.workload.columns().submit.first().copied().unwrap_or_default();
        (self.until - first).secs_f64() / 86_400.0
    }

    /// Describes the size of the workload.
    pub(super) fn about(&self) -> String {
        format!(
            "{}: {} tasks of {} users in {:.1} days",
            self.name,
            self.workload.tasks(),
            self.workload.users().len(),
            self.days()
        )
    }

    /// Returns the runs of `cells`, in that order. Simulates missing ones in parallel.
    pub(super) fn runs(&self, cells: &[Cell]) -> Result<Vec<&RunRecord>, ReproduceError> {
        cells
            .par_iter()
            .map(|cell| match self.runs[cell.index()].get_or_init(|| self.simulate(*cell)) {
                Ok(record) => Ok(record),
                Err(error) => Err(ReproduceError::Simulation(error.clone())),
            })
            .collect()
    }

    /// Compares each run under a key with drf at the same capacity: one row per capacity, one entry per delta.
    pub(super) fn against_drf(&self, key: Key) -> Result<Vec<Vec<ComparisonRecord>>, ReproduceError> {
        let runs = self.runs(&Cell::all(Some(key)))?;
        let drf = self.runs(&Cell::all(None))?;
        let row = |(runs, drf): (&[&RunRecord], &RunRecord)| runs.iter().map(|run| compare(run, drf)).collect();
        Ok(runs.chunks(EXPONENTS.len()).zip(drf).map(row).collect())
    }

    fn simulate(&self, cell: Cell) -> Result<RunRecord, SimulationError> {
        let name = match cell.stateful {
            None => "drf",
            Some((Key::Sum, _)) => "sdrf",
            Some((Key::Dominant, _)) => "sdrf-dominant",
        };
        let decay = cell.stateful.map(|(_, exponent)| decay(EXPONENTS[exponent]));
        let capacity = &self.capacities[cell.capacity];
        // Decisions do not depend on the structure that keeps the order; Figure 6 counts the changes in the live tree.
        let order = if matches!(cell.stateful, Some((Key::Sum, _))) { Order::LiveTree } else { Order::Auto };
        let inputs = PolicyInputs { order, ..PolicyInputs::new(self.weights.clone()) };
        let context = inputs.context(&self.workload, capacity, None, decay);
        let mut policy = inputs.registry.build(name, &context).expect("a built-in policy with a decay");
        let on = ReplayOn::Pool { capacity, options: PoolOptions { blocking: true, until: Some(self.until) } };
        let ran = replay(&self.workload, &self.tasks, on, policy.as_mut(), &Progress::default())?;
        let metrics = Metrics::measure(&self.workload, &self.tasks, capacity, &ran, None);
        Ok(RunRecord {
            id: format!("{name}-{}", CAPACITIES[cell.capacity]),
            policy: name.into(),
            users: metrics.users,
            mean_wait_s: metrics.mean_wait_s,
            users_mean_wait_s: metrics.users_mean_wait_s,
            totals: metrics.totals,
            order_events: ran.order_events,
            ..RunRecord::default()
        })
    }
}

/// Returns the decay with delta = 1 - 10^-k per second, exactly.
pub(super) fn decay(exponent: usize) -> Decay {
    let text = format!("0.{}", "9".repeat(exponent));
    let delta = Quantity::parse(&text).expect("nines after a point");
    Decay::from_delta(&delta).expect("between 0 and 1")
}

/// Formats a delta: `1 - 10^-6`.
pub(super) fn delta_named(exponent: usize) -> String {
    format!("1 - 10^-{}", EXPONENTS[exponent])
}

/// Formats a capacity: `50 % of R`.
pub(super) fn capacity_named(capacity: usize) -> String {
    format!("{} % of R", 50 + 10 * capacity)
}

/// Returns the horizontal axis of Figures 4 and 6.
pub(super) fn delta_axis() -> Axis {
    Axis {
        title: "k, where delta = 1 - 10^-k per second".into(),
        unit: Unit::Number,
        scale: Scale::fixed(1.0, 7.0, Unit::Number),
    }
}

/// Returns the note that reports a missing trace, if there is none.
pub(super) fn skipped(settings: &Settings) -> Option<String> {
    let missing =
        "on a real trace: skipped, because none was given (--data TRACE, in any format of evenhand workload import)";
    settings.trace.is_none().then(|| missing.into())
}
