//! Control groups, version 1: each controller has a hierarchy of its own, and a group may be in some of them only.

use std::sync::Arc;

use evenhand_heaviness::controller::{bfq_weight, cpu_shares};

use crate::cgroups::attributes::{Attribute, Attributes, Scale, whole_pages};
use crate::cgroups::counters;
use crate::cgroups::sources::{Parse, Source, Sources};
use crate::cgroups::{
    Before, Budget, Change, Control, Enforcer, Group, GroupId, Hierarchies, KernelError, Levels, Meter, Own, Usage,
};

/// Weighs groups by `cpu.shares`, `blkio.bfq.weight` and `memory.soft_limit_in_bytes`.
///
/// A soft limit is the nearest that version 1 has to a protection: who holds more than theirs loses memory before
/// those who do not. A group without one has no excess, so it only works among groups that all have one.
#[derive(Debug)]
pub struct CgroupV1(Attributes);

impl CgroupV1 {
    /// For those of `controls` whose hierarchies are mounted.
    pub fn new(hierarchies: &Hierarchies, controls: &[Control], own: Own, budget: &Budget) -> CgroupV1 {
        let mut attributes = Vec::new();
        let mut add = |control, controller, name, scale: Scale, devices| {
            if let Some(root) = hierarchies.legacy.get(controller).filter(|_| controls.contains(&control)) {
                attributes.push(Attribute { control, root: Arc::from(root.as_path()), name, scale, devices });
            }
        };
        add(Control::Cpu, "cpu", "cpu.shares", |l| l.cpu.map(|w| cpu_shares(w).into()), None);
        add(Control::Memory, "memory", "memory.soft_limit_in_bytes", |l| l.memory.map(whole_pages), None);
        let disk: Scale = |l| l.disk.map(|w| bfq_weight(w).into());
        add(Control::Disk, "blkio", "blkio.bfq.weight", disk, Some("blkio.bfq.weight_device"));
        CgroupV1(Attributes::new(attributes, own, budget))
    }
}

impl Enforcer for CgroupV1 {
    fn name(&self) -> &'static str {
        "cgroup-v1"
    }

    fn controls(&self) -> &[Control] {
        self.0.controls()
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        self.0.admit(id, group)
    }

    fn apply(&mut self, group: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        self.0.apply(group, levels, changes)
    }

    fn dismiss(&mut self, id: GroupId) {
        self.0.dismiss(id);
    }

    fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError> {
        self.0.restore(group, before)
    }
}

/// Reads groups from `cpuacct.usage`, `memory.usage_in_bytes` and the byte counts of `blkio`.
///
/// All of them include the groups below. Bytes of disks are counted twice by the kernel, by BFQ and by its throttle,
/// and neither always counts: BFQ only for its disks, the throttle of new kernels (6.10) only for disks that have
/// ever had a limit. So the larger of the two sums counts; a disk that neither counts is not seen at all. The
/// throttle is left out for a group that is admitted while it has counted nothing on the whole machine.
#[derive(Debug)]
pub struct CgroupV1Meter(Sources);

impl CgroupV1Meter {
    /// From the hierarchies that are mounted.
    pub fn new(hierarchies: &Hierarchies, budget: &Budget) -> CgroupV1Meter {
        let mut sources: Vec<Source> = Vec::new();
        let mut add = |control, controller, names: &'static [&'static str], parse: Parse, expected| {
            if let Some(root) = hierarchies.legacy.get(controller) {
                let only_if = names[0].starts_with("blkio.throttle").then(|| root.join(names[0]));
                sources.push(Source { control, root: Arc::from(root.as_path()), names, parse, expected, only_if });
            }
        };
        add(Control::Cpu, "cpuacct", &["cpuacct.usage"], counters::single, "one number");
        add(Control::Memory, "memory", &["memory.usage_in_bytes"], counters::single, "one number");
        let bfq = &["blkio.bfq.io_service_bytes_recursive", "blkio.bfq.io_service_bytes"];
        let throttle = &["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"];
        add(Control::Disk, "blkio", bfq, counters::service_bytes, "a line Total with a number");
        add(Control::Disk, "blkio", throttle, counters::service_bytes, "a line Total with a number");
        let roots = sources.iter().map(|source| Arc::clone(&source.root)).collect();
        CgroupV1Meter(Sources::new(sources, roots, budget))
    }
}

impl Meter for CgroupV1Meter {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        self.0.admit(id, group)
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        self.0.read(id)
    }

    fn dismiss(&mut self, id: GroupId) {
        self.0.dismiss(id);
    }
}
