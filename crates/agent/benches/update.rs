//! The cost of an update of the whole agent on this machine's own control groups of version 1.
//!
//! `cargo bench -p evenhand-agent --bench update [-- WORKLOADS…]` \
//! `cargo bench -p evenhand-agent --bench update -- --figure-2 FILE` \
//! `cargo bench -p evenhand-agent --bench update -- --unchanged WORKLOADS`, for a profiler: ten seconds
//!
//! The agent lists the workloads (the source `pattern`), reads their use, computes weights, alone in its cloud, and
//! writes those that changed: none, or, through an enforcer that changes the targets at each update, all three of
//! every workload. For comparison, the lower bound reads three open files of each group and ignores the result, and a
//! plain program opens, reads and closes three files and opens, writes and closes three. The groups are created before
//! and removed after.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops at what is wrong")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evenhand_agent::Quotas;
use evenhand_agent::discovery::Discovery;
use evenhand_agent::{Agent, AgentParts, ControlSection, Journal, Law, NodeSection, RoundSettings, node_supply};
use evenhand_documents::{Document, Format};
use evenhand_enforcers::cgroups::{
    CgroupEnforcer, Change, CompositeEnforcer, DescriptorBudget, Enforcer, Group, GroupFilter, GroupId, Hierarchies,
    KernelError, PerResource, ProtectedCgroups, Resource, SavedState, SystemRoot, Targets, probe,
};
use evenhand_enforcers::traffic::TrafficMeter;
use evenhand_heaviness::{Parameters, metric_named};
use evenhand_protocol::transport::SingleNode;
use rustix::time::{ClockId, clock_gettime};

const RUNS: usize = 15;
const READ: [(&str, &str); 3] = [
    ("cpuacct", "cpuacct.usage"),
    ("memory", "memory.usage_in_bytes"),
    ("blkio", "blkio.bfq.io_service_bytes_recursive"),
];
const WRITTEN: [(&str, &str); 3] =
    [("cpu", "cpu.shares"), ("memory", "memory.soft_limit_in_bytes"), ("blkio", "blkio.bfq.weight")];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let hierarchies = Hierarchies::detect().unwrap();
    let missing = ["cpu", "cpuacct", "memory", "blkio"].into_iter().find(|c| !hierarchies.legacy.contains_key(*c));
    if let Some(missing) = missing {
        return println!("skipped: version 1 has no controller {missing} here");
    }
    DescriptorBudget::raise_limit();
    let numbers = || arguments.iter().filter_map(|a| a.parse().ok());
    match arguments.first().map(String::as_str) {
        Some("--memory") => println!("{}", numbers().next().map_or(0, |guests| memory(&hierarchies, guests))),
        Some("--unchanged") => unchanged(&hierarchies, numbers().next().unwrap_or(1000)),
        Some("--figure-2") => figure_2(&hierarchies, Path::new(&arguments[1])),
        _ => table(&hierarchies, &numbers().collect::<Vec<_>>()),
    }
}

fn table(hierarchies: &Hierarchies, counts: &[usize]) {
    println!(
        "microseconds of CPU time per workload and update, median of {RUNS} runs (and minimum); bytes per workload"
    );
    println!("count   users          floor    unchanged (x floor)          changed          naive | memory");
    for &guests in if counts.is_empty() { &[10, 100, 1000, 5000] } else { counts } {
        for shared_by in [1, 10] {
            let Ok(groups) = Groups::new(hierarchies, guests, shared_by) else {
                return println!("skipped: no group can be created");
            };
            let floor = floor(hierarchies, &groups, false);
            let of = |changing| agent_cost(hierarchies, &groups, changing, false);
            let (unchanged, changed) = (of(false), of(true));
            let naive = naive(hierarchies, &groups, false);
            drop(groups);
            // In a process of its own, because memory freed by another agent would be reused.
            let memory =
                Command::new(std::env::current_exe().unwrap()).args(["--memory", &guests.to_string()]).output();
            let memory = String::from_utf8_lossy(&memory.unwrap().stdout).trim().to_owned();
            let (users, ratio) = (guests.div_ceil(shared_by), unchanged.median / floor.median);
            println!(
                "{guests:>6} {users:>6} {floor:>14} {unchanged:>14} {ratio:>7.2} {changed:>16} {naive:>14} | {memory:>6}"
            );
        }
    }
}

/// Runs updates without changes for ten seconds, for a profiler.
fn unchanged(hierarchies: &Hierarchies, guests: usize) {
    let groups = Groups::new(hierarchies, guests, 1).unwrap();
    let mut made = BenchmarkAgent::new(hierarchies, &groups, false);
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        made.update();
    }
}

