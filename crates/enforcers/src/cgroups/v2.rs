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
        let cpu = cpu.then_some(V2File::CPU);
        let memory = memory.map(|protection| match protection {
            Protection::Low => V2File::MEMORY_LOW,
            Protection::Min => V2File::MEMORY_MIN,
        });
        let disk = disk.map(|weight| match weight {
            DiskWeight::Bfq => V2File::IO_BFQ_WEIGHT,
            DiskWeight::Cost => V2File::IO_WEIGHT,
        });
        CgroupEnforcer::of_v2_files([cpu, memory, disk].into_iter().flatten(), hierarchies, protected, budget)
    }

    /// Creates the enforcers that restore what an enforcer of either version wrote on this machine, whatever can be divided
    /// there now.
    pub fn all_for_restoring(
        hierarchies: &Hierarchies,
        protected: &ProtectedCgroups,
        budget: &DescriptorBudget,
    ) -> [CgroupEnforcer; 2] {
        let files =
            [V2File::CPU, V2File::MEMORY_LOW, V2File::MEMORY_MIN, V2File::IO_BFQ_WEIGHT, V2File::IO_WEIGHT].into_iter();
        [
            CgroupEnforcer::of_v2_files(files, hierarchies, protected.clone(), budget),
            CgroupEnforcer::v1(hierarchies, &Resource::ALL, protected.clone(), budget),
        ]
    }

    fn of_v2_files(
        files: impl Iterator<Item = V2File>,
        hierarchies: &Hierarchies,
        protected: ProtectedCgroups,
        budget: &DescriptorBudget,
    ) -> CgroupEnforcer {
        let root: Option<Arc<Path>> = hierarchies.unified.as_deref().map(Arc::from);
        let attribute = |V2File(resource, name, scale)| {
            Some(Attribute { resource, root: Arc::clone(root.as_ref()?), name, scale, devices: None })
        };
        CgroupEnforcer::new("cgroup-v2", files.filter_map(attribute).collect(), hierarchies, protected, budget)
    }
}

/// A file that divides a resource, with its scale.
#[derive(Clone, Copy)]
struct V2File(Resource, &'static str, Scale);

impl V2File {
    const CPU: V2File = V2File(Resource::Cpu, "cpu.weight", |weight| cgroup_weight(weight).into());
    const MEMORY_LOW: V2File = V2File(Resource::Memory, "memory.low", whole_pages);
    const MEMORY_MIN: V2File = V2File(Resource::Memory, "memory.min", whole_pages);
    const IO_BFQ_WEIGHT: V2File = V2File(Resource::Disk, "io.bfq.weight", |weight| bfq_weight(weight).into());
    const IO_WEIGHT: V2File = V2File(Resource::Disk, "io.weight", |weight| cgroup_weight(weight).into());
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
