//! The resources that are measured and divided, and one value for each of them.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A resource of a machine that can be divided among groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// CPU time.
    Cpu,
    /// Memory that is not reclaimed while other groups have some to spare.
    Memory,
    /// Disk bandwidth: bytes read and written.
    Disk,
    /// Network bandwidth: bytes sent.
    Network,
}

impl Resource {
    /// All resources, in the order in which tables list them.
    pub const ALL: [Resource; 4] = [Resource::Cpu, Resource::Memory, Resource::Disk, Resource::Network];

    /// Returns the customary name of the resource: `cpu`, `mem`, `disk` or `net`.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "mem",
            Resource::Disk => "disk",
            Resource::Network => "net",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One value for each resource, indexed by [`Resource`].
///
/// ```
/// use evenhand_enforcers::cgroups::{PerResource, Resource};
///
/// let capacity = PerResource { cpu: 8.0, memory: 1.6e10, ..PerResource::default() };
/// let used = PerResource { cpu: 2.0, ..PerResource::default() };
/// assert_eq!(used[Resource::Cpu] / capacity[Resource::Cpu], 0.25);
/// assert_eq!(capacity.select(&[Resource::Memory, Resource::Disk]), [1.6e10, 0.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerResource<T> {
    /// The value for [`Resource::Cpu`].
    pub cpu: T,
    /// The value for [`Resource::Memory`].
    pub memory: T,
    /// The value for [`Resource::Disk`].
    pub disk: T,
    /// The value for [`Resource::Network`].
    pub network: T,
}

impl<T> PerResource<T> {
    /// Computes the value of each resource, in the order of [`Resource::ALL`].
    pub fn from_fn(mut value: impl FnMut(Resource) -> T) -> PerResource<T> {
        let [cpu, memory, disk, network] = Resource::ALL.map(&mut value);
        PerResource { cpu, memory, disk, network }
    }

    /// Applies a function to each value.
    pub fn map<U>(self, function: impl FnMut(T) -> U) -> PerResource<U> {
        let [cpu, memory, disk, network] = [self.cpu, self.memory, self.disk, self.network].map(function);
        PerResource { cpu, memory, disk, network }
    }

    /// Iterates over the resources and their values, in the order of [`Resource::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Resource, &T)> {
        Resource::ALL.into_iter().map(|resource| (resource, &self[resource]))
    }

    /// Returns the values of these resources, in their order: the form in which
    /// [`evenhand_heaviness`] takes values of the resources that are counted.
    pub fn select(&self, resources: &[Resource]) -> Vec<T>
    where
        T: Clone,
    {
        resources.iter().map(|resource| self[*resource].clone()).collect()
    }
}

impl<T> PerResource<Option<T>> {
    /// Fills the values that are missing here with those of `other`.
    #[must_use]
    pub fn or(self, other: PerResource<Option<T>>) -> PerResource<Option<T>> {
        PerResource {
            cpu: self.cpu.or(other.cpu),
            memory: self.memory.or(other.memory),
            disk: self.disk.or(other.disk),
            network: self.network.or(other.network),
        }
    }
}

impl<T> Index<Resource> for PerResource<T> {
    type Output = T;

    fn index(&self, resource: Resource) -> &T {
        match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
            Resource::Disk => &self.disk,
            Resource::Network => &self.network,
        }
    }
}

impl<T> IndexMut<Resource> for PerResource<T> {
    fn index_mut(&mut self, resource: Resource) -> &mut T {
        match resource {
            Resource::Cpu => &mut self.cpu,
            Resource::Memory => &mut self.memory,
            Resource::Disk => &mut self.disk,
            Resource::Network => &mut self.network,
        }
    }
}

/// The weights and the memory protection requested for a group. `None` leaves a resource as it is.
///
/// CPU, disk and network have weights: the group's share in proportion to those of its siblings, where 1 is the kernel's
/// default. Memory has the number of protected bytes, which is rounded down to whole pages.
pub type Targets = PerResource<Option<f64>>;

impl Targets {
    /// Requests the same weight for CPU, disk and network, and leaves memory as it is.
    pub fn equal_weights(weight: f64) -> Targets {
        Targets { cpu: Some(weight), disk: Some(weight), network: Some(weight), memory: None }
    }
}

/// The cumulative resource use of a group. `None` where the kernel does not count it.
///
/// CPU time is in nanoseconds, disk traffic (read and written) and network traffic (sent, and received where the group has
/// devices of its own) in bytes, each since the group was created. Memory is the number of bytes held now.
pub type Usage = PerResource<Option<u64>>;
