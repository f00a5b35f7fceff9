//! What a token collects.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::fixed::raise_to;
use crate::exchange::{Fixed, Limits, NodeState, NodeStatus, Record, Refusal, Totals, UserSums, add_to};

use super::{View, ViewId};

/// The sums over the nodes that a token has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Of which view.
    pub view: ViewId,
    /// Of which round of it.
    pub round: u64,
    /// Of the settings that they are about: the leader's.
    pub digest: u64,
    /// How many nodes have added theirs.
    pub count: u64,
    /// See [`Totals::supply`].
    pub supply: Vec<Fixed>,
    /// See [`Totals::largest`].
    pub largest: Vec<Fixed>,
    /// See [`Totals::users`].
    pub users: BTreeMap<String, UserSums>,
    /// Members that did not answer.
    pub missing: Vec<String>,
    /// Members that did not add theirs: with the digest of their settings, or none if they have no record yet.
    pub apart: Vec<(String, Option<u64>)>,
}

impl Sums {
    /// Adds what a node says of itself, if it is about the same settings.
    pub(crate) fn contribute(&mut self, node: &str, record: Option<&Record>) {
        let Some(record) = record else {
            self.apart.push((node.to_owned(), None));
            return;
        };
        if record.digest != self.digest {
            self.apart.push((node.to_owned(), Some(record.digest)));
            return;
        }
        self.count += 1;
        add_to(&mut self.supply, &record.supply);
        raise_to(&mut self.largest, &record.supply);
        for (user, sums) in &record.users {
            match self.users.get_mut(user) {
                Some(total) => total.add(sums),
                None => {
                    self.users.insert(user.clone(), sums.clone());
                }
            }
        }
    }

    /// Whether so many nodes can have said that.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        if let Some(most) = &limits.supply {
            let sums = self.supply.iter().zip(&self.largest).zip(most).enumerate();
            for (resource, ((supply, largest), most)) in sums {
                let all = Fixed::from_units(most.units().saturating_mul(i128::from(self.count)));
                if *supply > all || largest > most {
                    return Err(Refusal::Supply { resource, claimed: *supply, most: all });
                }
            }
        }
        if let Some(resource) = self.supply.iter().position(|supply| *supply < Fixed::ZERO) {
            let claimed = self.supply[resource];
            return Err(Refusal::Supply { resource, claimed, most: Fixed::MAX });
        }
        limits.check_sums(&self.supply, self.users.values(), self.users.len())
    }

    /// As totals, `age` after they were complete.
    pub(crate) fn totals(&self, view: &View, own: &Record, age: Duration, state: &NodeState) -> Totals {
        let halvings = match state {
            NodeState::Fresh => 0,
            NodeState::Ageing { halvings } => *halvings,
            NodeState::Lost | NodeState::Refused(_) => u32::MAX,
        };
        let foreign = own.digest != self.digest;
        let status = |name: &str| {
            let state = if name == own.node {
                NodeState::Fresh
            } else if foreign {
                NodeState::Refused(Refusal::Digest { theirs: self.digest, ours: own.digest })
            } else if self.missing.iter().any(|missing| missing == name) {
                NodeState::Lost
            } else {
                match self.apart.iter().find(|(apart, _)| apart == name) {
                    Some((_, Some(theirs))) => {
                        NodeState::Refused(Refusal::Digest { theirs: *theirs, ours: own.digest })
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
            return Totals { largest: supply.clone(), supply, users, nodes, alone_since: None };
        }
        let aged = |numbers: &[Fixed]| numbers.iter().map(|n| n.halved(halvings)).collect::<Vec<_>>();
        let user = |(name, sums): (&String, &UserSums)| {
            (name.clone(), UserSums { terms: aged(&sums.terms), guests: sums.guests })
        };
        let users = self.users.iter().map(user).collect();
        Totals { supply: aged(&self.supply), largest: aged(&self.largest), users, nodes, alone_since: None }
    }
}
