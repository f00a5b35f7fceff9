//! The one way from a workload and a policy to a simulation.

use evenhand_model::{Capacity, Workload};
use evenhand_policies::equivalents::Equivalents;
use evenhand_policies::{Decay, Policy, PolicyError};
use evenhand_simulator::{
    JobOptions, Jobs, PoolOptions, Progress, Simulated, SimulationError, Site, UserTasks, simulate, simulate_jobs,
};
use thiserror::Error;

use crate::policy_inputs::PolicyInputs;

/// Where and by which rules a workload is replayed.
#[derive(Clone, Copy, Debug)]
// There is one value a run.
#[allow(clippy::large_enum_variant)]
pub enum ReplayOn<'a> {
    /// On a pool of divisible capacity.
    Pool {
        /// The pool.
        capacity: &'a Capacity,
        /// The rules.
        options: PoolOptions,
    },
    /// On machines, or on a pool with backfilling: jobs with their layout.
    Site {
        /// The machines.
        site: &'a Site,
        /// The workload's jobs on that site.
        jobs: &'a Jobs,
        /// The rules.
        options: JobOptions,
    },
}

/// Replays a workload under a policy. Every verb that simulates calls this function.
///
/// `tasks` are those of `workload`, and `policy` is newly built.
///
/// # Errors
/// Returns an error if simulated time would pass its end, or `progress` was cancelled.
///
/// # Panics
/// If the workload has rows with a count (see [`Workload::expanded`]).
pub fn replay(
    workload: &Workload,
    tasks: &UserTasks,
    on: ReplayOn<'_>,
    policy: &mut dyn Policy,
    progress: &Progress,
) -> Result<Simulated, SimulationError> {
    match on {
        ReplayOn::Pool { capacity, options } => simulate(workload, tasks, capacity, policy, options, progress),
        ReplayOn::Site { site, jobs, options } => simulate_jobs(workload, tasks, site, jobs, policy, options, progress),
    }
}

/// Why a workload cannot be replayed under a policy.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The policy cannot be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// It cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

/// Returns when each row of `workload` would have started on a pool under the policy called `policy`, in nanoseconds,
/// or [`NO_TIME`](evenhand_model::NO_TIME) for rows larger than the pool; every accepted task runs to its end.
///
/// # Errors
/// Returns an error if the policy cannot be built, or simulated time would pass its end.
///
/// # Panics
/// If the workload has rows with a count (see [`Workload::expanded`]).
pub fn starts_under(
    workload: &Workload,
    capacity: &Capacity,
    inputs: &PolicyInputs,
    policy: &str,
    decay: Option<Decay>,
) -> Result<Vec<u64>, ReplayError> {
    let equivalents = Equivalents::of_pool(workload.resources(), capacity).ok();
    let context = inputs.context(workload, capacity, equivalents.as_ref(), decay);
    let mut policy = inputs.registry.build(policy, &context)?;
    let tasks = UserTasks::new(workload);
    let on = ReplayOn::Pool { capacity, options: PoolOptions::default() };
    Ok(replay(workload, &tasks, on, policy.as_mut(), &Progress::default())?.starts)
}
