//! Experiments, their settings and their outcomes.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use evenhand_mechanisms::{MechanismError, ProblemError};
use evenhand_model::{CapacityError, Workload};
use evenhand_report::chart::Figure;
use evenhand_simulator::SimulationError;
use evenhand_timeline::{ScenarioError, TimelineError};
use evenhand_workload::generate::GenerateError;
use thiserror::Error;

use crate::poullie::{RecordingError, Recordings};
use crate::sadok::Grid;

/// One figure of a paper.
pub struct Experiment {
    /// The paper's id: `sadok`.
    pub paper: &'static str,
    /// The figure, as in `figure-1b`.
    pub figure: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// How we set it up: the paper's numbers, and what we chose where it gives none.
    pub setting: &'static str,
    pub(crate) run: fn(&Settings) -> Result<Outcome, ReproduceError>,
}

impl Experiment {
    /// Returns paper and figure: `sadok/figure-1b`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.paper, self.figure)
    }

    /// Runs it.
    ///
    /// # Errors
    /// If the trace given does not fit, or something that ought to be possible is not.
    pub fn run(&self, settings: &Settings) -> Result<Outcome, ReproduceError> {
        (self.run)(settings)
    }
}

/// What can be chosen about experiments; what several of them need is computed once.
#[derive(Debug)]
pub struct Settings {
    pub(crate) seed: u64,
    /// Every row one task.
    pub(crate) trace: Option<Arc<Workload>>,
    pub(crate) tasks: u64,
    pub(crate) grids: OnceLock<Vec<Grid>>,
    recordings: OnceLock<Recordings>,
}

/// How many tasks a generated month has if nothing else is said: what some ninety runs do in a minute or two.
const TASKS: u64 = 1_000_000;

impl Settings {
    /// With the seed of what is random, no trace, and a month of a million tasks.
    pub fn new(seed: u64) -> Settings {
        Settings { seed, trace: None, tasks: TASKS, grids: OnceLock::new(), recordings: OnceLock::new() }
    }

    /// With the trace to use where a paper uses one.
    pub fn trace(self, trace: Option<Workload>) -> Settings {
        Settings { trace: trace.map(|trace| Arc::new(trace.expanded())), grids: OnceLock::new(), ..self }
    }

    /// With recordings of Poullie et al.'s experiments other than ours.
    pub fn recordings(self, recordings: Recordings) -> Settings {
        Settings { recordings: OnceLock::from(recordings), ..self }
    }

    /// What Poullie et al.'s figures are drawn from.
    pub(crate) fn recorded(&self) -> Result<&Recordings, RecordingError> {
        match self.recordings.get() {
            Some(recordings) => Ok(recordings),
            None => Recordings::ours().map(|ours| self.recordings.get_or_init(|| ours)),
        }
    }

    /// With so many tasks in a generated month; the paper's has 32 million.
    pub fn tasks(self, tasks: Option<u64>) -> Settings {
        Settings { tasks: tasks.unwrap_or(TASKS), grids: OnceLock::new(), ..self }
    }
}

/// A figure and its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The figure; its name is that of its files.
    pub figure: Figure,
    /// The data, as comma-separated values.
    pub csv: String,
}

/// Whether something a paper states holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the paper states.
    pub statement: String,
    /// What we got.
    pub measured: String,
    /// Whether it holds.
    pub holds: bool,
}

impl Verdict {
    pub(crate) fn new(statement: impl Into<String>, measured: impl Into<String>, holds: bool) -> Verdict {
        Verdict { statement: statement.into(), measured: measured.into(), holds }
    }
}

/// What comes of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// In the order in which they should be looked at.
    pub drawn: Vec<Drawn>,
    /// What is stated, one after another.
    pub verdicts: Vec<Verdict>,
    /// What else there is to know, in sentences.
    pub notes: Vec<String>,
}

/// Why there is no outcome.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// A trace without what the experiment needs.
    #[error("the trace has {found}, expected {expected}")]
    Trace {
        /// What it has.
        found: String,
        /// What is needed.
        expected: &'static str,
    },
    /// A mistake in an experiment: its scenario is none.
    #[error("the experiment's scenario: {0}")]
    Scenario(#[from] ScenarioError),
    /// Likewise.
    #[error("the experiment's processes: {0}")]
    Processes(#[from] evenhand_processes::ScenarioError),
    /// Likewise.
    #[error("the experiment's division over time: {0}")]
    Timeline(#[from] TimelineError),
    /// Likewise.
    #[error("the experiment's problem: {0}")]
    Problem(#[from] ProblemError),
    /// Likewise.
    #[error("the experiment's division: {0}")]
    Mechanism(#[from] MechanismError),
    /// Likewise.
    #[error("the experiment's workload: {0}")]
    Generate(#[from] GenerateError),
    /// A workload of which no pool can be made.
    #[error("the pool: {0}")]
    Capacity(#[from] CapacityError),
    /// A workload that cannot be simulated.
    #[error("the simulation: {0}")]
    Simulation(#[from] SimulationError),
    /// A recording of Poullie et al.'s experiments that is none.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Likewise a mistake.
    #[error("the experiment's set-up: {0}")]
    Setup(String),
    /// The results could not be written.
    #[error("cannot write {}: {source}; free some space, allow writing there, or choose another folder", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ReproduceError {
    /// Whether the environment is to blame rather than the input.
    pub fn is_environment(&self) -> bool {
        matches!(self, ReproduceError::Write { .. })
    }
}
