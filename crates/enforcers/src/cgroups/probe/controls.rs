//! One row a control.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::disks::Disk;
use super::{Finding, Findings, Places};
use crate::cgroups::{Control, DiskWeight, Protection};

/// What is looked at.
pub(super) struct Look<'a> {
    pub(super) places: &'a Places,
    pub(super) under: &'a str,
    /// Whether the multi-generational LRU is at work.
    pub(super) generations: bool,
}

/// Why not, and what to do about it.
type No = (String, Option<String>);

impl Look<'_> {
    pub(super) fn row(&self, control: Control, findings: &mut Findings) -> Finding {
        let found = match control {
            Control::Cpu => self.cpu(findings),
            Control::Memory => self.memory(findings),
            Control::Disk => self.disk(findings),
            Control::Network => Err((String::from("control groups do not divide it"), None)),
        };
        match found {
            Ok((by, why)) => Finding { control, able: true, by, why, advice: None },
            Err((why, advice)) => Finding { control, able: false, by: String::new(), why, advice },
        }
    }

    fn cpu(&self, findings: &Findings) -> Result<(String, String), No> {
        Ok(match self.controller("cpu", "cpu", findings)? {
            Version::One(root) => ("cgroup-v1 cpu.shares".into(), self.mounted("cpu", &root)),
            Version::Two(root) => ("cgroup-v2 cpu.weight".into(), self.mounted("cpu", &root)),
        })
    }

    fn memory(&self, findings: &mut Findings) -> Result<(String, String), No> {
        let root = match self.controller("memory", "memory", findings)? {
            Version::One(root) => {
                return Ok(("cgroup-v1 memory.soft_limit_in_bytes".into(), self.mounted("memory", &root)));
            }
            Version::Two(root) => root,
        };
        let (file, protection, why) = if self.generations {
            let why = "the multi-generational LRU is enabled, which does not honour memory.low";
            ("memory.min", Protection::Min, why.to_owned())
        } else {
            ("memory.low", Protection::Low, self.mounted("memory", &root))
        };
        // What is protected within a group is at most what is protected of the group. What is left of that goes to
        // all within by use (memory_recursiveprot), so it should not be more than they are to have.
        for around in around(self.under).filter(|around| !around.is_empty()) {
            let path = root.join(around).join(file);
            let Some(bytes) = Places::text(&path).and_then(|text| text.parse::<u64>().ok()) else { continue };
            if bytes == 0 {
                let setting = if self.generations { "MemoryMin" } else { "MemoryLow" };
                let unit = around.rsplit('/').next().unwrap_or(around);
                let how = if findings.systemd {
                    format!("systemctl set-property {unit} {setting}=BYTES")
                } else {
                    format!("echo BYTES > {}", self.places.name(&path))
                };
                let advice = format!("{how}, as much as all below it are to have together");
                return Err((format!("{file} of {around} is 0, so nothing below it is protected"), Some(advice)));
            }
            findings.protected = Some(findings.protected.map_or(bytes, |least| least.min(bytes)));
        }
        findings.memory = Some(protection);
        Ok((format!("cgroup-v2 {file}"), why))
    }

    fn disk(&self, findings: &mut Findings) -> Result<(String, String), No> {
        let version = self.controller("io", "blkio", findings)?;
        let (disks, file) = match version {
            Version::One(_) => (&findings.disks, "cgroup-v1 blkio.bfq.weight"),
            Version::Two(_) => (&findings.disks, "cgroup-v2 io.bfq.weight"),
        };
        let names = |which: &dyn Fn(&Disk) -> bool| {
            disks.iter().filter(|d| which(d)).map(|d| d.name.as_str()).collect::<Vec<_>>()
        };
        let bfq = names(&Disk::weighed_by_bfq);
        if !bfq.is_empty() {
            let why = format!("{} the scheduler bfq", have(&bfq));
            findings.disk = matches!(version, Version::Two(_)).then_some(DiskWeight::Bfq);
            return Ok((file.into(), why));
        }
        let cost = names(&|disk| disk.cost);
        if matches!(version, Version::Two(_)) && !cost.is_empty() {
            let why = format!("{} the cost model enabled", have(&cost));
            findings.disk = Some(DiskWeight::Cost);
            return Ok(("cgroup-v2 io.weight".into(), why));
        }
        let void = names(&|disk| disk.bfq.is_some());
        if let Some(first) = void.first() {
            let why = format!("slice_idle of {} is 0, so bfq does not keep weights", void.join(", "));
            return Err((why, Some(format!("echo 8 > /sys/block/{first}/queue/iosched/slice_idle"))));
        }
        let Some(first) = disks.first() else { return Err(("there is no disk".into(), None)) };
        let all: Vec<String> = disks.iter().map(|d| format!("{} has {}", d.name, d.scheduler)).collect();
        let why = format!("no disk has the scheduler bfq: {}", all.join(", "));
        let mut advice = format!("echo bfq > /sys/block/{}/queue/scheduler", first.name);
        if matches!(version, Version::Two(_)) {
            advice.push_str(", or enable the cost model in io.cost.qos");
        }
        Err((why, Some(advice)))
    }

    /// Which version has a controller for the groups below `under`, and where.
    fn controller(&self, name: &str, legacy: &str, findings: &Findings) -> Result<Version, No> {
        let hierarchies = &findings.hierarchies;
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
            return Err((format!("there is no group {} in {}", self.under, self.places.name(root)), None));
        }
        if matches!(version, Version::Two(_)) {
            self.delegated(name, root, findings.systemd)?;
        }
        match access(&folder, Access::WRITE_OK) {
            Ok(()) => Ok(version),
            Err(error) => {
                let error = std::io::Error::from(error);
                Err((format!("{} cannot be written: {error}", self.places.name(&folder)), None))
            }
        }
    }

    /// Whether version 2 hands a controller down to the groups below `under`.
    fn delegated(&self, name: &str, root: &Path, systemd: bool) -> Result<(), No> {
        let lists = |path: &Path| Places::text(path).is_some_and(|t| t.split_whitespace().any(|c| c == name));
        if !lists(&root.join("cgroup.controllers")) {
            let path = self.places.name(&root.join("cgroup.controllers"));
            return Err((format!("{path} does not list {name}: the kernel does not offer it to version 2"), None));
        }
        for around in around(self.under) {
            let path = root.join(around).join("cgroup.subtree_control");
            if !lists(&path) {
                let path = self.places.name(&path);
                let advice = if systemd {
                    let setting = match name {
                        "cpu" => "CPUWeight",
                        "memory" => "MemoryLow",
                        _ => "IOWeight",
                    };
                    format!("set {setting}= of a unit there, and systemd hands it down")
                } else {
                    format!("echo +{name} > {path}")
                };
                return Err((format!("{path} does not list {name}"), Some(advice)));
            }
        }
        Ok(())
    }

    fn mounted(&self, name: &str, root: &Path) -> String {
        format!("the controller {name} is at {}", self.places.name(root))
    }
}

enum Version {
    One(PathBuf),
    Two(PathBuf),
}

/// The root (""), and each group on the way down to this one, which is the last.
fn around(under: &str) -> impl Iterator<Item = &str> {
    let ends = under.match_indices('/').map(|(at, _)| at).chain((!under.is_empty()).then_some(under.len()));
    std::iter::once("").chain(ends.map(|end| &under[..end]))
}

fn have(names: &[&str]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "has" } else { "have" })
}
