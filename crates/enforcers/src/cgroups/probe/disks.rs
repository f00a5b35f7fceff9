//! The disks, and whether weights mean anything on them.

use std::collections::BTreeSet;
use std::fs;

use super::Places;
use crate::cgroups::Hierarchies;

/// A disk in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// As in `/sys/block`.
    pub name: String,
    /// `MAJOR:MINOR`.
    pub number: String,
    /// `none`, `mq-deadline`, `kyber` or `bfq`.
    pub scheduler: String,
    /// How BFQ is set, where it is the scheduler.
    pub bfq: Option<Bfq>,
    /// Whether the cost model of version 2 is enabled for it.
    pub cost: bool,
}

/// Settings of BFQ on which it depends whether weights are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bfq {
    /// Whether it waits for the next request of who has a turn (`slice_idle`).
    pub idles: bool,
    /// Whether it guesses which tasks are interactive and favours them, against their weights.
    pub low_latency: bool,
    /// Whether it keeps weights strictly, also for who has one request at a time.
    pub strict: bool,
}

impl Disk {
    /// Whether BFQ keeps weights here. They are void if it waits for nobody, unless it is told to be strict.
    pub fn weighed_by_bfq(&self) -> bool {
        self.bfq.is_some_and(|bfq| bfq.idles || bfq.strict)
    }
}

/// The disks of a machine by name: those that have a size and requests of their own. What is made of other disks
/// (LVM, RAID, encryption) passes requests on to them, and a loop device without a file is none.
pub(super) fn disks(places: &Places, hierarchies: &Hierarchies) -> Vec<Disk> {
    let cost = cost_model(hierarchies);
    let folder = places.at("sys/block");
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        let text = |file: &str| Places::text(&path.join(file));
        let empty = text("size").is_none_or(|size| size == "0");
        let made_of_others = fs::read_dir(path.join("slaves")).is_ok_and(|mut slaves| slaves.next().is_some());
        let (Some(schedulers), Some(number)) = (text("queue/scheduler"), text("dev")) else { continue };
        if empty || made_of_others || ["ram", "zram", "sr", "fd"].iter().any(|kind| is(&name, kind)) {
            continue;
        }
        let scheduler = chosen(&schedulers).to_owned();
        let zero = |file: &str| text(&format!("queue/iosched/{file}")).is_some_and(|value| value == "0");
        let bfq = (scheduler == "bfq").then(|| Bfq {
            // The same setting in two units: below half a millisecond the coarser one reads 0 as well.
            idles: if path.join("queue/iosched/slice_idle_us").exists() {
                !zero("slice_idle_us")
            } else {
                !zero("slice_idle")
            },
            low_latency: !zero("low_latency"),
            strict: text("queue/iosched/strict_guarantees").is_some_and(|value| value != "0"),
        });
        found.push(Disk { cost: cost.contains(&number), name, number, scheduler, bfq });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Whether that is the name of a disk of this kind: `sr0`, not `sra`.
fn is(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The one in brackets; a line of one word has none.
fn chosen(schedulers: &str) -> &str {
    let bracketed = schedulers.split(' ').find_map(|name| name.strip_prefix('[')?.strip_suffix(']'));
    bracketed.unwrap_or(schedulers)
}

/// The numbers of disks for which `io.cost.qos` says `enable=1`.
fn cost_model(hierarchies: &Hierarchies) -> BTreeSet<String> {
    let path = hierarchies.unified.as_ref().map(|root| root.join("io.cost.qos"));
    let text = path.and_then(|path| Places::text(&path)).unwrap_or_default();
    let enabled = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let number = words.next()?;
        words.any(|word| word == "enable=1").then(|| number.to_owned())
    });
    enabled.collect()
}
