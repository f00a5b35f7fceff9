//! The sums that a token collects.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::fixed_point::max_elementwise;
use crate::exchange::{
    Fixed, NodeState, NodeStatus, Record, RecordError, RecordLimits, Totals, UserSums, add_elementwise,
};

use super::{View, ViewId};

/// The sums over the nodes that a token has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundSums {
    /// The view.
    pub view: ViewId,
    /// The number of the round in the view.
    pub round: u64,
    /// The digest of the leader's settings.
    pub digest: u64,
    /// The number of nodes that have contributed.
    pub count: u64,
    /// See [`Totals::supply`].
    pub supply: Vec<Fixed>,
    /// See [`Totals::largest`].
    pub largest: Vec<Fixed>,
    /// See [`Totals::users`].
    pub users: BTreeMap<String, UserSums>,
    /// Members that did not acknowledge.
    pub missing: Vec<String>,
    /// Members that did not contribute: with the digest of their settings if it differs, or `None` if they have no record.
    pub excluded: Vec<(String, Option<u64>)>,
}

impl RoundSums {
    /// Adds the record of a node if its settings agree.
    pub(crate) fn contribute(&mut self, node: &str, record: Option<&Record>) {
        let Some(record) = record else {
            self.excluded.push((node.to_owned(), None));
            return;
        };
        if record.digest != self.digest {
            self.excluded.push((node.to_owned(), Some(record.digest)));
            return;
        }
        self.count += 1;
        add_elementwise(&mut self.supply, &record.supply);
        max_elementwise(&mut self.largest, &record.supply);
        for (user, sums) in &record.users {
            match self.users.get_mut(user) {
                Some(total) => total.add(sums),
                None => {
                    self.users.insert(user.clone(), sums.clone());
                }
            }
        }
    }

    /// Checks that the sums are possible for this number of nodes.
    pub(crate) fn check(&self, limits: &RecordLimits) -> Result<(), RecordError> {
        if let Some(max) = &limits.supply {
            let sums = self.supply.iter().zip(&self.largest).zip(max).enumerate();
            for (resource, ((supply, largest), max)) in sums {
                let all = Fixed::from_units(max.units().saturating_mul(i128::from(self.count)));
                if *supply > all || largest > max {
                    return Err(RecordError::Supply { resource, claimed: *supply, limit: all });
                }
            }
        }
        if let Some(resource) = self.supply.iter().position(|supply| *supply < Fixed::ZERO) {
            let claimed = self.supply[resource];
            return Err(RecordError::Supply { resource, claimed, limit: Fixed::MAX });
        }
        limits.check_sums(&self.supply, self.users.values(), self.users.len())
    }

    /// Returns the sums as totals of this age.
    pub(crate) fn totals(&self, view: &View, own: &Record, age: Duration, state: &NodeState) -> Totals {
        let halvings = match state {
            NodeState::Fresh => 0,
            NodeState::Ageing { halvings } => *halvings,
            NodeState::Lost | NodeState::Rejected(_) => u32::MAX,
        };
        let foreign = own.digest != self.digest;
        let status = |name: &str| {
            let state = if name == own.node {
                NodeState::Fresh
            } else if foreign {
                NodeState::Rejected(RecordError::Digest { theirs: self.digest, ours: own.digest })
            } else if self.missing.iter().any(|missing| missing == name) {
                NodeState::Lost
            } else {
                match self.excluded.iter().find(|(excluded, _)| excluded == name) {
                    Some((_, Some(theirs))) => {
                        NodeState::Rejected(RecordError::Digest { theirs: *theirs, ours: own.digest })
                    }
                    Some((_, None)) => NodeState::Lost,
                    None => state.clone(),
                }
            };
            NodeStatus { name: name.to_owned(), age, state }
        };
        let nodes = view.members.iter().map(|member| status(&member.node)).collect();
        if foreign || halvings == u32::MAX {
            let (supply, users) = (own.supply.clone(), own.users.clone());
            return Totals { largest: supply.clone(), supply, users, nodes, isolated_since: None };
        }
        let aged = |numbers: &[Fixed]| numbers.iter().map(|n| n.halved(halvings)).collect::<Vec<_>>();
        let user = |(name, sums): (&String, &UserSums)| {
            (name.clone(), UserSums { terms: aged(&sums.terms), workloads: sums.workloads })
        };
        let users = self.users.iter().map(user).collect();
        Totals { supply: aged(&self.supply), largest: aged(&self.largest), users, nodes, isolated_since: None }
    }
}
