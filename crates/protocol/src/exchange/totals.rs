//! The totals over all nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::{Fixed, RecordError, UserSums};

/// The sums over all known nodes, and the state of each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The total supply by resource (CRS in Poullie et al. 2016).
    pub supply: Vec<Fixed>,
    /// The largest supply of any node, by resource.
    pub largest: Vec<Fixed>,
    /// The sums of each user.
    pub users: BTreeMap<String, UserSums>,
    /// All known nodes in the order of their names, this node included.
    pub nodes: Vec<NodeStatus>,
    /// The time since which no other node counts (on the caller's clock); `None` while one does. Weights that depend on other
    /// nodes' sums should then return to neutral.
    pub isolated_since: Option<Duration>,
}

/// The state of a node as seen from this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The name of the node.
    pub name: String,
    /// The time since its newest valid record was received.
    pub age: Duration,
    /// Whether its record counts.
    pub state: NodeState,
}

/// Whether the record of a node counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It counts in full.
    Fresh,
    /// Its last record is older than the limit and counts halved this many times.
    Ageing {
        /// At least 1.
        halvings: u32,
    },
    /// It does not count: no record was received for too long.
    Lost,
    /// It does not count: its newest record exceeds a limit, or was computed with other settings.
    Rejected(RecordError),
}

impl Totals {
    /// Returns the state of the node with this name. O(log nodes).
    #[must_use]
    pub fn state(&self, node: &str) -> Option<&NodeState> {
        let at = self.nodes.binary_search_by(|status| status.name.as_str().cmp(node)).ok()?;
        self.nodes.get(at).map(|status| &status.state)
    }
}
