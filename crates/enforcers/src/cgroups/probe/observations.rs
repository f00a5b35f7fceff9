//! Properties of a machine that affect how well resources are divided.

use std::fs;

use super::resource_support::Examiner;
use super::{Observation, ProbeReport, SystemRoot};
use crate::cgroups::DiskWeight;

/// Returns whether the multi-generational LRU is enabled: the first bit of its switch.
pub(super) fn lru_gen(system: &SystemRoot) -> bool {
    let text = SystemRoot::text(&system.at("sys/kernel/mm/lru_gen/enabled")).unwrap_or_default();
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    u64::from_str_radix(digits, 16).is_ok_and(|bits| bits & 1 == 1)
}

/// The number of files kept open for a group that is only measured, and for one that is also given weights.
const FILES_PER_GROUP: [u64; 2] = [3, 6];

pub(super) fn observations(examiner: &Examiner<'_>, report: &ProbeReport) -> Vec<Observation> {
    let mut all = Vec::new();
    let mut add = |subject: &str, found: String, consequence: String| {
        all.push(Observation { subject: subject.to_owned(), found, consequence });
    };
    let hierarchies = &report.hierarchies;
    let version = match (&hierarchies.unified, hierarchies.legacy.is_empty()) {
        (Some(_), true) => "version 2",
        (Some(_), false) => "versions 1 and 2",
        (None, false) => "version 1",
        (None, true) => "none",
    };
    add("control groups", version.into(), "groups are measured and given weights there".into());
    if report.systemd {
        let consequence = "it owns its units: their weights are set through it, because it may overwrite others";
        add("systemd", "runs this machine".into(), consequence.into());
    }
    if examiner.lru_gen {
        let consequence = if !hierarchies.legacy.contains_key("memory") {
            "memory.low is ignored; memory.min works, but is never reclaimed: the sum must fit the machine"
        } else {
            "soft limits only decide which groups are reclaimed from first when memory is short"
        };
        add("multi-generational LRU", "enabled".into(), consequence.into());
    }
    let (found, consequence) = if fs::read(examiner.system.at("proc/pressure/cpu")).is_ok() {
        ("counted", "the time that groups wait can be reported")
    } else {
        ("not counted", "the time that groups wait cannot be reported; the kernel parameter psi=1 enables it")
    };
    add("pressure", found.into(), consequence.into());
    if let Some((soft, hard)) = open_files(examiner.system) {
        let [measured, weighted] = FILES_PER_GROUP.map(|files| hard / 8 * 7 / files);
        let consequence = format!(
            "for {weighted} groups all files stay open, for {measured} those that are read; reading from other groups \
             takes ten times as long"
        );
        let limit = |n: u64| if n == u64::MAX { String::from("unlimited") } else { n.to_string() };
        add("open files", format!("{}, at most {}", limit(soft), limit(hard)), consequence);
    }
    for disk in &report.disks {
        let mut add = |found: String, consequence: &str| {
            all.push(Observation { subject: format!("disk {}", disk.name), found, consequence: consequence.into() });
        };
        match disk.bfq {
            None if disk.has_cost_model && report.disk_weight == Some(DiskWeight::Cost) => {}
            None if disk.has_cost_model => add(
                format!("scheduler {}, cost model enabled", disk.scheduler),
                "not divided: where another disk has bfq, only weights for bfq are written",
            ),
            None => add(format!("scheduler {}", disk.scheduler), "not divided: weights have no effect there"),
            Some(_) if !disk.keeps_bfq_weights() => {
                add("scheduler bfq, slice_idle 0".into(), "not divided: bfq honours weights only if it idles");
            }
            Some(bfq) if !bfq.strict => add(
                format!("scheduler bfq, low_latency {}, strict_guarantees 0", u8::from(bfq.low_latency)),
                "a group with one request at a time may get less than its share; strict_guarantees 1 prevents that",
            ),
            Some(_) => {}
        }
        if hierarchies.legacy.contains_key("blkio") && disk.bfq.is_none() {
            add(
                format!("scheduler {}, version 1", disk.scheduler),
                "since Linux 6.10 the traffic of groups is counted there only once the disk has had a limit",
            );
        }
    }
    all
}

/// Returns the soft and the hard limit on open files.
fn open_files(system: &SystemRoot) -> Option<(u64, u64)> {
    let text = SystemRoot::text(&system.at("proc/self/limits"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace();
    let mut next = || words.next().and_then(|w| if w == "unlimited" { Some(u64::MAX) } else { w.parse().ok() });
    Some((next()?, next()?))
}
