//! Lists the disks, and whether weights take effect on them.

use std::collections::BTreeSet;
use std::fs;

use super::SystemRoot;
use crate::cgroups::Hierarchies;

/// A disk in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The name, as in `/sys/block`.
    pub name: String,
    /// The device number, `MAJOR:MINOR`.
    pub number: String,
    /// The I/O scheduler: `none`, `mq-deadline`, `kyber` or `bfq`.
    pub scheduler: String,
    /// The settings of BFQ, if it is the scheduler.
    pub bfq: Option<BfqSettings>,
    /// Whether the cost model of cgroup v2 is enabled for it.
    pub has_cost_model: bool,
}

/// The settings of BFQ that decide whether weights take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfqSettings {
    /// Whether it waits for the next request of the group that is being served (`slice_idle`).
    pub idles: bool,
    /// Whether it favours tasks that it takes for interactive, regardless of their weights.
    pub low_latency: bool,
    /// Whether it honours weights strictly, also for groups with one request at a time.
    pub strict: bool,
}

impl Disk {
    /// Returns whether BFQ honours weights on this disk: it does if it idles, or if its guarantees are strict.
    pub fn keeps_bfq_weights(&self) -> bool {
        self.bfq.is_some_and(|bfq| bfq.idles || bfq.strict)
    }
}

/// Lists the disks of a machine by name: devices with a size and a request queue of their own. Devices made of others
/// (LVM, RAID, encryption) pass requests on to those, and a loop device without a file has no size.
pub(super) fn disks(system: &SystemRoot, hierarchies: &Hierarchies) -> Vec<Disk> {
    let cost = disks_with_cost_model(hierarchies);
    let folder = system.at("sys/block");
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        let text = |file: &str| SystemRoot::text(&path.join(file));
        let empty = text("size").is_none_or(|size| size == "0");
        let is_stacked = fs::read_dir(path.join("slaves")).is_ok_and(|mut slaves| slaves.next().is_some());
        let (Some(schedulers), Some(number)) = (text("queue/scheduler"), text("dev")) else { continue };
        if empty || is_stacked || ["ram", "zram", "sr", "fd"].iter().any(|kind| is_of_kind(&name, kind)) {
            continue;
        }
        let scheduler = active_scheduler(&schedulers).to_owned();
        let zero = |file: &str| text(&format!("queue/iosched/{file}")).is_some_and(|value| value == "0");
        let bfq = (scheduler == "bfq").then(|| BfqSettings {
            // The same setting in two units: below half a millisecond the coarser one also reads 0.
            idles: if path.join("queue/iosched/slice_idle_us").exists() {
                !zero("slice_idle_us")
            } else {
                !zero("slice_idle")
            },
            low_latency: !zero("low_latency"),
            strict: text("queue/iosched/strict_guarantees").is_some_and(|value| value != "0"),
        });
        found.push(Disk { has_cost_model: cost.contains(&number), name, number, scheduler, bfq });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Returns whether a disk's name belongs to this kind: `sr0`, but not `sra`.
fn is_of_kind(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the scheduler in brackets, or the only one.
fn active_scheduler(schedulers: &str) -> &str {
    let bracketed = schedulers.split(' ').find_map(|name| name.strip_prefix('[')?.strip_suffix(']'));
    bracketed.unwrap_or(schedulers)
}

/// Returns the device numbers for which `io.cost.qos` has `enable=1`.
fn disks_with_cost_model(hierarchies: &Hierarchies) -> BTreeSet<String> {
    let path = hierarchies.unified.as_ref().map(|root| root.join("io.cost.qos"));
    let text = path.and_then(|path| SystemRoot::text(&path)).unwrap_or_default();
    let enabled = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let number = words.next()?;
        words.any(|word| word == "enable=1").then(|| number.to_owned())
    });
    enabled.collect()
}
