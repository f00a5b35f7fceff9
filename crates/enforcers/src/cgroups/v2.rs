//! Control groups, version 2: one hierarchy for all controllers.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use evenhand_heaviness::controller::{bfq_weight, cgroup_weight};
use rustix::io::Errno;

use crate::cgroups::attributes::{Attribute, Attributes, Scale, whole_pages};
use crate::cgroups::counters;
use crate::cgroups::descriptors::{For, Kept, vanished};
use crate::cgroups::sources::{Parse, Source, Sources, failed};
use crate::cgroups::{
    Before, Budget, Change, Control, Enforcer, Group, GroupId, Hierarchies, KernelError, Levels, Meter, Own, Pressure,
    Stall, Usage,
};

/// By which file disks are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWeight {
    /// `io.bfq.weight`: works on disks whose scheduler is BFQ.
    Bfq,
    /// `io.weight`: works on disks for which the cost model is enabled in `io.cost.qos`.
    Cost,
}

/// By which file memory is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// `memory.low`: taken only if there is no other. The multi-generational LRU of Linux 6.12 does not honour it.
    Low,
    /// `memory.min`: never taken, so the kernel rather ends processes. The sum must stay below what the machine has.
    Min,
}

/// Weighs groups by `cpu.weight`, `io.bfq.weight` or `io.weight`, and `memory.low` or `memory.min`.
#[derive(Debug)]
pub struct CgroupV2(Attributes);

impl CgroupV2 {
    /// By these files. None at all if version 2 is not mounted.
    pub fn new(
        hierarchies: &Hierarchies,
        cpu: bool,
        disk: Option<DiskWeight>,
        memory: Option<Protection>,
        own: Own,
        budget: &Budget,
    ) -> CgroupV2 {
        let mut attributes = Vec::new();
        if let Some(root) = &hierarchies.unified {
            let root: Arc<Path> = Arc::from(root.as_path());
            let mut add = |control, name, scale: Scale| {
                attributes.push(Attribute { control, root: Arc::clone(&root), name, scale, devices: None });
            };
            if cpu {
                add(Control::Cpu, "cpu.weight", |l| l.cpu.map(|w| cgroup_weight(w).into()));
            }
            match memory {
                Some(Protection::Low) => add(Control::Memory, "memory.low", |l| l.memory.map(whole_pages)),
                Some(Protection::Min) => add(Control::Memory, "memory.min", |l| l.memory.map(whole_pages)),
                None => {}
            }
            match disk {
                Some(DiskWeight::Bfq) => {
                    add(Control::Disk, "io.bfq.weight", |l| l.disk.map(|w| bfq_weight(w).into()));
                }
                Some(DiskWeight::Cost) => {
                    add(Control::Disk, "io.weight", |l| l.disk.map(|w| cgroup_weight(w).into()));
                }
                None => {}
            }
        }
        CgroupV2(Attributes::new(attributes, own, budget))
    }
}

impl Enforcer for CgroupV2 {
    fn name(&self) -> &'static str {
        "cgroup-v2"
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

const WAITS: [&str; 3] = ["cpu.pressure", "memory.pressure", "io.pressure"];

/// Reads groups from `cpu.stat`, `memory.current` and `io.stat`, and how long they waited from their `.pressure`
/// files. What a hierarchy of version 1 counts is not looked for here.
#[derive(Debug)]
pub struct CgroupV2Meter {
    root: Option<Arc<Path>>,
    sources: Sources,
    /// Opened when they are first asked for.
    waits: HashMap<GroupId, [Option<Kept>; 3]>,
    budget: Budget,
    buffer: Vec<u8>,
}

impl CgroupV2Meter {
    /// From version 2 if that is mounted.
    pub fn new(hierarchies: &Hierarchies, budget: &Budget) -> CgroupV2Meter {
        let root: Option<Arc<Path>> = hierarchies.unified.as_deref().map(Arc::from);
        let mut sources = Vec::new();
        let mut add = |control, legacy, names, parse: Parse, expected| {
            if let Some(root) = root.as_ref().filter(|_| !hierarchies.legacy.contains_key(legacy)) {
                let root = Arc::clone(root);
                sources.push(Source { control, root, names, parse, expected, only_if: None });
            }
        };
        add(Control::Cpu, "cpuacct", &["cpu.stat"], counters::cpu_stat, "a line usage_usec with a number");
        add(Control::Memory, "memory", &["memory.current"], counters::single, "one number");
        add(Control::Disk, "blkio", &["io.stat"], counters::io_stat, "lines with rbytes= and wbytes=");
        let sources = Sources::new(sources, root.iter().cloned().collect(), budget);
        CgroupV2Meter { root, sources, waits: HashMap::new(), budget: budget.clone(), buffer: Vec::new() }
    }
}

impl Meter for CgroupV2Meter {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        self.waits.remove(&id);
        self.sources.admit(id, group)
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        self.sources.read(id)
    }

    fn pressure(&mut self, id: GroupId) -> Result<Pressure, KernelError> {
        let group = self.sources.path(id).ok_or(KernelError::Unknown(id))?;
        let Some(root) = &self.root else { return Ok(Pressure::default()) };
        if !self.waits.contains_key(&id) {
            let mut kept = [None, None, None];
            for (slot, name) in kept.iter_mut().zip(WAITS) {
                *slot = match Kept::find(root, group, name, For::Reading, &self.budget) {
                    Ok(kept) => kept,
                    Err(error) if switched_off(&error) => None,
                    Err(error) => return Err(failed(&root.join(&**group).join(name), error)),
                };
            }
            self.waits.insert(id, kept);
        }
        let mut stalls = [None; 3];
        for (stall, kept) in stalls.iter_mut().zip(self.waits.get_mut(&id).into_iter().flatten()) {
            let Some(kept) = kept else { continue };
            match kept.read(&mut self.buffer, &self.budget) {
                Ok(text) => *stall = Stall::parse(text),
                Err(error) if vanished(&error) && !root.join(&**group).is_dir() => {
                    return Err(KernelError::Gone(group.to_string()));
                }
                Err(error) if vanished(&error) || switched_off(&error) => {}
                Err(error) => return Err(failed(&kept.path(), error)),
            }
        }
        let [cpu, memory, disk] = stalls;
        Ok(Pressure { cpu, memory, disk })
    }

    fn dismiss(&mut self, id: GroupId) {
        self.waits.remove(&id);
        self.sources.dismiss(id);
    }
}

/// Pressure is not counted: by the machine (`psi=0`), or by this group (`cgroup.pressure`).
fn switched_off(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::OPNOTSUPP)
}
