//! A study: one workload replayed under a grid of policies and capacities.
//!
//! This crate plans the grid ([`Plan`]), runs it in parallel ([`Plan::run`]), skips the runs that a folder already holds
//! for the same inputs, and turns the simulator's results into [`record`]s. [`Prepared`] runs single points of larger
//! grids ([`sweep`]). It draws no figures (the crate `report` does) and knows no policy by name: [`PolicyInputs`] go to
//! the policies' registry as they are.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accounts;
mod by_account;
mod cluster_file;
mod compare;
mod digest;
mod files;
mod inputs;
mod machines;
mod plan;
mod point;
mod policy_inputs;
pub mod record;
mod replay;
mod run;
pub mod sweep;
mod waste;
mod written;

pub use accounts::{AccountsFile, WorkloadWithAccounts};
pub use cluster_file::{cluster_of, read_cluster};
pub use compare::compare;
pub use digest::{Digest, workload_digest};
pub use evenhand_simulator::{BACKFILLS, Backfill, PLACEMENTS, Placement};
pub use files::{StudyError, TaskFormat};
pub use inputs::{read_pool, read_weights};
pub use machines::{GroupRecord, JobRules, JobsRecord, RefusedRecord};
pub use plan::{CapacityAsked, Plan, PlanError, Question, RunPlan};
pub use point::{Point, PointError, Prepared};
pub use policy_inputs::{PolicyInputs, pool_equivalents};
pub use replay::{ReplayError, ReplayOn, replay, starts_under};
pub use run::{Live, LiveRun, RunState};
pub use written::{accounts_text, cluster_text};
