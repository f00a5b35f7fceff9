//! Slurm's scheduler: jobs start at their submission, in passes of the main scheduler, or by backfill.
//!
//! Each of the three has its own clock and bounds, with the names of slurm.conf(5) in [`SlurmOptions`].
//! docs/src/reference/slurm-scheduler.md defines the behaviour exactly.

mod attempts;
mod backfill;
mod charges;
mod choice;
mod clocks;
mod closed_nodes;
mod engine;
mod freed_chunks;
mod jobs_on_nodes;
mod looked_arrays;
mod main_pass;
mod node_set;
mod node_space;
mod nodes;
mod options;
mod outlook;
mod planned_licences;
mod preemption;
mod preemptors_first;
mod queue;
mod results;
mod running;
mod shapes;
mod shared_nodes;
mod submission;
mod suspension;
mod tasks_on_nodes;

pub(in crate::jobs) use engine::Engine;
pub use options::{PreemptType, SlurmOptions};
pub use results::{Activity, Preemptions, SlurmResults};
