//! The records in `sweep.json`. They contain no times of day and no elapsed times, so that two sweeps of one grid are
//! byte-equal.
//!
//! Times are in seconds, amounts in the workload's own units. Absent numbers (`None`) are ones that do not exist.

use std::collections::BTreeMap;

use crate::record::{PerResource, Totals, WorkloadRecord};
use serde::{Deserialize, Serialize};

/// A whole sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// The version of evenhand.
    pub version: String,
    /// The workloads that have results, in the order of the grid.
    pub workloads: Vec<WorkloadRecord>,
    /// The points that have a result, in the order of the layout.
    pub points: Vec<PointRecord>,
    /// The points without a result.
    pub missing: Vec<AxesRecord>,
}

/// The coordinates of a point: the value on each axis, as written in the grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AxesRecord {
    /// The point's number in the layout, from 0.
    pub point: usize,
    /// The file, or the parameters of a generated workload.
    pub workload: String,
    /// The seed, of generated workloads.
    pub seed: Option<u64>,
    /// `equal` or the file.
    pub weights: String,
    /// `finished` or `trace-end`.
    pub until: String,
    /// Whether a task that does not fit is skipped.
    pub no_blocking: bool,
    /// The scheduler, with settings; absent if it is `strict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The multiple of R, or the file.
    pub capacity: String,
    /// The policy.
    pub policy: String,
    /// The key, of `sdrf`.
    pub sdrf_key: Option<String>,
    /// The decay as written, of policies that need one.
    pub decay: Option<String>,
    /// Other settings of the policy that the grid sets, by option.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// The result of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointRecord {
    /// The coordinates of the point.
    #[serde(flatten)]
    pub axes: AxesRecord,
    /// The capacity of the pool.
    pub capacity_units: PerResource,
    /// The discount factor per second, of policies with a decay.
    pub delta: Option<f64>,
    /// The time constant, of policies with a decay.
    pub tau_s: Option<f64>,
    /// Mean wait over all started tasks.
    pub mean_wait_s: Option<f64>,
    /// Mean over users of their mean waits.
    pub users_mean_wait_s: Option<f64>,
    /// Jain's index over users' mean waits.
    pub jain_wait: Option<f64>,
    /// Largest over smallest of the users' mean waits.
    pub max_min_wait_ratio: Option<f64>,
    /// The time mean of the resources in use divided by the capacity.
    pub utilization: PerResource,
    /// The time from the first submission to the last simulated event.
    pub makespan_s: f64,
    /// Counts of tasks.
    #[serde(flatten)]
    pub totals: Totals,
    /// The number of times the policy chose the next user.
    pub decisions: u64,
    /// Order changes of the policy's ordering structure.
    pub order_events: u64,
    /// The comparison with the first policy at the same coordinates; `None` for the first policy itself, and if it has
    /// no result.
    pub against: Option<AgainstRecord>,
}

/// The comparison of a point with that of the first policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgainstRecord {
    /// The other point.
    pub point: usize,
    /// Users whose mean wait is lower than in the other point.
    pub users_better: u64,
    /// Users whose mean wait is higher.
    pub users_worse: u64,
    /// Users whose mean wait is the same.
    pub users_same: u64,
    /// The mean of 1 - wait / (wait in the other point) over the users who wait in the other point.
    pub mean_user_wait_reduction: Option<f64>,
    /// 1 - `users_mean_wait_s` / that of the other point.
    pub users_mean_wait_reduction: Option<f64>,
}
