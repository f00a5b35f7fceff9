//! A simulated machine: workloads with demands, among which resources are divided by the weights that an enforcer wrote.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use evenhand_agent::Quotas;
use evenhand_agent::discovery::{Discovery, DiscoveryError, RunningWorkload, WorkloadSource};
use evenhand_agent::{Agent, AgentParts, ControlSection, Journal, Law, RoundSettings, digest};
use evenhand_enforcers::cgroups::{
    Change, Enforcer, Group, GroupId, KernelError, Meter, PerResource, ProtectedCgroups, Resource, SavedState, Targets,
    Usage,
};
use evenhand_heaviness::controller::IntegralSettings;
use evenhand_heaviness::{Parameters, metric_named};
use evenhand_protocol::exchange::{NodeState, NodeStatus, Record, Totals, add_elementwise};
use evenhand_protocol::transport::{Peers, SingleNode};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MUCH: f64 = 1e12;

/// A simulated workload. Only CPU and disk are divided.
#[derive(Clone, Debug)]
pub(crate) struct Sim {
    pub(crate) owner: &'static str,
    pub(crate) identity: u64,
    pub(crate) wants: [f64; 2],
    pub(crate) gets: [f64; 2],
    /// `cpu.weight` and `io.weight`, as the kernel has them.
    pub(crate) weights: [u64; 2],
    pub(crate) used: [f64; 2],
    /// The operation that fails.
    pub(crate) fails: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) supply: [f64; 2],
    pub(crate) workloads: BTreeMap<String, Sim>,
    /// Workloads that are listed although they ended, as if they vanished right after the listing.
    pub(crate) ghosts: Vec<RunningWorkload>,
    /// Workloads that are not listed although their groups exist, as if their rows were removed from a table.
    pub(crate) unlisted: Vec<&'static str>,
    pub(crate) writes: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Machine(Arc<Mutex<World>>);

pub(crate) fn workload(owner: &'static str, wants: [f64; 2]) -> Sim {
    Sim { owner, identity: 1, wants, gets: [0.0; 2], weights: [100; 2], used: [0.0; 2], fails: None }
}