/// Returns the bytes per workload that an agent with this number of workloads needs more than an agent with one.
fn memory(hierarchies: &Hierarchies, guests: usize) -> usize {
    let run = |count| {
        let groups = Groups::new(hierarchies, count, 1).unwrap();
        let before = resident();
        let mut made = BenchmarkAgent::new(hierarchies, &groups, false);
        (0..3).for_each(|_| _ = made.update());
        resident().saturating_sub(before)
    };
    let one = run(1);
    run(guests).saturating_sub(one) / guests
}

/// Writes the CPU time of four minutes, as in Figure 2 of Poullie et al. (2016): that of an update times their number.
///
/// Between updates a real agent sleeps and other programs use the caches, so the caches are flushed before each update.
fn figure_2(hierarchies: &Hierarchies, file: &Path) {
    let mut text = String::from("guests,interval_s,loaded,variant,cpu_s_per_4min\n");
    for guests in [1, 2, 5, 10, 15, 20, 25, 30, 100, 300, 1000] {
        let groups = Groups::new(hierarchies, guests, 1).unwrap();
        let of = |changing| agent_cost(hierarchies, &groups, changing, true).median;
        let (floor, naive) = (floor(hierarchies, &groups, true).median, naive(hierarchies, &groups, true).median);
        for (loaded, agent) in [(false, of(false)), (true, of(true))] {
            for interval in [1, 2, 5, 10, 20] {
                for (variant, us) in [("agent", agent), ("floor", floor), ("naive", naive)] {
                    let seconds = us / 1e6 * guests as f64 * f64::from(240 / interval);
                    writeln!(text, "{guests},{interval},{loaded},{variant},{seconds:.6}").unwrap();
                }
            }
        }
        println!("{guests} workloads: {:.1} us per update without changes", of(false) * guests as f64);
    }
    fs::write(file, text).unwrap();
}

/// An agent for these groups, and the directory of its journal.
struct BenchmarkAgent {
    agent: Agent,
    updates: u64,
    _journal: tempfile::TempDir,
}

impl BenchmarkAgent {
    fn new(hierarchies: &Hierarchies, groups: &Groups, changing: bool) -> BenchmarkAgent {
        let text = format!(
            "[[guests]]\nfrom = 'pattern'\npattern = '{}/(?<owner>u[0-9]+)-(?<name>.*)\\.scope'\nprocessors = 2\nmemory = '4Gi'\nunit = false\n",
            groups.parent
        );
        let document = Document::parse("bench.toml", &text, Some(Format::Toml)).unwrap();
        let root = document.root().unwrap();
        let tables: Vec<_> = root.required("guests", "").unwrap().list().unwrap().map(|t| t.table().unwrap()).collect();
        let discovery = Discovery::read(tables, hierarchies, ProtectedCgroups::detect().unwrap()).unwrap();
        let budget = DescriptorBudget::of_process();
        let meter = probe(&SystemRoot::default(), &groups.parent).unwrap().meter(&budget);
        let files = CgroupEnforcer::v1(hierarchies, &Resource::ALL, Default::default(), &budget);
        let real = CompositeEnforcer::new().with(GroupFilter::All, Box::new(files));
        let law = Law::Integral(Default::default());
        let journal = tempfile::tempdir().unwrap();
        let node =
            NodeSection { supply: PerResource { disk: Some(1.5e8), ..PerResource::default() }, ..Default::default() };
        let hierarchies = hierarchies.clone();
        let agent = Agent::new(AgentParts {
            node: "bench".into(),
            metric: "deviation".into(),
            settings: RoundSettings {
                metric: (metric_named("deviation").unwrap().build)(&Parameters::default()).unwrap().into(),
                endowment: Default::default(),
                resources: Resource::ALL.to_vec(),
                supply: node_supply(&node, Path::new("/")).unwrap(),
                speed: 1.0,
                quotas: Quotas::default(),
                law,
                delay: 0,
            },
            control: ControlSection {
                interval: Duration::from_secs(10),
                law,
                controls: Resource::ALL.to_vec(),
                protected: 0.5,
                smoothing: 0.0,
            },
            discovery,
            meter: Box::new(meter.with(Box::new(TrafficMeter::of_devices().unwrap()))),
            enforcer: if changing { Box::new(ChangingEnforcer { real, round: 0 }) } else { Box::new(real) },
            enforced_by: Default::default(),
            peers: Box::new(SingleNode),
            journal: Some(Journal::open(&Journal::path_in(journal.path())).unwrap()),
            identity: Box::new(move |path| hierarchies.identity(path)),
            digest: 0,
            incarnation: 1,
        });
        let mut made = BenchmarkAgent { agent: agent.unwrap(), updates: 0, _journal: journal };
        // The first update admits all workloads, the next have no rates yet or write the first weights.
        let last = (0..4).map(|_| made.update()).last();
        assert_eq!(last.unwrap().1, groups.paths.len(), "not all groups are workloads");
        made
    }

