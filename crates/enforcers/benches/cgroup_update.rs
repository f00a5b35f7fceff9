//! The cost of an update on this machine's own control groups of version 1. Medians, in microseconds per group.
//!
//! `cargo bench -p evenhand-enforcers --bench cgroup_update [-- GROUPS…]`
//!
//! An update reads the CPU time, memory and disk traffic of each group and sets three targets: the same as before, or all
//! different. For comparison, a plain program opens, reads and closes each file, and opens, writes and closes each
//! again whether or not the value changed; and the lower bound reads the three open files of a group and ignores the
//! result. The groups are created before and removed after.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use evenhand_enforcers::cgroups::{
    CgroupEnforcer, CgroupMeter, DescriptorBudget, Enforcer, Group, GroupId, Hierarchies, Meter, ProtectedCgroups,
    Resource, Targets,
};
use evenhand_heaviness::controller::{bfq_weight, cpu_shares};
use rustix::time::{ClockId, clock_gettime};

const RUNS: usize = 15;
const READ: [(&str, &str); 3] = [
    ("cpuacct", "cpuacct.usage"),
    ("memory", "memory.usage_in_bytes"),
    ("blkio", "blkio.bfq.io_service_bytes_recursive"),
];

/// The groups of a run; removed when dropped.
struct Groups {
    folders: Vec<PathBuf>,
    groups: Vec<Group>,
}

