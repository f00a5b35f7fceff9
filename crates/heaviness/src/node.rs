//! A node and its running workloads.

use crate::endowment::{check_length, check_quantity, divide_proportionally};
use crate::{Endowment, HeavinessError, Number};

/// A running virtual machine, container, or other group of processes that has one weight in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningWorkload<N> {
    /// The user who runs it: an index into the users of the [`Cloud`](crate::Cloud).
    pub owner: usize,
    /// The virtual size by resource (VCPUs, memory); `None` if there is none, as often for disks and networks. The unit
    /// must be the same for all workloads of a node; with [`Endowment::CappedProportional`] it must be that of the
    /// supply.
    pub sizes: Vec<Option<N>>,
    /// The use by resource, in the unit of the supply: a rate over the last interval for time-shared resources, the
    /// amount held for space-shared ones.
    pub load: Vec<N>,
}

/// The supply of one node, and the endowments and loads of its workloads.
///
/// All amounts are stored in units of the reference node: the given amount times the node's speed factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<N> {
    supply: Vec<N>,
    speed: Vec<N>,
    owners: Vec<usize>,
    /// By workload, then resource.
    endowments: Vec<N>,
    loads: Vec<N>,
}

impl<N: Number> Node<N> {
    /// Creates a node with this supply by resource, in the node's own units.
    ///
    /// `speed` converts a unit of each resource to units of the reference node: for CPU the node's benchmark result
    /// divided by that of the reference (or the ratio of their BogoMIPS, as in the paper), otherwise 1. Supply, sizes and
    /// loads are multiplied by it.
    ///
    /// # Errors
    /// Returns an error if there is no resource, a number is negative or not finite, a speed is 0, or a row does not have
    /// one number for each resource.
    pub fn new(
        mut supply: Vec<N>,
        speed: Vec<N>,
        rule: Endowment,
        workloads: Vec<RunningWorkload<N>>,
    ) -> Result<Node<N>, HeavinessError> {
        let resources = supply.len();
        if resources == 0 {
            return Err(HeavinessError::NoResource);
        }
        check_length("the speed of a node", speed.len(), resources)?;
        for (r, (supply, speed)) in supply.iter_mut().zip(&speed).enumerate() {
            check_quantity(speed, "the speed of a node", 0, r)?;
            if speed.is_zero() {
                return Err(HeavinessError::ZeroSpeed { resource: r });
            }
            *supply = supply.clone() * speed;
            check_quantity(supply, "the supply of a node", 0, r)?;
        }
        let mut node = Node {
            owners: workloads.iter().map(|g| g.owner).collect(),
            endowments: vec![N::zero(); workloads.len() * resources],
            loads: vec![N::zero(); workloads.len() * resources],
            supply,
            speed,
        };
        let mut sizes = Vec::with_capacity(workloads.len() * resources);
        for (i, workload) in workloads.into_iter().enumerate() {
            check_length("the size of a workload", workload.sizes.len(), resources)?;
            for (r, size) in workload.sizes.into_iter().enumerate() {
                let size = size.map(|s| s * &node.speed[r]);
                size.iter().try_for_each(|s| check_quantity(s, "the size of a workload", i, r))?;
                sizes.push(size);
            }
            node.set_load(i, &workload.load)?;
        }
        for (r, supply) in node.supply.iter().enumerate() {
            let column = sizes.iter().skip(r).step_by(resources).map(Option::as_ref);
            divide_proportionally(supply, column, rule, &mut node.endowments, (r, resources));
        }
        Ok(node)
    }

    /// Sets the load of a workload, by resource, in the node's own units.
    ///
    /// # Errors
    /// Returns an error if the index is out of range, or there is not one finite number of at least 0 for each resource.
    /// The load stays unchanged then.
    pub fn set_load(&mut self, workload: usize, load: &[N]) -> Result<(), HeavinessError> {
        let resources = self.supply.len();
        check_length("the load of a workload", load.len(), resources)?;
        let workloads = self.owners.len();
        if workload >= workloads {
            return Err(HeavinessError::UnknownWorkload { workload, workloads });
        }
        let scaled = |(r, (l, speed)): (usize, (&N, &N))| {
            let scaled = l.clone() * speed;
            check_quantity(&scaled, "the load of a workload", workload, r).map(|()| scaled)
        };
        load.iter().zip(&self.speed).enumerate().map(scaled).try_for_each(|l| l.map(|_| ()))?;
        let row = &mut self.loads[workload * resources..][..resources];
        for ((row, l), speed) in row.iter_mut().zip(load).zip(&self.speed) {
            *row = l.clone() * speed;
        }
        Ok(())
    }

    /// Sets the owner of every workload, such as after the users of the cloud have been renumbered.
    ///
    /// # Errors
    /// Returns an error if there is not one owner for each workload. The owners stay unchanged then.
    pub fn set_owners(&mut self, owners: Vec<usize>) -> Result<(), HeavinessError> {
        check_length("the owners of a node's workloads", owners.len(), self.owners.len())?;
        self.owners = owners;
        Ok(())
    }

    /// Returns the number of resources.
    pub fn resources(&self) -> usize {
        self.supply.len()
    }

    /// Returns the number of workloads.
    pub fn workloads(&self) -> usize {
        self.owners.len()
    }

    /// Returns the supply by resource, in units of the reference node.
    pub fn supply(&self) -> &[N] {
        &self.supply
    }

    /// Returns the owner of each workload.
    pub fn owners(&self) -> &[usize] {
        &self.owners
    }

    /// Returns the endowment of a workload by resource (Poullie et al. 2016, Eq. 1).
    ///
    /// # Panics
    /// Panics if the index is out of range.
    pub fn endowment(&self, workload: usize) -> &[N] {
        let resources = self.supply.len();
        &self.endowments[workload * resources..][..resources]
    }

    /// Returns the load of a workload by resource, in units of the reference node.
    ///
    /// # Panics
    /// Panics if the index is out of range.
    pub fn load(&self, workload: usize) -> &[N] {
        let resources = self.supply.len();
        &self.loads[workload * resources..][..resources]
    }

    /// Returns the owner, endowment and load of each workload.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &[N], &[N])> {
        let resources = self.supply.len();
        let rows = self.endowments.chunks_exact(resources).zip(self.loads.chunks_exact(resources));
        self.owners.iter().zip(rows).map(|(owner, (endowment, load))| (*owner, endowment, load))
    }
}
