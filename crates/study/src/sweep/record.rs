//! What a sweep leaves behind: the records in `sweep.json`. They hold no times of day and no elapsed times, so that
//! two sweeps of one grid are the same bytes.
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
    /// The points that have none.
    pub missing: Vec<AxesRecord>,
}

/// Where a point lies: the value of every axis, as written in the grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AxesRecord {
    /// Its place in the layout, from 0.
    pub point: usize,
    /// The file, or what was generated.
    pub workload: String,
    /// The seed, of generated workloads.
    pub seed: Option<u64>,
    /// `equal` or the file.
    pub weights: String,
    /// `finished` or `trace-end`.
    pub until: String,
    /// Whether a task that does not fit is passed over.
    pub no_blocking: bool,
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
    /// Where it lies.
    #[serde(flatten)]
    pub axes: AxesRecord,
    /// The capacity of the pool.
    pub capacity_units: PerResource,
    /// The discount factor a second, of policies that need a decay.
    pub delta: Option<f64>,
    /// The time constant, of policies that need a decay.
    pub tau_s: Option<f64>,
    /// Mean wait over all started tasks.
    pub mean_wait_s: Option<f64>,
    /// Mean over users of their mean waits.
    pub users_mean_wait_s: Option<f64>,
    /// Jain's index over users' mean waits.
    pub jain_wait: Option<f64>,
    /// Largest over smallest of the users' mean waits.
    pub max_min_wait_ratio: Option<f64>,
    /// Time mean of what was held over capacity.
    pub utilization: PerResource,
    /// From the first submission to the last event simulated.
    pub makespan_s: f64,
    /// Counts of tasks.
    #[serde(flatten)]
    pub totals: Totals,
    /// How often the policy named the next user.
    pub decisions: u64,
    /// Order changes of the policy's ordering structure.
    pub order_events: u64,
    /// Against the first policy with all else the same; `None` for that one itself, and where it has no result.
    pub against: Option<AgainstRecord>,
}

/// A point against the one of the first policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgainstRecord {
    /// The other point.
    pub point: usize,
    /// Users whose mean wait is lower than there.
    pub users_better: u64,
    /// Users whose mean wait is higher.
    pub users_worse: u64,
    /// Users whose mean wait is the same.
    pub users_same: u64,
    /// Mean over users of 1 - wait / wait there, over users who wait there.
    pub mean_user_wait_reduction: Option<f64>,
    /// 1 - `users_mean_wait_s` / that of the other point.
    pub users_mean_wait_reduction: Option<f64>,
}