impl Machine {
    pub(crate) fn new(supply: [f64; 2], workloads: impl IntoIterator<Item = (&'static str, Sim)>) -> Machine {
        let workloads = workloads.into_iter().map(|(name, sim)| (name.to_owned(), sim)).collect();
        Machine(Arc::new(Mutex::new(World { supply, workloads, ..World::default() })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Runs all workloads for this time; each resource is divided by weighted max-min fairness.
    pub(crate) fn work(&self, time: Duration) {
        let mut world = self.world();
        for r in 0..2 {
            let mut left = world.supply[r];
            let mut open: Vec<String> = world.workloads.keys().cloned().collect();
            loop {
                let sum: u64 = open.iter().map(|name| world.workloads[name].weights[r]).sum();
                let part = |sim: &Sim| left * sim.weights[r] as f64 / sum as f64;
                let (full, rest): (Vec<_>, Vec<_>) = open
                    .iter()
                    .cloned()
                    .partition(|name| world.workloads[name].wants[r] <= part(&world.workloads[name]));
                if full.is_empty() {
                    let parts: Vec<f64> = rest.iter().map(|name| part(&world.workloads[name])).collect();
                    rest.iter().zip(parts).for_each(|(name, got)| world.workloads.get_mut(name).unwrap().gets[r] = got);
                    break;
                }
                for name in &full {
                    let sim = world.workloads.get_mut(name).unwrap();
                    sim.gets[r] = sim.wants[r];
                    left -= sim.wants[r];
                }
                open = rest;
            }
        }
        for sim in world.workloads.values_mut() {
            (0..2).for_each(|r| sim.used[r] += sim.gets[r] * time.as_secs_f64());
        }
    }

    pub(crate) fn gets(&self, r: usize) -> Vec<f64> {
        self.world().workloads.values().map(|sim| sim.gets[r]).collect()
    }

    pub(crate) fn weights(&self) -> Vec<[u64; 2]> {
        self.world().workloads.values().map(|sim| sim.weights).collect()
    }
}

fn described(name: &str, sim: &Sim) -> RunningWorkload {
    RunningWorkload {
        name: name.into(),
        owner: sim.owner.into(),
        group: Group { path: format!("fair/{name}"), ..Group::default() },
        identity: sim.identity,
        processors: Some(1.0),
        memory_bytes: None,
    }
}

struct Listing(Machine);

impl WorkloadSource for Listing {
    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        let world = self.0.world();
        let listed = world.workloads.iter().filter(|(name, _)| !world.unlisted.contains(&name.as_str()));
        let here = listed.map(|(name, sim)| described(name, sim));
        let mut all: Vec<Arc<RunningWorkload>> = here.chain(world.ghosts.iter().cloned()).map(Arc::new).collect();
        all.sort_by(|a, b| a.group.path.cmp(&b.group.path));
        Ok(all)
    }
}

/// The meter and the enforcer.
struct SimulatedAccess {
    machine: Machine,
    known: HashMap<GroupId, String>,
    last: HashMap<GroupId, [u64; 2]>,
}

impl SimulatedAccess {
    fn of(machine: &Machine) -> SimulatedAccess {
        SimulatedAccess { machine: machine.clone(), known: HashMap::new(), last: HashMap::new() }
    }
}

fn name(path: &str) -> &str {
    path.strip_prefix("fair/").unwrap()
}

fn gone(path: &str) -> KernelError {
    KernelError::Gone(path.into())
}

impl Meter for SimulatedAccess {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        assert!(self.known.insert(id, name(&group.path).into()).is_none(), "{id:?} is in use");
        self.machine.world().workloads.get(name(&group.path)).map(|_| ()).ok_or_else(|| gone(&group.path))
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        let name = &self.known[&id];
        let world = self.machine.world();
        let sim = world.workloads.get(name).ok_or_else(|| gone(name))?;
        if sim.fails == Some("read") {
            return Err(KernelError::Content { what: name.clone(), found: "x".into(), expected: "a number" });
        }
        let [cpu, disk] = sim.used;
        Ok(Usage { cpu: Some((cpu * 1e9) as u64), disk: Some(disk as u64), ..Usage::default() })
    }

    fn dismiss(&mut self, id: GroupId) {
        self.known.remove(&id);
    }
}

impl Enforcer for SimulatedAccess {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn resources(&self) -> &[Resource] {
        &[Resource::Cpu, Resource::Disk]
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        let world = self.machine.world();
        let sim = world.workloads.get(name(&group.path)).ok_or_else(|| gone(&group.path))?;
        if matches!(sim.fails, Some("admit" | "admit or restore")) {
            return Err(KernelError::Content {
                what: "the bus".into(),
                found: "nothing".into(),
                expected: "an answer",
            });
        }
        self.known.insert(id, name(&group.path).into());
        self.last.insert(id, sim.weights);
        let [cpu, disk] = sim.weights.map(|w| w.to_string());
        Ok(SavedState([("cpu".to_owned(), cpu), ("disk".to_owned(), disk)].into()))
    }

    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let mut world = self.machine.world();
        let name = self.known.get(&id).ok_or(KernelError::NotAdmitted(id))?;
        let mut wrote = 0;
        let sim = world.workloads.get_mut(name).ok_or_else(|| gone(name))?;
        if sim.fails == Some("write") {
            return Err(KernelError::Withdrawn { resource: Resource::Cpu, group: name.clone(), why: "test".into() });
        }
        let last = self.last.get_mut(&id).unwrap();
        for (r, (resource, target)) in
            [(Resource::Cpu, targets.cpu), (Resource::Disk, targets.disk)].into_iter().enumerate()
        {
            let Some(value) = target.map(|w| u64::from(evenhand_heaviness::controller::cgroup_weight(w))) else {
                continue;
            };
            if last[r] != value {
                (last[r], sim.weights[r]) = (value, value);
                wrote += 1;
                changes.push(Change { group: id, resource, value });
            }
        }
        world.writes += wrote;
        Ok(())
    }

    fn dismiss(&mut self, id: GroupId) {
        self.known.remove(&id);
        self.last.remove(&id);
    }

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        let mut world = self.machine.world();
        let Some(sim) = world.workloads.get_mut(name(&group.path)) else { return Ok(()) };
        if matches!(sim.fails, Some("restore" | "admit or restore")) {
            return Err(KernelError::Content {
                what: "the bus".into(),
                found: "nothing".into(),
                expected: "an answer",
            });
        }
        sim.weights = ["cpu", "disk"].map(|key| saved.0[key].parse().unwrap());
        Ok(())
    }
}

/// The records of all nodes. Those of other nodes are delivered `delay` rounds late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bus(Arc<Mutex<BTreeMap<String, Vec<Record>>>>);

impl Bus {
    pub(crate) fn peers(&self, delay: usize) -> BusPeers {
        BusPeers { bus: self.clone(), delay, cut: Arc::default() }
    }
}

