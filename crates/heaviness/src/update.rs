//! One update: from loads to heaviness of guests and users, and to who should yield.

use crate::{Cloud, HeavinessError, Metric, Node, Number};

/// What one node works out from its own guests; kept between updates, so that nothing is allocated anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Local<N> {
    /// h_v of each guest.
    pub guests: Vec<N>,
    /// The terms of each user, user after user: what other nodes need to know, and all they need.
    pub sums: Vec<N>,
}

impl<N: Number> Default for Local<N> {
    fn default() -> Local<N> {
        Local { guests: Vec::new(), sums: Vec::new() }
    }
}

impl<N: Number> Local<N> {
    /// Works it out anew. Guests are added up in their order.
    ///
    /// # Errors
    /// If the node and the cloud do not have the same resources, or a guest's owner is not one of the
    /// cloud's users.
    pub fn update<M: Metric<N> + ?Sized>(
        &mut self,
        metric: &M,
        cloud: &Cloud<N>,
        node: &Node<N>,
    ) -> Result<(), HeavinessError> {
        crate::endowment::width("the supply of a node", node.resources(), cloud.resources())?;
        let users = cloud.users();
        if let Some((guest, owner)) = node.owners().iter().enumerate().find(|(_, owner)| **owner >= users) {
            return Err(HeavinessError::UnknownUser { guest, owner: *owner, users });
        }
        let terms = metric.terms(cloud.resources());
        let factors = metric.factors(node);
        self.guests.clear();
        self.sums.clear();
        self.sums.resize(users * terms, N::zero());
        for (owner, endowment, load) in node.rows() {
            self.guests.push(metric.guest_heaviness(cloud, &factors, endowment, load));
            metric.add_terms(cloud, &factors, endowment, load, &mut self.sums[owner * terms..][..terms]);
        }
        Ok(())
    }
}

/// Adds a node's sums to those of others.
pub fn add_sums<N: Number>(total: &mut Vec<N>, part: &[N]) {
    total.resize(total.len().max(part.len()), N::zero());
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
}

/// h_u of every user, from the sums over all nodes, into `out`. A user of whom the sums say nothing has
/// no guests.
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

/// h_p = h_v + h_u of the owner, for each guest of a node, into `out`: the guest with the larger one yields.
/// (Paper 003, section IV.E. A guest's own heaviness counts twice, so that guests of one user differ.)
pub fn precedence<N: Number>(node: &Node<N>, guests: &[N], users: &[N], out: &mut Vec<N>) {
    out.clear();
    let of = |owner: &usize| users.get(*owner).cloned().unwrap_or_else(N::zero);
    out.extend(guests.iter().zip(node.owners()).map(|(h, owner)| h.clone() + &of(owner)));
}

/// Everything about all nodes at once, for whoever has them all.
#[derive(Clone, Debug, PartialEq)]
pub struct Heaviness<N> {
    /// h_v by node and guest.
    pub guests: Vec<Vec<N>>,
    /// h_u by user.
    pub users: Vec<N>,
    /// h_p by node and guest.
    pub precedence: Vec<Vec<N>>,
}

impl<N: Number> Heaviness<N> {
    /// Of these nodes.
    ///
    /// # Errors
    /// As [`Local::update`].
    pub fn of<M: Metric<N> + ?Sized>(
        metric: &M,
        cloud: &Cloud<N>,
        nodes: &[Node<N>],
    ) -> Result<Heaviness<N>, HeavinessError> {
        let mut local = Local::default();
        let (mut sums, mut guests, mut users) = (Vec::new(), Vec::new(), Vec::new());
        for node in nodes {
            local.update(metric, cloud, node)?;
            add_sums(&mut sums, &local.sums);
            guests.push(std::mem::take(&mut local.guests));
        }
        user_heaviness(metric, cloud, &sums, &mut users);
        let of = |(node, guests): (&Node<N>, &Vec<N>)| {
            let mut out = Vec::new();
            precedence(node, guests, &users, &mut out);
            out
        };
        let precedence = nodes.iter().zip(&guests).map(of).collect();
        Ok(Heaviness { guests, users, precedence })
    }
}
