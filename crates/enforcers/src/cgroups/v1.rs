//! Control groups, version 1: each controller has a hierarchy of its own, and a group may exist in some of them only.

use std::sync::Arc;

use evenhand_heaviness::controller::{bfq_weight, cpu_shares};

use crate::cgroups::cgroup_enforcer::{Attribute, Scale, whole_pages};
use crate::cgroups::cgroup_meter::{CounterFile, Parse};
use crate::cgroups::parse_counters;
use crate::cgroups::{CgroupEnforcer, CgroupMeter, DescriptorBudget, Hierarchies, ProtectedCgroups, Resource};

impl CgroupEnforcer {
    /// Creates an enforcer that writes `cpu.shares`, `memory.soft_limit_in_bytes` and `blkio.bfq.weight`: of `resources`
    /// those whose hierarchies are mounted.
    ///
    /// A soft limit is the closest equivalent of a protection in version 1: under memory pressure the kernel reclaims from
    /// groups above their limit first. A group without one never exceeds it, so it works only among groups that all
    /// have one.
    pub fn v1(
        hierarchies: &Hierarchies,
        resources: &[Resource],
        protected: ProtectedCgroups,
        budget: &DescriptorBudget,
    ) -> CgroupEnforcer {
        let mut attributes = Vec::new();
        let mut add = |resource, controller, name, scale: Scale, devices| {
            if let Some(root) = hierarchies.legacy.get(controller).filter(|_| resources.contains(&resource)) {
                attributes.push(Attribute { resource, root: Arc::from(root.as_path()), name, scale, devices });
            }
        };
        add(Resource::Cpu, "cpu", "cpu.shares", |weight| cpu_shares(weight).into(), None);
        add(Resource::Memory, "memory", "memory.soft_limit_in_bytes", whole_pages, None);
        let disk: Scale = |weight| bfq_weight(weight).into();
        add(Resource::Disk, "blkio", "blkio.bfq.weight", disk, Some("blkio.bfq.weight_device"));
        CgroupEnforcer::new("cgroup-v1", attributes, hierarchies, protected, budget)
    }
}

impl CgroupMeter {
    /// Creates a meter that reads `cpuacct.usage`, `memory.usage_in_bytes` and the byte counts of `blkio`, from the
    /// hierarchies that are mounted. All of them include descendant groups.
    ///
    /// The kernel counts disk bytes twice, in BFQ and in the block throttle, and neither count is complete: BFQ counts
    /// only its own disks, the throttle since Linux 6.10 only disks that have ever had a limit. So the larger of the two
    /// sums is used; a disk that neither counts is missed. The throttle is skipped for a group that is admitted while it
    /// has counted nothing on the whole machine.
    pub fn v1(hierarchies: &Hierarchies, budget: &DescriptorBudget) -> CgroupMeter {
        let mut counters: Vec<CounterFile> = Vec::new();
        let mut add = |resource, controller, names: &'static [&'static str], parse: Parse, expected| {
            if let Some(root) = hierarchies.legacy.get(controller) {
                let only_if = names[0].starts_with("blkio.throttle").then(|| root.join(names[0]));
                counters.push(CounterFile {
                    resource,
                    root: Arc::from(root.as_path()),
                    names,
                    parse,
                    expected,
                    only_if,
                });
            }
        };
        add(Resource::Cpu, "cpuacct", &["cpuacct.usage"], parse_counters::single, "one number");
        add(Resource::Memory, "memory", &["memory.usage_in_bytes"], parse_counters::single, "one number");
        let bfq = &["blkio.bfq.io_service_bytes_recursive", "blkio.bfq.io_service_bytes"];
        let throttle = &["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"];
        add(Resource::Disk, "blkio", bfq, parse_counters::service_bytes, "a line Total with a number");
        add(Resource::Disk, "blkio", throttle, parse_counters::service_bytes, "a line Total with a number");
        let roots = counters.iter().map(|counter| Arc::clone(&counter.root)).collect();
        CgroupMeter::new(counters, roots, None, budget)
    }
}
