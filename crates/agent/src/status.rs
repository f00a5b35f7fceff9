//! What the agent tells people: one record, made anew at each update.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of the agent after an update. Maps are by the name of a resource: `cpu`, `mem`, `disk`, `net`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Status {
    /// The node's name.
    pub node: String,
    /// Seconds since 1970 of this update.
    pub at_s: f64,
    /// Whether weights are written; else what would be is only said.
    pub applied: bool,
    /// From one update to the next.
    pub interval_s: f64,
    /// Updates since the start.
    pub updates: u64,
    /// What heaviness is.
    pub metric: String,
    /// How weights follow: `integral` or `linear`.
    pub law: String,
    /// By how much log W moves for each 1 that a guest is heavier than its siblings; the least of all sets.
    pub gain: Option<f64>,
    /// For how long no other node has been heard; only of a node that should hear others.
    pub alone_s: Option<f64>,
    /// What this node has and what its guests use.
    pub resources: BTreeMap<String, ResourceStatus>,
    /// Everybody with guests anywhere, the heaviest first.
    pub users: Vec<UserStatus>,
    /// What runs here, the heaviest first.
    pub guests: Vec<GuestStatus>,
    /// Every node that was heard of.
    pub nodes: Vec<NodeStatus>,
    /// Things an operator should know.
    pub remarks: Vec<String>,
    /// Numbers since the start.
    pub totals: TotalStatus,
}

/// What there is of a resource on this node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceStatus {
    /// In processors, bytes, or bytes a second. 0: not known, and not counted.
    pub supply: f64,
    /// What guests use of it.
    pub used: f64,
    /// Whether guests use nearly all of it (95 %).
    pub bottleneck: bool,
    /// What divides it here; `None`: nothing.
    pub enforced_by: Option<String>,
}

/// A user, all nodes taken together.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UserStatus {
    /// The name.
    pub name: String,
    /// h_u: at 0 the user has just what is due.
    pub heaviness: f64,
    /// What the user has of each resource, as a part of what the cloud has.
    pub shares: BTreeMap<String, f64>,
    /// What is due, as such a part.
    pub entitlements: BTreeMap<String, f64>,
    /// Guests on all nodes.
    pub guests: u32,
}

/// A guest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct GuestStatus {
    /// What people call it.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// Its control group.
    pub path: String,
    /// What it uses.
    pub load: BTreeMap<String, f64>,
    /// h_v
    pub heaviness: f64,
    /// h_p = h_v + h_u: who has more of it than the others here yields.
    pub precedence: f64,
    /// Its weight among its siblings; 1 is neutral.
    pub weight: f64,
    /// What was written last, on the kernel's own scales.
    pub written: BTreeMap<String, u64>,
}

/// A node as seen from here.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Since its last word.
    pub age_s: f64,
    /// Whether what it says counts, in words.
    pub state: String,
    /// Whether it counts in full.
    pub fresh: bool,
}

/// Numbers since the start.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TotalStatus {
    /// Values written.
    pub changes: u64,
    /// Reads and writes that failed, guests that were gone not counted.
    pub errors: u64,
    /// Counters that went backwards.
    pub backwards: u64,
    /// Processor time of the last update.
    pub update_cpu_s: f64,
    /// How long the last update took.
    pub update_s: f64,
}
