//! One update: computes the heaviness of workloads and users from loads.

use crate::{Cloud, HeavinessError, Metric, Node, Number};

/// The heaviness of one node's workloads and its part of the users' sums. It is reused between updates to avoid allocations.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeHeaviness<N> {
    /// h_v of each workload.
    pub workloads: Vec<N>,
    /// The terms of each user, by user, then term: all that other nodes need.
    pub sums: Vec<N>,
}

impl<N: Number> Default for NodeHeaviness<N> {
    fn default() -> NodeHeaviness<N> {
        NodeHeaviness { workloads: Vec::new(), sums: Vec::new() }
    }
}

impl<N: Number> NodeHeaviness<N> {
    /// Computes both anew. Workloads are added in their order. O(workloads x resources + users x terms).
    ///
    /// # Errors
    /// Returns an error if the node and the cloud differ in resources, or a workload's owner is not a user of the cloud.
    pub fn update<M: Metric<N> + ?Sized>(
        &mut self,
        metric: &M,
        cloud: &Cloud<N>,
        node: &Node<N>,
    ) -> Result<(), HeavinessError> {
        crate::endowment::check_length("the supply of a node", node.resources(), cloud.resources())?;
        let users = cloud.users();
        if let Some((workload, owner)) = node.owners().iter().enumerate().find(|(_, owner)| **owner >= users) {
            return Err(HeavinessError::UnknownUser { workload, owner: *owner, users });
        }
        let terms = metric.terms(cloud.resources());
        let factors = metric.factors(node);
        self.workloads.clear();
        self.sums.clear();
        self.sums.resize(users * terms, N::zero());
        for (owner, endowment, load) in node.rows() {
            self.workloads.push(metric.workload_heaviness(cloud, &factors, endowment, load));
            metric.add_terms(cloud, &factors, endowment, load, &mut self.sums[owner * terms..][..terms]);
        }
        Ok(())
    }
}

/// Adds a node's sums to the total of others.
pub fn add_sums<N: Number>(total: &mut Vec<N>, part: &[N]) {
    total.resize(total.len().max(part.len()), N::zero());
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
}

/// Computes h_u of every user from the sums over all nodes, into `out`. A user without sums has no workloads.
pub fn user_heaviness<N: Number, M: Metric<N> + ?Sized>(metric: &M, cloud: &Cloud<N>, sums: &[N], out: &mut Vec<N>) {
    let terms = metric.terms(cloud.resources());
    let none = vec![N::zero(); terms];
    let of = |user: usize| sums.get(user * terms..(user + 1) * terms).unwrap_or(&none);
    let mut totals = none.clone();
    for user in 0..cloud.users() {
        totals.iter_mut().zip(of(user)).for_each(|(total, term)| *total += term);
    }
    out.clear();
    out.extend((0..cloud.users()).map(|user| metric.user_heaviness(cloud, user, of(user), &totals)));
}

/// Computes h_p = h_v + h_u of the owner for each workload of a node, into `out`. The workload with the larger h_p yields.
///
/// A workload's own heaviness counts twice, so that the workloads of one user differ (Poullie et al. 2016, section IV.E).
pub fn combined_heaviness<N: Number>(node: &Node<N>, workloads: &[N], users: &[N], out: &mut Vec<N>) {
    out.clear();
    let of = |owner: &usize| users.get(*owner).cloned().unwrap_or_else(N::zero);
    out.extend(workloads.iter().zip(node.owners()).map(|(h, owner)| h.clone() + &of(owner)));
}

/// The heaviness of all workloads and users of a cloud, for callers that have all nodes at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Heaviness<N> {
    /// h_v by node and workload.
    pub workloads: Vec<Vec<N>>,
    /// h_u by user.
    pub users: Vec<N>,
    /// h_p by node and workload.
    pub combined_heaviness: Vec<Vec<N>>,
}

impl<N: Number> Heaviness<N> {
    /// Computes the heaviness of all workloads on these nodes and of their users.
    ///
    /// # Errors
    /// As [`NodeHeaviness::update`].
    pub fn compute<M: Metric<N> + ?Sized>(
        metric: &M,
        cloud: &Cloud<N>,
        nodes: &[Node<N>],
    ) -> Result<Heaviness<N>, HeavinessError> {
        let mut local = NodeHeaviness::default();
        let (mut sums, mut workloads, mut users) = (Vec::new(), Vec::new(), Vec::new());
        for node in nodes {
            local.update(metric, cloud, node)?;
            add_sums(&mut sums, &local.sums);
            workloads.push(std::mem::take(&mut local.workloads));
        }
        user_heaviness(metric, cloud, &sums, &mut users);
        let of = |(node, workloads): (&Node<N>, &Vec<N>)| {
            let mut out = Vec::new();
            combined_heaviness(node, workloads, &users, &mut out);
            out
        };
        let combined_heaviness = nodes.iter().zip(&workloads).map(of).collect();
        Ok(Heaviness { workloads, users, combined_heaviness })
    }
}
