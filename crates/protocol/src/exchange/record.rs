//! What a node says of itself.

use std::collections::BTreeMap;

use crate::exchange::Fixed;

/// Most bytes of a node's or user's name.
pub const MOST_NAME: usize = 255;
/// Most resources, and most terms of a user.
pub const MOST_TERMS: usize = 64;
/// Most users of one record, and of the totals.
pub const MOST_USERS: usize = 1 << 17;
/// Most nodes. Below it sums of [`Fixed`] are exact.
pub const MOST_NODES: usize = 1 << 16;

/// What a node says of itself: all that others need to work out every user's heaviness (paper 003, section IV.A:
/// its resource information and its heaviness set).
///
/// The heaviness of a user is linear in the terms, with factors that follow from the supply of the
/// cloud (Eq. 2 and 3). So terms travel, not heaviness, and nobody has to know the supply of all before
/// the first round, unlike in lines 1 to 3 of the paper's Listing 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who says it. Unique in the cloud.
    pub node: String,
    /// Which life of the node: larger after each restart.
    pub incarnation: u64,
    /// Which record of that life: larger for each.
    pub sequence: u64,
    /// Of the metric and its parameters, the list of resources and the quotas. Sums of nodes that do not
    /// agree about these mean nothing: records with another digest are not added up.
    pub digest: u64,
    /// What the node has of each resource, in units of the reference node.
    pub supply: Vec<Fixed>,
    /// Of each user with guests here.
    pub users: BTreeMap<String, UserSums>,
}

/// The sums of a user, on a node or in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSums {
    /// The terms of the metric, summed over the user's guests (`Local::sums` of the room `heaviness`).
    pub terms: Vec<Fixed>,
    /// How many guests that are.
    pub guests: u32,
}

impl UserSums {
    /// Adds another node's.
    pub fn add(&mut self, other: &UserSums) {
        crate::exchange::add_to(&mut self.terms, &other.terms);
        self.guests = self.guests.saturating_add(other.guests);
    }
}

impl Record {
    /// Which of two records of a node is the newer: the larger.
    #[must_use]
    pub fn version(&self) -> (u64, u64) {
        (self.incarnation, self.sequence)
    }
}
