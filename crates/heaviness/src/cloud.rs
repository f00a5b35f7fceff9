//! The supply of all nodes, and the users' endowments.

use crate::endowment::{check_length, check_quantity, divide_proportionally};
use crate::{Endowment, HeavinessError, Node, Number};

/// The supply of all nodes together, and the endowment of each user.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud<N> {
    supply: Vec<N>,
    norm: Vec<N>,
    users: usize,
    /// By user, then resource.
    endowments: Vec<N>,
}

impl<N: Number> Cloud<N> {
    /// Creates a cloud with this supply by resource (the CRS of Poullie et al. 2016: the sum over all nodes, with CPU in
    /// units of the reference node) and one quota for each user and resource, in any unit common to all users.
    ///
    /// A user's endowment is the supply times the quota divided by the sum of all quotas (Eq. 2). An unknown quota counts as
    /// the mean of the known ones; without any known quota all users have equal endowments. O(users x resources).
    ///
    /// # Errors
    /// Returns an error if there is no resource, a number is negative or not finite, or a user does not have one quota
    /// for each resource.
    pub fn new(supply: Vec<N>, quotas: Vec<Vec<Option<N>>>) -> Result<Cloud<N>, HeavinessError> {
        let resources = supply.len();
        if resources == 0 {
            return Err(HeavinessError::NoResource);
        }
        supply.iter().enumerate().try_for_each(|(r, s)| check_quantity(s, "the supply of the cloud", 0, r))?;
        for (user, row) in quotas.iter().enumerate() {
            check_length("the quota of a user", row.len(), resources)?;
            let known = row.iter().enumerate().filter_map(|(r, q)| Some((r, q.as_ref()?)));
            known.into_iter().try_for_each(|(r, q)| check_quantity(q, "the quota of a user", user, r))?;
        }
        let users = quotas.len();
        let mut endowments = vec![N::zero(); users * resources];
        for (r, supply) in supply.iter().enumerate() {
            let quotas = quotas.iter().map(|row| row[r].as_ref());
            divide_proportionally(supply, quotas, Endowment::Proportional, &mut endowments, (r, resources));
        }
        let supplied = N::from_count(supply.iter().filter(|s| s.is_positive()).count());
        let of = |s: &N| if s.is_positive() { N::from_count(users) / &supplied / s } else { N::zero() };
        let norm = supply.iter().map(of).collect();
        Ok(Cloud { supply, norm, users, endowments })
    }

    /// Returns the sum of the nodes' supplies by resource.
    pub fn supply_of<'a>(nodes: impl IntoIterator<Item = &'a Node<N>>) -> Vec<N> {
        let mut sum: Vec<N> = Vec::new();
        for node in nodes {
            sum.resize(sum.len().max(node.resources()), N::zero());
            sum.iter_mut().zip(node.supply()).for_each(|(sum, s)| *sum += s);
        }
        sum
    }

    /// Returns the number of resources.
    pub fn resources(&self) -> usize {
        self.supply.len()
    }

    /// Returns the number of users.
    pub fn users(&self) -> usize {
        self.users
    }

    /// Returns the supply by resource.
    pub fn supply(&self) -> &[N] {
        &self.supply
    }

    /// Returns the weight n_r of a unit of each resource: users / (resources with a positive supply x supply). The
    /// normalized endowments of all users therefore sum to the number of users, and 1 is the mean endowment of a user. 0
    /// for a resource without supply.
    pub fn norm(&self) -> &[N] {
        &self.norm
    }

    /// Returns the endowment of a user by resource (Eq. 2).
    ///
    /// # Panics
    /// Panics if the index is out of range.
    pub fn endowment(&self, user: usize) -> &[N] {
        let resources = self.supply.len();
        &self.endowments[user * resources..][..resources]
    }

    /// Returns the normalized sum of a vector, sum_r n_r x_r.
    pub fn normalized_sum(&self, x: &[N]) -> N {
        let mut sum = N::zero();
        self.norm.iter().zip(x).for_each(|(n, x)| sum += &(n.clone() * x));
        sum
    }

    /// Returns the normalized maximum of a vector, max_r n_r x_r, at least 0.
    pub fn normalized_max(&self, x: &[N]) -> N {
        self.norm.iter().zip(x).fold(N::zero(), |largest, (n, x)| largest.larger(n.clone() * x))
    }
}
