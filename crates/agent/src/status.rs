//! The state of the agent for people and programs: one record, created at each update.
//!
//! Its JSON form is an interface: workloads are called `guests` there, and warnings `remarks`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of the agent after an update. The keys of maps are the names of resources: `cpu`, `mem`, `disk`, `net`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Status {
    /// The node's name.
    pub node: String,
    /// The time of this status, in seconds since 1970.
    pub at_s: f64,
    /// Whether weights are written, rather than only reported.
    pub applied: bool,
    /// The time between updates, in seconds.
    pub interval_s: f64,
    /// The number of updates since the start.
    pub updates: u64,
    /// The name of the heaviness metric.
    pub metric: String,
    /// How weights follow from heaviness: `integral` or `linear`.
    pub law: String,
    /// The change of log W for each 1 that a workload is heavier than its siblings; the smallest gain of all siblings.
    pub gain: Option<f64>,
    /// The seconds since the last record of another node; only of a node that should receive such.
    pub alone_s: Option<f64>,
    /// The supply and use of this node's resources.
    pub resources: BTreeMap<String, ResourceStatus>,
    /// All users with workloads on any node, by decreasing heaviness.
    pub users: Vec<UserStatus>,
    /// The workloads on this node, by decreasing precedence.
    #[serde(rename = "guests")]
    pub workloads: Vec<WorkloadStatus>,
    /// All known nodes.
    pub nodes: Vec<NodeStatus>,
    /// The warnings for the operator.
    #[serde(rename = "remarks")]
    pub warnings: Vec<String>,
    /// Counts since the start.
    pub totals: TotalStatus,
}

/// The supply and use of a resource on this node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceStatus {
    /// The supply in processors, bytes, or bytes per second. 0: unknown, and not counted.
    pub supply: f64,
    /// The use by all workloads, in the same unit.
    pub used: f64,
    /// Whether workloads use nearly all of it (95 %).
    pub bottleneck: bool,
    /// The mechanism that divides it; `None`: none.
    pub enforced_by: Option<String>,
}

/// A user, over all nodes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UserStatus {
    /// The name.
    pub name: String,
    /// The heaviness h_u: 0 if the user has exactly the entitlement.
    pub heaviness: f64,
    /// The user's share of the cloud's supply of each resource.
    pub shares: BTreeMap<String, f64>,
    /// The user's entitlement, as such a share.
    pub entitlements: BTreeMap<String, f64>,
    /// The number of workloads on all nodes.
    #[serde(rename = "guests")]
    pub workloads: u32,
}

/// A running workload.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct WorkloadStatus {
    /// The name for people.
    pub name: String,
    /// The name of the owner.
    pub owner: String,
    /// The path of the control group.
    pub path: String,
    /// The load, in processors, bytes, and bytes per second.
    pub load: BTreeMap<String, f64>,
    /// The heaviness h_v.
    pub heaviness: f64,
    /// The precedence h_p = h_v + h_u: the workload with the larger value yields.
    pub precedence: f64,
    /// The weight relative to its siblings; 1 is neutral.
    pub weight: f64,
    /// The values written last, on the kernel's scales.
    pub written: BTreeMap<String, u64>,
}

/// A node, as seen from this one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NodeStatus {
    /// The name.
    pub name: String,
    /// The seconds since its last record.
    pub age_s: f64,
    /// Whether its record counts, in words.
    pub state: String,
    /// Whether its record counts in full.
    pub fresh: bool,
}

/// Counts since the start, and the cost of the last update.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TotalStatus {
    /// The number of values written.
    pub changes: u64,
    /// The number of reads, writes and controller updates that failed, except for workloads that ended.
    pub errors: u64,
    /// The number of counters that went backwards.
    pub backwards: u64,
    /// The CPU time of the last update, in seconds.
    pub update_cpu_s: f64,
    /// The duration of the last update, in seconds.
    pub update_s: f64,
}
