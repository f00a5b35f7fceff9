//! What else there is to know about a machine.

use std::fs;

use super::controls::Look;
use super::{Findings, Places, Remark};
use crate::cgroups::DiskWeight;

/// Whether the multi-generational LRU is at work: the first bit of its switch.
pub(super) fn generations(places: &Places) -> bool {
    let text = Places::text(&places.at("sys/kernel/mm/lru_gen/enabled")).unwrap_or_default();
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    u64::from_str_radix(digits, 16).is_ok_and(|bits| bits & 1 == 1)
}

/// Files that are kept open for a group that is only read, and for one that is written as well.
const FILES: [u64; 2] = [3, 6];

pub(super) fn remarks(look: &Look<'_>, findings: &Findings) -> Vec<Remark> {
    let mut all = Vec::new();
    let mut add = |what: &str, found: String, matters: String| {
        all.push(Remark { what: what.to_owned(), found, matters });
    };
    let hierarchies = &findings.hierarchies;
    let version = match (&hierarchies.unified, hierarchies.legacy.is_empty()) {
        (Some(_), true) => "version 2",
        (Some(_), false) => "versions 1 and 2",
        (None, false) => "version 1",
        (None, true) => "none",
    };
    add("control groups", version.into(), "where groups are looked for and weighed".into());
    if findings.systemd {
        let matters = "it owns its units: their weights are to be set through it, or it may undo them";
        add("systemd", "runs this machine".into(), matters.into());
    }
    if look.generations {
        let matters = if !hierarchies.legacy.contains_key("memory") {
            "memory.low is not honoured; memory.min is, and is never taken away: the sum must fit the machine"
        } else {
            "soft limits only say who is looked at first when memory is short"
        };
        add("multi-generational LRU", "enabled".into(), matters.into());
    }
    let (found, matters) = if fs::read(look.places.at("proc/pressure/cpu")).is_ok() {
        ("counted", "it can be said how long groups wait")
    } else {
        ("not counted", "it cannot be said how long groups wait; the kernel's parameter psi=1 changes that")
    };
    add("pressure", found.into(), matters.into());
    if let Some((soft, hard)) = open_files(look.places) {
        let [read, written] = FILES.map(|files| hard / 8 * 7 / files);
        let matters = format!(
            "for {written} groups all files stay open, for {read} those that are read; reading others takes ten times \
             as long"
        );
        let show = |n: u64| if n == u64::MAX { String::from("unlimited") } else { n.to_string() };
        add("open files", format!("{}, at most {}", show(soft), show(hard)), matters);
    }
    for disk in &findings.disks {
        let mut add = |found: String, matters: &str| {
            all.push(Remark { what: format!("disk {}", disk.name), found, matters: matters.into() });
        };
        match disk.bfq {
            None if disk.cost && findings.disk == Some(DiskWeight::Cost) => {}
            None if disk.cost => add(
                format!("scheduler {}, cost model enabled", disk.scheduler),
                "not divided: where another disk has bfq, only weights for bfq are written",
            ),
            None => add(format!("scheduler {}", disk.scheduler), "not divided: weights do nothing there"),
            Some(_) if !disk.weighed_by_bfq() => {
                add("scheduler bfq, slice_idle 0".into(), "not divided: bfq keeps weights only if it waits");
            }
            Some(bfq) if !bfq.strict => add(
                format!("scheduler bfq, low_latency {}, strict_guarantees 0", u8::from(bfq.low_latency)),
                "who has one request at a time may get less than its weight says; strict_guarantees 1 changes that",
            ),
            Some(_) => {}
        }
        if hierarchies.legacy.contains_key("blkio") && disk.bfq.is_none() {
            add(
                format!("scheduler {}, version 1", disk.scheduler),
                "from Linux 6.10 on what groups read and write there is only counted once it has had a limit",
            );
        }
    }
    all
}

/// The soft and the hard limit of open files.
fn open_files(places: &Places) -> Option<(u64, u64)> {
    let text = Places::text(&places.at("proc/self/limits"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace();
    let mut next = || words.next().and_then(|w| if w == "unlimited" { Some(u64::MAX) } else { w.parse().ok() });
    Some((next()?, next()?))
}
