//! What the agents of the nodes report: the nodes with the age of their records, and the users by heaviness.

use std::collections::BTreeMap;

use evenhand_model::Time;
use serde::Serialize;

/// What one agent knows of all nodes. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentRecord {
    /// The node that was asked.
    pub node: String,
    /// The time of its answer, since 1970.
    pub at_s: f64,
    /// Whether it writes weights, rather than only reporting.
    pub applied: bool,
    /// The time between its updates.
    pub interval_s: f64,
    /// All nodes that it knows.
    pub nodes: Vec<AgentNode>,
    /// The users with workloads on any node, the heaviest first.
    pub users: Vec<AgentUser>,
    /// Whether users are left out that the visitor may not see.
    pub hidden: bool,
}

/// A node as the agent sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentNode {
    /// The name.
    pub name: String,
    /// The age of its last record.
    pub age_s: f64,
    /// Whether its record counts, in words.
    pub state: String,
    /// Whether it counts in full.
    pub fresh: bool,
}

/// A user over all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentUser {
    /// The name.
    pub name: String,
    /// The number of workloads.
    pub workloads: u32,
    /// 0 for exactly the entitlement; more for who burdens the nodes more.
    pub heaviness: f64,
    /// The part of all nodes' supply of each resource that the user has.
    pub shares: BTreeMap<String, f64>,
    /// The part to which the user is entitled.
    pub entitlements: BTreeMap<String, f64>,
}

/// Asks an agent.
pub trait AgentReader: Send {
    /// Asks once.
    ///
    /// # Errors
    /// Returns in a sentence why the agent did not answer.
    fn read(&mut self) -> Result<AgentRecord, String>;
}

/// The last answer of the agent, and why the last question failed, if it did.
#[derive(Clone, Debug, Default)]
pub struct AgentAnswer {
    /// The last record; none until the first answer.
    pub record: Option<AgentRecord>,
    /// When it was received, by the clock of the one who asks.
    pub answered_at: Option<Time>,
    /// Why the last attempt failed.
    pub failure: Option<String>,
}

/// The state of a node that was fresh when the agent, which is silent since, answered last.
const NOT_KNOWN: &str = "not known: the agent has not answered since";

impl AgentRecord {
    /// Returns the record as it is to be read `age_s` after the agent's answer: the records of all nodes are older by this time. While
    /// the agent is silent it is not known of any node whether its record counts in full.
    pub(crate) fn aged(mut self, age_s: f64, is_silent: bool) -> AgentRecord {
        for node in &mut self.nodes {
            node.age_s += age_s;
            if is_silent && node.fresh {
                node.fresh = false;
                NOT_KNOWN.clone_into(&mut node.state);
            }
        }
        self
    }

    /// Returns the record without users that `sees` does not hold for.
    pub(crate) fn seen_by(mut self, sees: impl Fn(&str) -> bool) -> AgentRecord {
        let all = self.users.len();
        self.users.retain(|user| sees(&user.name));
        self.hidden = self.users.len() < all;
        self
    }

    /// Returns the resources that any user has a share of.
    pub(crate) fn resources(&self) -> Vec<String> {
        let mut names: Vec<String> = self.users.iter().flat_map(|user| user.shares.keys().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
