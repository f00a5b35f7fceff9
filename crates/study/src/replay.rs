//! One run without a folder: what a policy would have done.

use evenhand_model::{Capacity, Weights, Workload};
use evenhand_policies::{Decay, Registration, Setting};
use evenhand_simulator::{PoolOptions, Progress, SimulationError, UserTasks, simulate};

/// When each row of `workload` would have started on the pool under the policy, in nanoseconds, or
/// [`NO_TIME`](evenhand_model::NO_TIME) for rows larger than the pool; every accepted task runs to its end.
///
/// # Errors
/// If simulated time would pass its end.
///
/// # Panics
/// If the workload has rows with a count (see [`Workload::expanded`]), or the policy needs a decay and there is none.
pub fn starts_under(
    workload: &Workload,
    capacity: &Capacity,
    weights: &Weights,
    policy: &Registration,
    decay: Option<Decay>,
) -> Result<Vec<u64>, SimulationError> {
    let mut policy = (policy.build)(&Setting::new(capacity, weights).decay(decay));
    let tasks = UserTasks::new(workload);
    let simulated =
        simulate(workload, &tasks, capacity, policy.as_mut(), PoolOptions::default(), &Progress::default())?;
    Ok(simulated.starts)
}
