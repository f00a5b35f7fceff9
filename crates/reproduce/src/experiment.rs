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
    /// The figure's name: `figure-1b`; for a paper without figures the experiment's: `memory`.
    pub figure: &'static str,
    /// The topic of the figure, in one line.
    pub title: &'static str,
    /// The set-up: the paper's numbers, and our choices where the paper gives none.
    pub setting: &'static str,
    pub(crate) run: fn(&Settings) -> Result<Outcome, ReproduceError>,
}

impl Experiment {
    /// Returns paper and figure: `sadok/figure-1b`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.paper, self.figure)
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// Returns an error if the trace or the recordings of `settings` lack what the experiment needs, or if the set-up
    /// itself is invalid (a mistake in this crate).
    pub fn run(&self, settings: &Settings) -> Result<Outcome, ReproduceError> {
        (self.run)(settings)
    }
}

/// The settings of experiments. Results that several experiments need are computed once and kept here.
#[derive(Debug)]
pub struct Settings {
    pub(crate) seed: u64,
    /// One task per row.
    pub(crate) trace: Option<Arc<Workload>>,
    pub(crate) tasks: u64,
    pub(crate) grids: OnceLock<Vec<Grid>>,
    recordings: OnceLock<Recordings>,
}

/// Tasks of a generated month by default: the ninety or so simulations of Sadok et al. then take a minute or two.
const TASKS: u64 = 1_000_000;

impl Settings {
    /// Returns settings with this random seed, no trace, and a generated month of a million tasks.
    pub fn new(seed: u64) -> Settings {
        Settings { seed, trace: None, tasks: TASKS, grids: OnceLock::new(), recordings: OnceLock::new() }
    }

    /// Sets the trace for experiments that use one.
    pub fn trace(self, trace: Option<Workload>) -> Settings {
        Settings { trace: trace.map(|trace| Arc::new(trace.expanded())), grids: OnceLock::new(), ..self }
    }

    /// Replaces the bundled recordings of Poullie et al.'s experiments.
    pub fn recordings(self, recordings: Recordings) -> Settings {
        Settings { recordings: OnceLock::from(recordings), ..self }
    }

    /// Returns the recordings of Poullie et al.'s experiments: those set, or the bundled ones.
    pub(crate) fn poullie_recordings(&self) -> Result<&Recordings, RecordingError> {
        match self.recordings.get() {
            Some(recordings) => Ok(recordings),
            None => Recordings::bundled().map(|bundled| self.recordings.get_or_init(|| bundled)),
        }
    }

    /// Sets the number of tasks of a generated month; the month of Sadok et al. has 32 million.
    pub fn tasks(self, tasks: Option<u64>) -> Settings {
        Settings { tasks: tasks.unwrap_or(TASKS), grids: OnceLock::new(), ..self }
    }
}

/// A figure and its data.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureWithData {
    /// The figure; its files have its name.
    pub figure: Figure,
    /// The data, as comma-separated values.
    pub csv: String,
}

/// A statement of a paper, the measured result, and whether the statement holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The paper's statement.
    pub statement: String,
    /// The measured result.
    pub measured: String,
    /// Whether the statement holds.
    pub holds: bool,
}

impl Verdict {
    pub(crate) fn new(statement: impl Into<String>, measured: impl Into<String>, holds: bool) -> Verdict {
        Verdict { statement: statement.into(), measured: measured.into(), holds }
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The figures, in reading order.
    pub figures: Vec<FigureWithData>,
    /// The verdicts, in the order of the paper's statements.
    pub verdicts: Vec<Verdict>,
    /// Remarks, such as the effect of another choice in the set-up.
    pub notes: Vec<String>,
}

/// An error of an experiment.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// The trace lacks a resource or tasks that the experiment needs.
    #[error("the trace has {found}, expected {expected}")]
    Trace {
        /// What the trace has.
        found: String,
        /// What the experiment needs.
        expected: &'static str,
    },
    /// The experiment's scenario of phases is invalid.
    #[error("the experiment's scenario: {0}")]
    Scenario(#[from] ScenarioError),
    /// The experiment's scenario of processes is invalid.
    #[error("the experiment's processes: {0}")]
    Processes(#[from] evenhand_processes::ScenarioError),
    /// The experiment's division over time failed.
    #[error("the experiment's division over time: {0}")]
    Timeline(#[from] TimelineError),
    /// The experiment's allocation problem is invalid.
    #[error("the experiment's problem: {0}")]
    Problem(#[from] ProblemError),
    /// A mechanism could not solve the experiment's problem.
    #[error("the experiment's division: {0}")]
    Mechanism(#[from] MechanismError),
    /// The experiment's workload could not be generated.
    #[error("the experiment's workload: {0}")]
    Generate(#[from] GenerateError),
    /// The capacity of a pool could not be derived from the workload.
    #[error("the pool: {0}")]
    Capacity(#[from] CapacityError),
    /// A simulation failed.
    #[error("the simulation: {0}")]
    Simulation(#[from] SimulationError),
    /// A recording of Poullie et al.'s experiments is missing or invalid.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Another part of the experiment's set-up is invalid.
    #[error("the experiment's set-up: {0}")]
    Setup(String),
    /// The results could not be written.
    #[error("cannot write {}: {source}; free some space, allow writing there, or choose another folder", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl ReproduceError {
    /// Returns whether the environment caused the error, rather than the input.
    pub fn is_environment(&self) -> bool {
        matches!(self, ReproduceError::Write { .. })
    }
}
