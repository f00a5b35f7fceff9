//! Examines whether one resource can be divided.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::disks::Disk;
use super::{ProbeReport, ResourceSupport, SystemRoot};
use crate::cgroups::{DiskWeight, Protection, Resource};

/// The part of a machine that is examined.
pub(super) struct Examiner<'a> {
    pub(super) system: &'a SystemRoot,
    /// The parent of the groups that are to be divided.
    pub(super) under: &'a str,
    /// Whether the multi-generational LRU is enabled.
    pub(super) lru_gen: bool,
}

/// The mechanism that divides a resource, and the reason why it works.
type Supported = (String, String);

/// The reason why a resource cannot be divided, and what would enable it.
type Unsupported = (String, Option<String>);

impl Examiner<'_> {
    pub(super) fn examine(&self, resource: Resource, report: &mut ProbeReport) -> ResourceSupport {
        let found = match resource {
            Resource::Cpu => self.cpu(report),
            Resource::Memory => self.memory(report),
            Resource::Disk => self.disk(report),
            Resource::Network => Err((String::from("control groups do not divide it"), None)),
        };
        match found {
            Ok((mechanism, reason)) => ResourceSupport { resource, supported: true, mechanism, reason, advice: None },
            Err((reason, advice)) => {
                ResourceSupport { resource, supported: false, mechanism: String::new(), reason, advice }
            }
        }
    }

    fn cpu(&self, report: &mut ProbeReport) -> Result<Supported, Unsupported> {
        Ok(match self.controller(Resource::Cpu, ("cpu", "cpu"), report)? {
            Version::One(root) => ("cgroup-v1 cpu.shares".into(), self.mounted("cpu", &root)),
            Version::Two(root) => ("cgroup-v2 cpu.weight".into(), self.mounted("cpu", &root)),
        })
    }

    fn memory(&self, report: &mut ProbeReport) -> Result<Supported, Unsupported> {
        let root = match self.controller(Resource::Memory, ("memory", "memory"), report)? {
            Version::One(root) => {
                return Ok(("cgroup-v1 memory.soft_limit_in_bytes".into(), self.mounted("memory", &root)));
            }
            Version::Two(root) => root,
        };
        let (file, protection, reason) = if self.lru_gen {
            let reason = "the multi-generational LRU is enabled, which ignores memory.low";
            ("memory.min", Protection::Min, reason.to_owned())
        } else {
            ("memory.low", Protection::Low, self.mounted("memory", &root))
        };
        // A group's protection is limited by that of each ancestor. What the ancestor has left goes to all its descendants
        // by use (memory_recursiveprot), so it should not be more than they are to have.
        for ancestor in ancestors(self.under).filter(|ancestor| !ancestor.is_empty()) {
            let path = root.join(ancestor).join(file);
            let Some(bytes) = SystemRoot::text(&path).and_then(|text| text.parse::<u64>().ok()) else { continue };
            if bytes == 0 {
                let setting = if self.lru_gen { "MemoryMin" } else { "MemoryLow" };
                let unit = ancestor.rsplit('/').next().unwrap_or(ancestor);
                let how = if report.systemd {
                    format!("systemctl set-property {unit} {setting}=BYTES")
                } else {
                    format!("echo BYTES > {}", self.system.name(&path))
                };
                let advice = format!("{how}, where BYTES is the total for all groups below it");
                return Err((format!("{file} of {ancestor} is 0, so no group below it is protected"), Some(advice)));
            }
            report.protected_memory = Some(report.protected_memory.map_or(bytes, |minimum| minimum.min(bytes)));
        }
        report.memory_protection = Some(protection);
        Ok((format!("cgroup-v2 {file}"), reason))
    }

    fn disk(&self, report: &mut ProbeReport) -> Result<Supported, Unsupported> {
        let version = self.controller(Resource::Disk, ("io", "blkio"), report)?;
        let (disks, file) = match version {
            Version::One(_) => (&report.disks, "cgroup-v1 blkio.bfq.weight"),
            Version::Two(_) => (&report.disks, "cgroup-v2 io.bfq.weight"),
        };
        let names = |which: &dyn Fn(&Disk) -> bool| {
            disks.iter().filter(|d| which(d)).map(|d| d.name.as_str()).collect::<Vec<_>>()
        };
        let bfq = names(&Disk::keeps_bfq_weights);
        if !bfq.is_empty() {
            let reason = format!("{} the scheduler bfq", have(&bfq));
            report.disk_weight = matches!(version, Version::Two(_)).then_some(DiskWeight::Bfq);
            return Ok((file.into(), reason));
        }
        let cost = names(&|disk| disk.has_cost_model);
        if matches!(version, Version::Two(_)) && !cost.is_empty() {
            let reason = format!("{} the cost model enabled", have(&cost));
            report.disk_weight = Some(DiskWeight::Cost);
            return Ok(("cgroup-v2 io.weight".into(), reason));
        }
        let without_idling = names(&|disk| disk.bfq.is_some());
        if let Some(first) = without_idling.first() {
            let reason = format!("slice_idle of {} is 0, so bfq ignores weights", without_idling.join(", "));
            return Err((reason, Some(format!("echo 8 > /sys/block/{first}/queue/iosched/slice_idle"))));
        }
        let Some(first) = disks.first() else { return Err(("there is no disk".into(), None)) };
        let all: Vec<String> = disks.iter().map(|d| format!("{} has {}", d.name, d.scheduler)).collect();
        let reason = format!("no disk has bfq: {}", all.join(", "));
        let mut advice = format!("echo bfq > /sys/block/{}/queue/scheduler", first.name);
        if matches!(version, Version::Two(_)) {
            advice.push_str(", or enable the cost model in io.cost.qos");
        }
        Err((reason, Some(advice)))
    }

    /// Returns the version that has a controller, by its names in version 2 and 1, for the groups below `under`, and its root.
    fn controller(
        &self,
        resource: Resource,
        (name, legacy): (&str, &str),
        report: &mut ProbeReport,
    ) -> Result<Version, Unsupported> {
        let hierarchies = &report.hierarchies;
        let version = match (hierarchies.legacy.get(legacy), &hierarchies.unified) {
            (Some(root), _) => Version::One(root.clone()),
            (None, Some(root)) => Version::Two(root.clone()),
            (None, None) => return Err(("no control groups are mounted".into(), None)),
        };
        let root = match &version {
            Version::One(root) | Version::Two(root) => root,
        };
        let folder = root.join(self.under);
        if !folder.is_dir() {
            return Err((format!("there is no group {} in {}", self.under, self.system.name(root)), None));
        }
        if matches!(version, Version::Two(_)) {
            self.check_delegation(name, root, report.systemd)?;
        }
        match access(&folder, Access::WRITE_OK) {
            Ok(()) => Ok(version),
            Err(error) => {
                let error = std::io::Error::from(error);
                let reason = format!("{} cannot be written: {error}", self.system.name(&folder));
                report.not_permitted.push((resource, reason.clone()));
                Err((reason, None))
            }
        }
    }

    /// Checks that version 2 delegates a controller to the groups below `under`.
    fn check_delegation(&self, name: &str, root: &Path, systemd: bool) -> Result<(), Unsupported> {
        let lists = |path: &Path| SystemRoot::text(path).is_some_and(|t| t.split_whitespace().any(|c| c == name));
        if !lists(&root.join("cgroup.controllers")) {
            let path = self.system.name(&root.join("cgroup.controllers"));
            return Err((format!("{path} does not list {name}: the kernel does not offer it to version 2"), None));
        }
        for ancestor in ancestors(self.under) {
            let path = root.join(ancestor).join("cgroup.subtree_control");
            if !lists(&path) {
                let path = self.system.name(&path);
                let advice = if systemd {
                    let setting = match name {
                        "cpu" => "CPUWeight",
                        "memory" => "MemoryLow",
                        _ => "IOWeight",
                    };
                    format!("set {setting}= of a unit there, and systemd delegates the controller")
                } else {
                    format!("echo +{name} > {path}")
                };
                return Err((format!("{path} does not list {name}"), Some(advice)));
            }
        }
        Ok(())
    }

    fn mounted(&self, name: &str, root: &Path) -> String {
        format!("controller {name} at {}", self.system.name(root))
    }
}

enum Version {
    One(PathBuf),
    Two(PathBuf),
}

/// Returns the root (""), each ancestor of this group, and the group itself as the last.
fn ancestors(under: &str) -> impl Iterator<Item = &str> {
    let ends = under.match_indices('/').map(|(at, _)| at).chain((!under.is_empty()).then_some(under.len()));
    std::iter::once("").chain(ends.map(|end| &under[..end]))
}

fn have(names: &[&str]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "has" } else { "have" })
}
