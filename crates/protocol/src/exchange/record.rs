//! The record that each node publishes.

use std::collections::BTreeMap;

use crate::exchange::Fixed;

/// The maximum length of the name of a node or user, in bytes.
pub const MAX_NAME_LEN: usize = 255;
/// The maximum number of resources, and of terms for each user.
pub const MAX_TERMS: usize = 64;
/// The maximum number of users in a record, and in totals.
pub const MAX_USERS: usize = 1 << 17;
/// The maximum number of nodes. Up to it sums of [`Fixed`] are exact.
pub const MAX_NODES: usize = 1 << 16;

/// The record that a node publishes: all that other nodes need to compute every user's heaviness (Poullie et al. 2016,
/// section IV.A: resource information and heaviness set).
///
/// The heaviness of a user is linear in the terms, with factors that follow from the supply of the cloud (Eq. 2 and 3).
/// Nodes therefore exchange terms instead of heaviness, and need not know the total supply before the first round, unlike
/// in lines 1 to 3 of the paper's Listing 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The name of the node, unique in the cloud.
    pub node: String,
    /// The number of the node's incarnation; it increases with each restart.
    pub incarnation: u64,
    /// The number of the record in this incarnation; it increases with each record.
    pub sequence: u64,
    /// A digest of the metric and its parameters, the list of resources and the quotas. Sums of nodes that differ in these
    /// are meaningless, so records with another digest are not added.
    pub digest: u64,
    /// The supply of the node by resource, in units of the reference node.
    pub supply: Vec<Fixed>,
    /// The sums of each user with workloads on this node.
    pub users: BTreeMap<String, UserSums>,
}

/// The sums of a user, on one node or in total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSums {
    /// The terms of the metric, summed over the user's workloads (`NodeHeaviness::sums` of the crate `evenhand-heaviness`).
    pub terms: Vec<Fixed>,
    /// The number of these workloads.
    pub workloads: u32,
}

impl UserSums {
    /// Adds the sums of another node.
    pub fn add(&mut self, other: &UserSums) {
        crate::exchange::add_elementwise(&mut self.terms, &other.terms);
        self.workloads = self.workloads.saturating_add(other.workloads);
    }
}

impl Record {
    /// Returns the version: of two records of a node the one with the larger version is newer.
    #[must_use]
    pub fn version(&self) -> (u64, u64) {
        (self.incarnation, self.sequence)
    }
}
