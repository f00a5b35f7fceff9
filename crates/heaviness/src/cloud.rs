//! What all nodes have together, and what each user may have of it.

use crate::endowment::{divide, quantity, width};
use crate::{Endowment, HeavinessError, Node, Number};

/// The supply of all nodes and the users' endowments.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud<N> {
    supply: Vec<N>,
    norm: Vec<N>,
    users: usize,
    /// User after user.
    endowments: Vec<N>,
}

impl<N: Number> Cloud<N> {
    /// A cloud with this supply (the CRS of paper 003: the sum of all nodes' supplies, CPU in units of the
    /// reference node) and one quota a user and resource, on the virtual scale.
    ///
    /// A user's endowment is the part of the supply that the quota is of all quotas (Eq. 2). A quota that is
    /// not known is the mean of those that are; with no quota at all every user is endowed alike.
    ///
    /// # Errors
    /// If there is no resource, a number is negative or not finite, or a user has more or fewer quotas than
    /// there are resources.
    pub fn new(supply: Vec<N>, quotas: Vec<Vec<Option<N>>>) -> Result<Cloud<N>, HeavinessError> {
        let resources = supply.len();
        if resources == 0 {
            return Err(HeavinessError::NoResource);
        }
        supply.iter().enumerate().try_for_each(|(r, s)| quantity(s, "the supply of the cloud", 0, r))?;
        for (user, row) in quotas.iter().enumerate() {
            width("the quota of a user", row.len(), resources)?;
            let known = row.iter().enumerate().filter_map(|(r, q)| Some((r, q.as_ref()?)));
            known.into_iter().try_for_each(|(r, q)| quantity(q, "the quota of a user", user, r))?;
        }
        let users = quotas.len();
        let mut endowments = vec![N::zero(); users * resources];
        for (r, supply) in supply.iter().enumerate() {
            let quotas = quotas.iter().map(|row| row[r].as_ref());
            divide(supply, quotas, Endowment::Proportional, &mut endowments, (r, resources));
        }
        let there = N::from_count(supply.iter().filter(|s| s.is_positive()).count());
        let of = |s: &N| if s.is_positive() { N::from_count(users) / &there / s } else { N::zero() };
        let norm = supply.iter().map(of).collect();
        Ok(Cloud { supply, norm, users, endowments })
    }

    /// The sum of the nodes' supplies.
    pub fn supply_of<'a>(nodes: impl IntoIterator<Item = &'a Node<N>>) -> Vec<N> {
        let mut sum: Vec<N> = Vec::new();
        for node in nodes {
            sum.resize(sum.len().max(node.resources()), N::zero());
            sum.iter_mut().zip(node.supply()).for_each(|(sum, s)| *sum += s);
        }
        sum
    }

    /// How many resources there are.
    pub fn resources(&self) -> usize {
        self.supply.len()
    }

    /// How many users have a quota.
    pub fn users(&self) -> usize {
        self.users
    }

    /// What there is of each resource.
    pub fn supply(&self) -> &[N] {
        &self.supply
    }

    /// What a unit of each resource weighs: users / (resources that there are x supply). So the endowments of
    /// all users weigh as much as there are users, and 1 is what is due to one of them on average. 0 of a
    /// resource that no node has.
    pub fn norm(&self) -> &[N] {
        &self.norm
    }

    /// What is budgeted for a user of each resource (Eq. 2).
    pub fn endowment(&self, user: usize) -> &[N] {
        let resources = self.supply.len();
        &self.endowments[user * resources..][..resources]
    }

    /// sum_r norm_r x_r
    pub fn weigh(&self, x: &[N]) -> N {
        let mut sum = N::zero();
        self.norm.iter().zip(x).for_each(|(n, x)| sum += &(n.clone() * x));
        sum
    }

    /// max_r norm_r x_r, at least 0.
    pub fn weigh_largest(&self, x: &[N]) -> N {
        self.norm.iter().zip(x).fold(N::zero(), |most, (n, x)| most.larger(n.clone() * x))
    }
}
