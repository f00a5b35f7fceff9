//! A sweep: a grid over workloads, policies, capacities, decays, weights and rules; one point of it is one run.
//!
//! A [`Grid`] is read from a file and laid out as [`Point`]s in a documented order. An engine runs the points that a
//! [`Folder`] does not hold yet: [`local`] on the cores of this machine under a memory budget, [`slurm_arrays`] as job
//! arrays of a cluster. Each result is a file of its own, named by the digest of everything it depends on, so that any
//! engine can continue the work of another. [`summarize`] then writes byte-equal files from the results, whichever
//! engine ran which point, in any order, and with any number of interruptions.
//!
//! This module simulates nothing itself, and knows no policy by name: settings of policies are axes by the options that
//! the policies declare.
mod array_chunks;
mod grid;
pub mod local;
mod memory_budget;
mod point;
pub mod record;
mod run_point;
pub mod slurm_arrays;
mod sweep_folder;
mod workload_axis;
mod write_summary;

pub use array_chunks::{ArrayPlan, Chunk, arrays, chunks};
pub use grid::{CapacityAxis, DecayAxis, Grid, SettingAxis, Variant, WeightsAxis};
pub use memory_budget::{MemoryBudget, MemoryNeed};
pub use point::{Point, layout};
pub use run_point::{PointFailure, Watch};
pub use sweep_folder::{Folder, SweepError};
pub use workload_axis::{Size, WorkloadAxis};
pub use write_summary::summarize;
