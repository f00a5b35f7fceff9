//! Processes that alternate between time-shared resources, scheduled by bottleneck-based priorities.
//!
//! The simulator of Zeldes and Feitelson, "On-line fair allocations based on bottlenecks and global priorities" (ICPE
//! 2013): each client has one priority, the minimal gap between its entitlement and its consumption among the
//! bottleneck resources, and all resources serve in the order of this one priority. Programs are written in the paper's
//! language; other schedulers run on the same scenarios.
//!
//! ```
//! use evenhand_processes::{Client, Parameters, Program, Recording, Scenario};
//! // The paper's Figure 2: red has the CPU alone for 5 s, then shares it 1:2 with blue.
//! let program = |text| Program::parse("example", text);
//! let red = program("# Priority:\n33\n# Requests:\nloop 1\nCPU_CS 10 0 NORM\n")?;
//! let blue = program("# Priority:\n67\n# Requests:\nloop 1\nidle 5 0 NORM\nCPU_CS 5 0 NORM\n")?;
//! let clients = vec![Client::new("red", red), Client::new("blue", blue)];
//! let scenario = Scenario::new(clients, vec![], Parameters::default()).unwrap();
//! let (outcome, recording) = scenario.record(Recording::new());
//! assert_eq!(outcome.finish[0].unwrap().to_string(), "15");
//! assert_eq!(recording.services.len(), 150); // quanta of 0.1 s
//! # Ok::<(), evenhand_documents::DocumentError>(())
//! ```
//!
//! Runs are deterministic: the same scenario and seed give the same bytes. Memory is proportional to the window, not to
//! the run, unless a [`Recording`] is kept.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ensemble;
mod entitlement_accrual;
mod expected_length;
mod integer_weights;
mod offline_comparison;
mod parse_program;
mod program;
mod read_scenario;
mod recording;
mod scenario;
mod scheduler;
mod schedulers;
mod simulation;
mod steady_state;
mod thread;
mod usage_window;

pub use ensemble::{Curves, Ensemble, Statistic, ensemble};
pub use offline_comparison::{OfflineComparison, OfflineError, SteadyInterval, compare_offline};
pub use program::{Distribution, IDLE, Phase, Program, Step};
pub use read_scenario::{read_programs, read_scenario};
pub use recording::{BottleneckInterval, NoObserver, Observer, Recording, Service};
pub use scenario::{
    Asynchronous, Client, PREEMPTIVE_SUFFIX, Parameters, Reading, ResourceSettings, Scenario, ScenarioError, TieBreak,
};
pub use scheduler::{SCHEDULERS, SchedulerRegistration, scheduler_named};
pub use simulation::Outcome;
pub use steady_state::{SteadyState, SteadyStateError, compare_steady_state};
