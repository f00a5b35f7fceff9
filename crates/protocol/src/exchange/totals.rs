//! What follows from all records.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::{Fixed, Refusal, UserSums};

/// The sums over all nodes that are heard of, and who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What the nodes have of each resource together (CRS of the paper).
    pub supply: Vec<Fixed>,
    /// What the node with the most of a resource has of it, by resource.
    pub largest: Vec<Fixed>,
    /// The sums of every user.
    pub users: BTreeMap<String, UserSums>,
    /// Every node that was heard of, in the order of the names; oneself too.
    pub nodes: Vec<NodeStatus>,
    /// Since when no other node counts (a time of the caller's clock); `None` while one does. Weights
    /// that others' sums have led to should then be aged to neutral.
    pub alone_since: Option<Duration>,
}

/// A node as seen from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub name: String,
    /// How long ago its newest record that counts came.
    pub age: Duration,
    /// Whether it counts.
    pub state: NodeState,
}

/// Whether a node counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// In full.
    Fresh,
    /// Its last record is past the limit: it counts halved so many times.
    Ageing {
        /// 1 or more.
        halvings: u32,
    },
    /// Not any more: it was not heard for too long.
    Lost,
    /// Not: its newest record is out of bounds, or about other settings.
    Refused(Refusal),
}

impl Totals {
    /// The state of a node by name.
    #[must_use]
    pub fn state(&self, node: &str) -> Option<&NodeState> {
        let at = self.nodes.binary_search_by(|status| status.name.as_str().cmp(node)).ok()?;
        self.nodes.get(at).map(|status| &status.state)
    }
}
