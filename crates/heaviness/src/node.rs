//! A node and its guests.

use crate::endowment::{divide, quantity, width};
use crate::{Endowment, HeavinessError, Number};

/// A virtual machine, a container, or any group of processes that the kernel weighs as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Guest<N> {
    /// Who runs it: a user of the [`Cloud`](crate::Cloud).
    pub owner: usize,
    /// Its virtual size of each resource (VCPUs, memory); `None` where it has none, as disks and networks
    /// often do. What unit, is the same to all guests of a node, and with
    /// [`Endowment::CappedProportional`] the unit of the supply.
    pub sizes: Vec<Option<N>>,
    /// What it uses of each resource, in the unit of the supply: a rate over the last interval for what is
    /// shared in time, the amount held for what is shared in space.
    pub load: Vec<N>,
}

/// What one node supplies, and what its guests are budgeted and use.
///
/// All amounts are kept in units of the reference node: what was given times the node's speed factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<N> {
    supply: Vec<N>,
    speed: Vec<N>,
    owners: Vec<usize>,
    /// Guest after guest.
    endowments: Vec<N>,
    loads: Vec<N>,
}

impl<N: Number> Node<N> {
    /// A node with so much of each resource, and its guests.
    ///
    /// `speed` says for each resource what a unit of it is worth in units of the reference node: for CPU the
    /// node's result of a benchmark over that of the reference (or its BogoMIPS over the reference's, as in
    /// the paper), otherwise 1. Supply, sizes and loads are multiplied by it.
    ///
    /// # Errors
    /// If there is no resource, a number is negative or not finite, a speed is 0, or a row does not have
    /// one number a resource.
    pub fn new(
        mut supply: Vec<N>,
        speed: Vec<N>,
        rule: Endowment,
        guests: Vec<Guest<N>>,
    ) -> Result<Node<N>, HeavinessError> {
        let resources = supply.len();
        if resources == 0 {
            return Err(HeavinessError::NoResource);
        }
        width("the speed of a node", speed.len(), resources)?;
        for (r, (supply, speed)) in supply.iter_mut().zip(&speed).enumerate() {
            quantity(speed, "the speed of a node", 0, r)?;
            if speed.is_zero() {
                return Err(HeavinessError::ZeroSpeed { resource: r });
            }
            *supply = supply.clone() * speed;
            quantity(supply, "the supply of a node", 0, r)?;
        }
        let mut node = Node {
            owners: guests.iter().map(|g| g.owner).collect(),
            endowments: vec![N::zero(); guests.len() * resources],
            loads: vec![N::zero(); guests.len() * resources],
            supply,
            speed,
        };
        let mut sizes = Vec::with_capacity(guests.len() * resources);
        for (i, guest) in guests.into_iter().enumerate() {
            width("the size of a guest", guest.sizes.len(), resources)?;
            for (r, size) in guest.sizes.into_iter().enumerate() {
                let size = size.map(|s| s * &node.speed[r]);
                size.iter().try_for_each(|s| quantity(s, "the size of a guest", i, r))?;
                sizes.push(size);
            }
            node.set_load(i, &guest.load)?;
        }
        for (r, supply) in node.supply.iter().enumerate() {
            let column = sizes.iter().skip(r).step_by(resources).map(Option::as_ref);
            divide(supply, column, rule, &mut node.endowments, (r, resources));
        }
        Ok(node)
    }

    /// Says what a guest uses now, in the node's own units.
    ///
    /// # Errors
    /// If there is no such guest, or not one finite number of at least 0 for each resource; the load then
    /// stays what it was.
    pub fn set_load(&mut self, guest: usize, load: &[N]) -> Result<(), HeavinessError> {
        let resources = self.supply.len();
        width("the load of a guest", load.len(), resources)?;
        let guests = self.owners.len();
        if guest >= guests {
            return Err(HeavinessError::UnknownGuest { guest, guests });
        }
        let scaled = |(r, (l, speed)): (usize, (&N, &N))| {
            let scaled = l.clone() * speed;
            quantity(&scaled, "the load of a guest", guest, r).map(|()| scaled)
        };
        load.iter().zip(&self.speed).enumerate().map(scaled).try_for_each(|l| l.map(|_| ()))?;
        let row = &mut self.loads[guest * resources..][..resources];
        for ((row, l), speed) in row.iter_mut().zip(load).zip(&self.speed) {
            *row = l.clone() * speed;
        }
        Ok(())
    }

    /// Says whose the guests are, as when the users of the cloud are numbered anew.
    ///
    /// # Errors
    /// If there is not one owner a guest; then they stay what they were.
    pub fn set_owners(&mut self, owners: Vec<usize>) -> Result<(), HeavinessError> {
        width("the owners of a node's guests", owners.len(), self.owners.len())?;
        self.owners = owners;
        Ok(())
    }

    /// How many resources there are.
    pub fn resources(&self) -> usize {
        self.supply.len()
    }

    /// How many guests there are.
    pub fn guests(&self) -> usize {
        self.owners.len()
    }

    /// What there is of each resource.
    pub fn supply(&self) -> &[N] {
        &self.supply
    }

    /// Who runs each guest.
    pub fn owners(&self) -> &[usize] {
        &self.owners
    }

    /// What is budgeted for a guest (paper 003, Eq. 1).
    pub fn endowment(&self, guest: usize) -> &[N] {
        let resources = self.supply.len();
        &self.endowments[guest * resources..][..resources]
    }

    /// What a guest uses.
    pub fn load(&self, guest: usize) -> &[N] {
        let resources = self.supply.len();
        &self.loads[guest * resources..][..resources]
    }

    /// Each guest's owner, endowment and load.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &[N], &[N])> {
        let resources = self.supply.len();
        let rows = self.endowments.chunks_exact(resources).zip(self.loads.chunks_exact(resources));
        self.owners.iter().zip(rows).map(|(owner, (endowment, load))| (*owner, endowment, load))
    }
}
