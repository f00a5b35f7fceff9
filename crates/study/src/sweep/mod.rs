//! A sweep: a grid over workloads, policies, capacities, decays, weights and rules; one point of it is one run.
//!
//! A [`Grid`] is read from a file and laid out as [`Point`]s in a documented order. An engine runs the points that a
//! [`Folder`] does not hold yet: [`local`] on the cores of this machine under a memory budget, [`slurm`] as job arrays of
//! a cluster. Each result is a file of its own, named by the digest of everything it depends on, so that any engine
//! may continue what another one left. [`summarize`] then writes the same files from them, byte for byte, whichever engine ran
//! what, in which order, and how often it was interrupted.
//!
//! This module simulates nothing itself, and knows no policy by name: settings of policies are axes by the options that
//! the policies declare.
mod chunks;
mod folder;
mod grid;
pub mod local;
mod memory;
mod point;
pub mod record;
mod runner;
pub mod slurm;
mod summary;
mod workload;

pub use chunks::{ArrayPlan, Chunk, arrays, chunks};
pub use folder::{Folder, SweepError};
pub use grid::{CapacityAxis, DecayAxis, Grid, SettingAxis, Variant, WeightsAxis};
pub use memory::{Ledger, Need};
pub use point::{Point, layout};
pub use runner::{PointFailure, Watch};
pub use summary::summarize;
pub use workload::{Size, WorkloadAxis};
