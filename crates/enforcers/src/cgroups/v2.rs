//! Control groups, version 2: one hierarchy for all controllers.

use std::path::Path;
use std::sync::Arc;

use evenhand_heaviness::controller::{bfq_weight, cgroup_weight};

use crate::cgroups::cgroup_enforcer::{Attribute, Scale, whole_pages};
use crate::cgroups::cgroup_meter::{CounterFile, Parse};
use crate::cgroups::parse_counters;
use crate::cgroups::{CgroupEnforcer, CgroupMeter, DescriptorBudget, Hierarchies, ProtectedCgroups, Resource};

/// The file through which disk bandwidth is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWeight {
    /// `io.bfq.weight`: takes effect on disks whose scheduler is BFQ.
    Bfq,
    /// `io.weight`: takes effect on disks for which the cost model is enabled in `io.cost.qos`.
    Cost,
}

/// The file through which memory is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// `memory.low`: reclaimed only if no unprotected memory is left. The multi-generational LRU of Linux 6.12 ignores
    /// it.
    Low,
    /// `memory.min`: never reclaimed; the kernel would rather kill processes. The sum must stay below the machine's
    /// memory.
    Min,
}

impl CgroupEnforcer {
    /// Creates an enforcer that writes `cpu.weight` if `cpu` is set, and the files that `disk` and `memory` name. It
    /// writes nothing if version 2 is not mounted.
    pub fn v2(
        hierarchies: &Hierarchies,
        cpu: bool,
        disk: Option<DiskWeight>,
        memory: Option<Protection>,
        protected: ProtectedCgroups,
        budget: &DescriptorBudget,
    ) -> CgroupEnforcer {
        let mut attributes = Vec::new();
        if let Some(root) = &hierarchies.unified {
            let root: Arc<Path> = Arc::from(root.as_path());
            let mut add = |resource, name, scale: Scale| {
                attributes.push(Attribute { resource, root: Arc::clone(&root), name, scale, devices: None });
            };
            if cpu {
                add(Resource::Cpu, "cpu.weight", |weight| cgroup_weight(weight).into());
            }
            match memory {
                Some(Protection::Low) => add(Resource::Memory, "memory.low", whole_pages),
                Some(Protection::Min) => add(Resource::Memory, "memory.min", whole_pages),
                None => {}
            }
            match disk {
                Some(DiskWeight::Bfq) => add(Resource::Disk, "io.bfq.weight", |weight| bfq_weight(weight).into()),
                Some(DiskWeight::Cost) => add(Resource::Disk, "io.weight", |weight| cgroup_weight(weight).into()),
                None => {}
            }
        }
        CgroupEnforcer::new("cgroup-v2", attributes, protected, budget)
    }
}

impl CgroupMeter {
    /// Creates a meter that reads `cpu.stat`, `memory.current`, `io.stat` and the `.pressure` files. Resources that a v1
    /// controller counts are skipped.
    pub fn v2(hierarchies: &Hierarchies, budget: &DescriptorBudget) -> CgroupMeter {
        let root: Option<Arc<Path>> = hierarchies.unified.as_deref().map(Arc::from);
        let mut counters = Vec::new();
        let mut add = |resource, legacy, names, parse: Parse, expected| {
            if let Some(root) = root.as_ref().filter(|_| !hierarchies.legacy.contains_key(legacy)) {
                let root = Arc::clone(root);
                counters.push(CounterFile { resource, root, names, parse, expected, only_if: None });
            }
        };
        add(Resource::Cpu, "cpuacct", &["cpu.stat"], parse_counters::cpu_stat, "a line usage_usec with a number");
        add(Resource::Memory, "memory", &["memory.current"], parse_counters::single, "one number");
        add(Resource::Disk, "blkio", &["io.stat"], parse_counters::io_stat, "lines with rbytes= and wbytes=");
        CgroupMeter::new(counters, root.iter().cloned().collect(), root, budget)
    }
}