impl Groups {
    fn new(hierarchies: &Hierarchies, count: usize) -> std::io::Result<Groups> {
        let parent = format!("evenhand-bench-{}", std::process::id());
        let mut made = Groups { folders: Vec::new(), groups: Vec::new() };
        let mut roots: Vec<&PathBuf> =
            ["cpu", "cpuacct", "memory", "blkio"].iter().filter_map(|c| hierarchies.legacy.get(*c)).collect();
        roots.dedup();
        for name in
            std::iter::once(parent.clone()).chain((0..count).map(|i| format!("{parent}/machine-qemu-{i}.scope")))
        {
            for root in &roots {
                fs::create_dir(root.join(&name))?;
                made.folders.push(root.join(&name));
            }
            if name != parent {
                made.groups.push(Group { path: name, ..Group::default() });
            }
        }
        Ok(made)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

fn main() {
    let mut counts: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![10, 100, 1000, 5000];
    }
    let hierarchies = Hierarchies::detect().expect("mounts");
    let missing = ["cpu", "cpuacct", "memory", "blkio"].into_iter().find(|c| !hierarchies.legacy.contains_key(*c));
    if let Some(missing) = missing {
        return println!("skipped: version 1 has no controller {missing} here");
    }
    DescriptorBudget::raise_limit();
    println!("microseconds of CPU time per group and update, median of {RUNS} runs (and minimum); bytes per group");
    println!(
        "groups          floor           read      unchanged        changed |     naive read    naive write | memory  descriptors"
    );
    for count in counts {
        match Groups::new(&hierarchies, count) {
            Ok(groups) => row(&hierarchies, &groups.groups),
            Err(error) => return println!("skipped: no group can be created: {error}"),
        }
    }
}

fn row(hierarchies: &Hierarchies, groups: &[Group]) {
    let budget = DescriptorBudget::of_process();
    let left = budget.left();
    let resident = resident();
    let mut meter = CgroupMeter::v1(hierarchies, &budget);
    let mut enforcer = CgroupEnforcer::v1(hierarchies, &Resource::ALL, ProtectedCgroups::default(), &budget);
    for (id, group) in ids(groups) {
        meter.admit(id, group).expect("a group");
        enforcer.admit(id, group).expect("a group");
    }
    let memory = self::resident().saturating_sub(resident) / groups.len();
    // Readers get the files that writers release.
    for _ in 0..2 {
        for (id, _) in ids(groups) {
            meter.read(id).expect("a group");
            enforcer.apply(id, &Targets::default(), &mut Vec::new()).expect("a group");
        }
    }
    let kept = (left - budget.left()) as f64 / groups.len() as f64;
    let mut changes = Vec::with_capacity(3 * groups.len());
    let read = times(groups.len(), |_| {
        for (id, _) in ids(groups) {
            black_box(meter.read(id).expect("a group"));
        }
    });
    // The number of files that were written.
    let mut update = |run: usize| {
        changes.clear();
        for (id, _) in ids(groups) {
            black_box(meter.read(id).expect("a group"));
            enforcer.apply(id, &targets(run, id), &mut changes).expect("a group");
        }
        changes.len()
    };
    // So that the present values differ from all of these targets.
    update(1);
    let changed = times(groups.len(), |run| assert_eq!(update(run + 2), 3 * groups.len()));
    update(0);
    let unchanged = times(groups.len(), |_| assert_eq!(update(0), 0));
    drop((meter, enforcer));
    let files = |group: &Group| {
        READ.map(|(controller, file)| File::open(hierarchies.legacy[controller].join(&group.path).join(file)))
    };
    let open: Vec<File> = groups.iter().flat_map(files).filter_map(Result::ok).collect();
    let mut buffer = [0; 4096];
    let floor = times(groups.len(), |_| {
        for file in &open {
            black_box(file.read_at(&mut buffer, 0).ok());
        }
    });
    let whole = open.len() == READ.len() * groups.len();
    drop(open);
    let naive_read = times(groups.len(), |_| {
        for (_, group) in ids(groups) {
            for (controller, file) in READ {
                black_box(fs::read_to_string(hierarchies.legacy[controller].join(&group.path).join(file)).ok());
            }
        }
    });
    let naive_write = times(groups.len(), |_| {
        for (id, group) in ids(groups) {
            let Targets { cpu: Some(cpu), disk: Some(disk), memory: Some(memory), .. } = targets(0, id) else { return };
            for (controller, file, value) in [
                ("cpu", "cpu.shares", u64::from(cpu_shares(cpu))),
                ("memory", "memory.soft_limit_in_bytes", memory as u64),
                ("blkio", "blkio.bfq.weight", bfq_weight(disk).into()),
            ] {
                let path = hierarchies.legacy[controller].join(&group.path).join(file);
                fs::write(path, value.to_string()).expect("a group");
            }
        }
    });
    let n = groups.len();
    assert!(whole, "no descriptors left for the floor");
    println!(
        "{n:>6} {floor:>14} {read:>14} {unchanged:>14} {changed:>14} | {naive_read:>14} {naive_write:>14} | {memory:>6} {kept:>12.1}"
    );
}

/// Weights that differ from run to run and between neighbours.
fn targets(run: usize, id: GroupId) -> Targets {
    let step = (run % 7 + id.0 as usize % 5) as f64;
    Targets { memory: Some(((run % 7 + 1) << 20) as f64), ..Targets::equal_weights(0.5 + step / 4.0) }
}

fn ids(groups: &[Group]) -> impl Iterator<Item = (GroupId, &Group)> {
    (0..).map(GroupId).zip(groups)
}

/// Microseconds per group: median and minimum.
///
/// On a machine with other load the minimum is closer to the cost.
fn times(groups: usize, mut run: impl FnMut(usize)) -> Times {
    // At least some thousand groups in a run, so that the clock and the first access do not matter.
    let repeat = (2000 / groups).max(1);
    let mut step = 0;
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = processor_ns();
            for _ in 0..repeat {
                run(step);
                step += 1;
            }
            (processor_ns() - begun) as f64 / 1000.0 / (repeat * groups) as f64
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    Times { median: times[RUNS / 2], least: times[0] }
}

struct Times {
    median: f64,
    least: f64,
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.2} ({:.2})", self.median, self.least))
    }
}

/// Returns the CPU time of this thread in nanoseconds, which excludes other threads except for their effect on caches.
fn processor_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = text.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    pages * 4096
}
