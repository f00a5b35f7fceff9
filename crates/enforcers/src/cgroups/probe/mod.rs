//! Finds out which resources can be divided on this machine, by which mechanism, and what would enable the others.
//!
//! Many causes fail silently: a disk weight can be written whatever scheduler the disk has, and a file that should protect
//! memory can be ignored by the kernel. So all causes are checked once, at the start.

mod disks;
mod observations;
mod resource_support;
mod system_root;

pub use disks::{BfqSettings, Disk};
pub use system_root::SystemRoot;

use crate::cgroups::{
    CgroupEnforcer, CgroupMeter, CompositeMeter, DescriptorBudget, DiskWeight, Enforcer, Hierarchies, KernelError,
    ProtectedCgroups, Protection, Resource,
};

/// Whether one resource can be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSupport {
    /// The resource.
    pub resource: Resource,
    /// Whether weights for it take effect.
    pub supported: bool,
    /// The enforcer and its file; empty if there is none.
    pub mechanism: String,
    /// The reason, as a clause.
    pub reason: String,
    /// What would enable it, if anything would.
    pub advice: Option<String>,
}

/// Another property of the machine that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What was examined.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// What follows from it.
    pub consequence: String,
}

/// The result of probing a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeReport {
    /// One entry for each resource that was examined, in the order of [`Resource::ALL`].
    pub resources: Vec<ResourceSupport>,
    /// All other properties: first those of the machine, then those of its disks, by name.
    pub observations: Vec<Observation>,
    /// The mounted cgroup hierarchies.
    pub hierarchies: Hierarchies,
    /// The disks, by name.
    pub disks: Vec<Disk>,
    /// Whether systemd runs the machine, and so owns its units.
    pub systemd: bool,
    /// The file through which version 2 divides disks.
    pub disk_weight: Option<DiskWeight>,
    /// The file through which version 2 protects memory.
    pub memory_protection: Option<Protection>,
    /// The resources that only the right to write is missing for, each with what cannot be written and why.
    pub not_permitted: Vec<(Resource, String)>,
    /// The bytes that can be protected for all groups below `under` together, where their ancestors limit them.
    pub protected_memory: Option<u64>,
}

/// Examines which resources can be divided among the children of the group `under` ("" is the root). Writes nothing.
///
/// [`Resource::Network`] is not examined, because control groups do not divide it: see [`ProbeReport::add`].
///
/// # Errors
/// Returns an error if the mounted hierarchies cannot be determined, or if `under` is not a group's path.
pub fn probe(system: &SystemRoot, under: &str) -> Result<ProbeReport, KernelError> {
    if !under.is_empty() {
        crate::cgroups::protected_cgroups::check_group_path(under)?;
    }
    let hierarchies = system.hierarchies()?;
    let mut report = ProbeReport {
        disks: disks::disks(system, &hierarchies),
        systemd: system.at("run/systemd/system").is_dir(),
        hierarchies,
        ..ProbeReport::default()
    };
    let examiner = resource_support::Examiner { system, under, lru_gen: observations::lru_gen(system) };
    for resource in [Resource::Cpu, Resource::Memory, Resource::Disk] {
        let support = examiner.examine(resource, &mut report);
        report.resources.push(support);
    }
    report.observations = observations::observations(&examiner, &report);
    Ok(report)
}

impl ProbeReport {
    /// Returns the entry of a resource.
    pub fn support(&self, resource: Resource) -> Option<&ResourceSupport> {
        self.resources.iter().find(|support| support.resource == resource)
    }

    /// Adds the result of another probe. It replaces an entry for the same resource unless that one alone is supported.
    pub fn add(&mut self, support: ResourceSupport) {
        match self.resources.binary_search_by_key(&support.resource, |s| s.resource) {
            Ok(at) if !self.resources[at].supported || support.supported => self.resources[at] = support,
            Ok(_) => {}
            Err(at) => self.resources.insert(at, support),
        }
    }

    fn is_supported(&self, resource: Resource) -> bool {
        self.support(resource).is_some_and(|support| support.supported)
    }

    /// Creates the enforcers for the supported resources, in the order of their priority.
    pub fn enforcers(&self, protected: &ProtectedCgroups, budget: &DescriptorBudget) -> Vec<Box<dyn Enforcer>> {
        self.cgroup_enforcers(protected, budget).map(|enforcer| Box::new(enforcer) as Box<dyn Enforcer>).collect()
    }

    /// Creates the same enforcers, which report what they would write and write nothing.
    pub fn dry_run(&self, protected: &ProtectedCgroups, budget: &DescriptorBudget) -> Vec<Box<dyn Enforcer>> {
        let enforcers = self.cgroup_enforcers(protected, budget);
        enforcers.map(|enforcer| Box::new(enforcer.dry_run()) as Box<dyn Enforcer>).collect()
    }

    fn cgroup_enforcers(
        &self,
        protected: &ProtectedCgroups,
        budget: &DescriptorBudget,
    ) -> impl Iterator<Item = CgroupEnforcer> {
        let controllers = [(Resource::Cpu, "cpu"), (Resource::Memory, "memory"), (Resource::Disk, "blkio")];
        let supported = controllers.into_iter().filter(|(resource, _)| self.is_supported(*resource));
        let (v1, v2): (Vec<_>, Vec<_>) = supported.partition(|(_, name)| self.hierarchies.legacy.contains_key(*name));
        let by_v2 = |resource| v2.iter().any(|(r, _)| *r == resource);
        let mut all = Vec::new();
        if !v2.is_empty() {
            let disk = self.disk_weight.filter(|_| by_v2(Resource::Disk));
            let memory = self.memory_protection.filter(|_| by_v2(Resource::Memory));
            let (cpu, protected) = (by_v2(Resource::Cpu), protected.clone());
            all.push(CgroupEnforcer::v2(&self.hierarchies, cpu, disk, memory, protected, budget));
        }
        if !v1.is_empty() {
            let resources: Vec<Resource> = v1.iter().map(|(resource, _)| *resource).collect();
            all.push(CgroupEnforcer::v1(&self.hierarchies, &resources, protected.clone(), budget));
        }
        all.into_iter()
    }

    /// Creates the meter for control groups.
    pub fn meter(&self, budget: &DescriptorBudget) -> CompositeMeter {
        let mut all = CompositeMeter::new();
        if !self.hierarchies.legacy.is_empty() {
            all = all.with(Box::new(CgroupMeter::v1(&self.hierarchies, budget)));
        }
        if self.hierarchies.unified.is_some() {
            all = all.with(Box::new(CgroupMeter::v2(&self.hierarchies, budget)));
        }
        all
    }
}
