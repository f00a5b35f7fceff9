//! The cluster simulator: replays a workload under a policy.
//!
//! [`simulate`] replays a [`Workload`](evenhand_model::Workload) on a pool (one bag of each resource)
//! and returns when every task started; [`Metrics`] turns that into waits per user, utilisation
//! and curves over time. This crate knows no file format and no policy by name.
//!
//! [`simulate_jobs`] does so on machines, and with backfilling; its rules are in docs/src/reference/backfilling.md.
//! [`simulate_reactions`] does so while users react to the ends of their tasks: docs/src/reference/arrivals.md.
//!
//! The exact meaning of the pool, so that an independent program gives the same numbers:
//!
//! 1. Users are numbered in the order in which they first appear in the workload.
//! 2. At one instant: first every finish, then every submission in file order, then scheduling
//!    until nothing more starts. A task of no duration finishes in the same instant, after the
//!    scheduling that started it; then the instant begins anew.
//! 3. A user's tasks start in submission order. The user that the policy chooses starts its first pending
//!    task if it fits in the free amount of every resource; if not, scheduling stops until the next
//!    finish or submission (or, without blocking, that user is set aside until then).
//! 4. A task larger than the capacity is rejected when submitted.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod arrivals;
mod event_queue;
mod exact_sum;
mod free_while_waiting;
mod idle_while_waiting;
mod jobs;
mod metrics;
mod normalized_wait;
mod pending_tasks;
mod pool;
mod series;

pub use arrivals::{ARRIVALS, Arrivals, Reacted, Reactions, SESSION_GAP};
pub use event_queue::EventQueue;
pub use free_while_waiting::FreeWhileWaiting;
pub use idle_while_waiting::IdleWhileWaiting;
pub use jobs::{
    Activity, Assignment, BACKFILLS, Backfill, BackfillOrder, Events, JobOptions, Jobs, Layout, LayoutError,
    LayoutRule, MachineResults, PLACEMENTS, Passing, Placement, PlanReservations, PlannedBackfill, PlannedLength,
    PreemptType, Preemptions, Processors, Rejection, Reserve, ReservedStart, Site, SiteError, SlurmOptions,
    SlurmResults, ZeroLimit, simulate_jobs, simulate_reactions,
};
pub use metrics::{Metrics, Totals, UserRecord};
pub use normalized_wait::{NormalizedWait, NuwtSpread, Sums, TaskProcessors};
pub use pool::{PoolOptions, Progress, Simulated, SimulationError, UserTasks, simulate};
pub use series::Series;