#[derive(Clone)]
pub(crate) struct BusPeers {
    bus: Bus,
    delay: usize,
    /// The time since which no record is delivered.
    pub(crate) cut: Arc<Mutex<Option<Duration>>>,
}

impl Peers for BusPeers {
    fn exchange(&mut self, own: Record) -> Totals {
        let mut all = self.bus.0.lock().unwrap();
        let mine = own.node.clone();
        all.entry(mine.clone()).or_default().push(own);
        let cut = *self.cut.lock().unwrap();
        let mut totals = Totals { isolated_since: cut, ..Totals::default() };
        for (node, records) in all.iter().filter(|(node, _)| cut.is_none() || **node == mine) {
            let late = if *node == mine { 0 } else { self.delay };
            let Some(record) = records.iter().rev().nth(late) else { continue };
            add_elementwise(&mut totals.supply, &record.supply);
            for (user, sums) in &record.users {
                totals.users.entry(user.clone()).or_default().add(sums);
            }
            totals.nodes.push(NodeStatus { name: node.clone(), age: Duration::ZERO, state: NodeState::Fresh });
        }
        totals
    }

    fn local_addr(&self) -> Option<std::net::SocketAddr> {
        None
    }

    fn traffic(&self) -> evenhand_protocol::transport::Traffic {
        evenhand_protocol::transport::Traffic::default()
    }
}

/// Settings of an agent in a test.
pub(crate) struct Setting {
    pub(crate) node: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) law: Law,
    pub(crate) resources: Vec<Resource>,
    pub(crate) delay: u32,
    pub(crate) peers: Box<dyn Peers>,
    pub(crate) journal: Option<Journal>,
}

impl Setting {
    /// Settings of a single node that writes, with a journal in this directory.
    pub(crate) fn in_folder(folder: &std::path::Path) -> Setting {
        let journal = Journal::open(&Journal::path_in(folder)).unwrap();
        Setting { journal: Some(journal), ..Setting::without_journal() }
    }

    /// The same without a journal: nothing is written.
    pub(crate) fn without_journal() -> Setting {
        Setting {
            node: "a",
            metric: "deviation",
            law: Law::Integral(IntegralSettings::default()),
            resources: vec![Resource::Cpu],
            delay: 0,
            peers: Box::new(SingleNode),
            journal: None,
        }
    }

    pub(crate) fn start(self, machine: &Machine) -> Agent {
        self.start_with(machine, machine)
    }

    /// Starts an agent that finds workloads on one machine and writes to the groups of another.
    pub(crate) fn start_with(self, listed: &Machine, machine: &Machine) -> Agent {
        let [cpu, disk] = machine.world().supply;
        let there = machine.clone();
        let settings = RoundSettings {
            metric: (metric_named(self.metric).unwrap().build)(&Parameters::default()).unwrap().into(),
            endowment: Default::default(),
            resources: self.resources,
            supply: PerResource { cpu, disk, ..PerResource::default() },
            speed: 1.0,
            quotas: Quotas::default(),
            law: self.law,
            delay: self.delay,
        };
        let control = ControlSection {
            interval: SECOND,
            law: self.law,
            controls: vec![Resource::Cpu, Resource::Disk],
            protected: 0.0,
            smoothing: 0.0,
        };
        let source: Box<dyn WorkloadSource> = Box::new(Listing(listed.clone()));
        Agent::new(AgentParts {
            node: self.node.into(),
            metric: self.metric.into(),
            settings,
            control,
            discovery: Discovery::new([("test".to_owned(), source)], ProtectedCgroups::from_text("")),
            meter: Box::new(SimulatedAccess::of(machine)),
            enforcer: match self.journal {
                Some(_) => Box::new(SimulatedAccess::of(machine)),
                None => Box::new(evenhand_enforcers::cgroups::DryRun::default()),
            },
            enforced_by: PerResource {
                cpu: Some("simulated".into()),
                disk: Some("simulated".into()),
                ..PerResource::default()
            },
            peers: self.peers,
            journal: self.journal,
            identity: Box::new(move |path| there.world().workloads.get(name(path)).map(|sim| sim.identity)),
            digest: digest(["test"]),
            incarnation: 1,
        })
        .unwrap()
    }
}

/// Runs machines and their agents together, for this number of updates of one second; the first is at `from`.
pub(crate) fn run(nodes: &mut [(&Machine, &mut Agent)], from: u64, updates: u64) {
    for s in from..from + updates {
        for (machine, agent) in nodes.iter_mut() {
            machine.work(SECOND);
            agent.update(Duration::from_secs(s)).unwrap();
        }
    }
}