    /// Runs an update. Returns the number of values written, and that of workloads.
    fn update(&mut self) -> (usize, usize) {
        self.updates += 1;
        let update = self.agent.update(Duration::from_secs(10 * self.updates)).unwrap();
        (update.changes.len(), update.workloads)
    }
}

/// Changes all targets of every workload at each update.
struct ChangingEnforcer<E> {
    real: E,
    round: usize,
}

impl<E: Enforcer> Enforcer for ChangingEnforcer<E> {
    fn name(&self) -> &'static str {
        self.real.name()
    }
    fn resources(&self) -> &[Resource] {
        self.real.resources()
    }
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        self.real.admit(id, group)
    }
    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let (more, memory) = (1.0 + (self.round % 7) as f64 / 8.0, ((self.round % 7 + 1) << 20) as f64);
        let more = |weight: Option<f64>| weight.map(|weight| weight * more);
        let (cpu, disk, network) = (more(targets.cpu), more(targets.disk), more(targets.network));
        self.real.apply(id, &Targets { cpu, disk, network, memory: targets.memory.map(|m| m + memory) }, changes)
    }
    fn flush(&mut self) -> Result<(), KernelError> {
        self.round += 1;
        self.real.flush()
    }
    fn dismiss(&mut self, id: GroupId) {
        self.real.dismiss(id);
    }
    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        self.real.restore(group, saved)
    }
}

fn agent_cost(hierarchies: &Hierarchies, groups: &Groups, changing: bool, cold: bool) -> Times {
    let mut made = BenchmarkAgent::new(hierarchies, groups, changing);
    let written = if changing { 3 * groups.paths.len() } else { 0 };
    times(groups.paths.len(), cold, || assert_eq!(made.update().0, written))
}

fn floor(hierarchies: &Hierarchies, groups: &Groups, cold: bool) -> Times {
    let files =
        |path: &String| READ.map(|(controller, file)| File::open(hierarchies.legacy[controller].join(path).join(file)));
    let open: Vec<File> = groups.paths.iter().flat_map(files).map(Result::unwrap).collect();
    let mut buffer = [0; 4096];
    times(groups.paths.len(), cold, || {
        for file in &open {
            black_box(file.read_at(&mut buffer, 0).unwrap());
        }
    })
}

fn naive(hierarchies: &Hierarchies, groups: &Groups, cold: bool) -> Times {
    let values = ["1024", "1048576", "100"];
    times(groups.paths.len(), cold, || {
        for path in &groups.paths {
            for (controller, file) in READ {
                black_box(fs::read_to_string(hierarchies.legacy[controller].join(path).join(file)).unwrap());
            }
            for ((controller, file), value) in WRITTEN.into_iter().zip(values) {
                fs::write(hierarchies.legacy[controller].join(path).join(file), value).unwrap();
            }
        }
    })
}

/// The groups of a run; removed when dropped.
struct Groups {
    parent: String,
    folders: Vec<PathBuf>,
    paths: Vec<String>,
}

impl Groups {
    /// Creates this number of groups, `shared_by` for each user.
    fn new(hierarchies: &Hierarchies, count: usize, shared_by: usize) -> std::io::Result<Groups> {
        let parent = format!("evenhand-bench-{}", std::process::id());
        let path = |i: usize| format!("{parent}/u{:05}-{i}.scope", i / shared_by);
        let paths: Vec<String> = (0..count).map(path).collect();
        let mut made = Groups { parent: parent.clone(), folders: Vec::new(), paths };
        let mut roots: Vec<&PathBuf> =
            ["cpu", "cpuacct", "memory", "blkio"].iter().filter_map(|c| hierarchies.legacy.get(*c)).collect();
        roots.dedup();
        for name in std::iter::once(&parent).chain(&made.paths) {
            for root in &roots {
                fs::create_dir(root.join(name))?;
                made.folders.push(root.join(name));
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

/// Measures microseconds per workload; with `cold` the caches are flushed before every repetition.
fn times(guests: usize, cold: bool, mut run: impl FnMut()) -> Times {
    let mut others = vec![0_u8; if cold { 48 << 20 } else { 0 }];
    // At least some thousand workloads in a run, so that the clock and the first access do not matter.
    let repeat = if cold { 1 } else { (2000 / guests).max(1) };
    let mut once = || {
        others.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
        black_box(&others);
        let begun = processor_ns();
        (0..repeat).for_each(|_| run());
        (processor_ns() - begun) as f64 / 1000.0 / (repeat * guests) as f64
    };
    once();
    let mut times: Vec<f64> = (0..RUNS).map(|_| once()).collect();
    times.sort_unstable_by(f64::total_cmp);
    Times { median: times[RUNS / 2], minimum: times[0] }
}

struct Times {
    median: f64,
    minimum: f64,
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.2} ({:.2})", self.median, self.minimum))
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
