//! A machine without a machine: guests that want something, divided by the weights that an enforcer wrote.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use evenhand_agent::discovery::{Guest, GuestError, Guests, Own, Quotas, Source};
use evenhand_agent::{Agent, ControlSection, Journal, Law, Parts, Terms, digest};
use evenhand_enforcers::cgroups::{
    Before, Change, Control, Enforcer, Group, GroupId, KernelError, Levels, Meter, Usage,
};
use evenhand_heaviness::controller::IntegralSettings;
use evenhand_heaviness::{Parameters, metric_named};
use evenhand_protocol::exchange::{NodeState, NodeStatus, Record, Totals, add_elementwise};
use evenhand_protocol::transport::{Peers, SingleNode};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MUCH: f64 = 1e12;

/// A guest of the machine. Only processors and disk are divided.
#[derive(Clone, Debug)]
pub(crate) struct Sim {
    pub(crate) owner: &'static str,
    pub(crate) identity: u64,
    pub(crate) wants: [f64; 2],
    pub(crate) gets: [f64; 2],
    /// `cpu.weight` and `io.weight`, as the kernel has them.
    pub(crate) weights: [u64; 2],
    pub(crate) used: [f64; 2],
    /// What goes wrong: whether it can be read, and written.
    pub(crate) fails: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) supply: [f64; 2],
    pub(crate) guests: BTreeMap<String, Sim>,
    /// Who is still listed though gone, as when a group vanishes right after the look.
    pub(crate) ghosts: Vec<Guest>,
    pub(crate) writes: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Machine(Arc<Mutex<World>>);

pub(crate) fn guest(owner: &'static str, wants: [f64; 2]) -> Sim {
    Sim { owner, identity: 1, wants, gets: [0.0; 2], weights: [100; 2], used: [0.0; 2], fails: None }
}

impl Machine {
    pub(crate) fn new(supply: [f64; 2], guests: impl IntoIterator<Item = (&'static str, Sim)>) -> Machine {
        let guests = guests.into_iter().map(|(name, sim)| (name.to_owned(), sim)).collect();
        Machine(Arc::new(Mutex::new(World { supply, guests, ..World::default() })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Everybody works for so long, by weighted max-min.
    pub(crate) fn work(&self, time: Duration) {
        let mut world = self.world();
        for r in 0..2 {
            let mut left = world.supply[r];
            let mut open: Vec<String> = world.guests.keys().cloned().collect();
            loop {
                let sum: u64 = open.iter().map(|name| world.guests[name].weights[r]).sum();
                let part = |sim: &Sim| left * sim.weights[r] as f64 / sum as f64;
                let (full, rest): (Vec<_>, Vec<_>) =
                    open.iter().cloned().partition(|name| world.guests[name].wants[r] <= part(&world.guests[name]));
                if full.is_empty() {
                    let parts: Vec<f64> = rest.iter().map(|name| part(&world.guests[name])).collect();
                    rest.iter().zip(parts).for_each(|(name, got)| world.guests.get_mut(name).unwrap().gets[r] = got);
                    break;
                }
                for name in &full {
                    let sim = world.guests.get_mut(name).unwrap();
                    sim.gets[r] = sim.wants[r];
                    left -= sim.wants[r];
                }
                open = rest;
            }
        }
        for sim in world.guests.values_mut() {
            (0..2).for_each(|r| sim.used[r] += sim.gets[r] * time.as_secs_f64());
        }
    }

    pub(crate) fn gets(&self, r: usize) -> Vec<f64> {
        self.world().guests.values().map(|sim| sim.gets[r]).collect()
    }

    pub(crate) fn weights(&self) -> Vec<[u64; 2]> {
        self.world().guests.values().map(|sim| sim.weights).collect()
    }
}

fn described(name: &str, sim: &Sim) -> Guest {
    Guest {
        name: name.into(),
        owner: sim.owner.into(),
        group: Group { path: format!("fair/{name}"), ..Group::default() },
        identity: sim.identity,
        processors: Some(1.0),
        memory_bytes: None,
    }
}

struct Listing(Machine);

impl Source for Listing {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        let world = self.0.world();
        let here = world.guests.iter().map(|(name, sim)| described(name, sim));
        let mut all: Vec<Arc<Guest>> = here.chain(world.ghosts.iter().cloned()).map(Arc::new).collect();
        all.sort_by(|a, b| a.group.path.cmp(&b.group.path));
        Ok(all)
    }
}

/// Meter and enforcer.
struct Hand {
    machine: Machine,
    known: HashMap<GroupId, String>,
    last: HashMap<GroupId, [u64; 2]>,
}

impl Hand {
    fn of(machine: &Machine) -> Hand {
        Hand { machine: machine.clone(), known: HashMap::new(), last: HashMap::new() }
    }
}

fn name(path: &str) -> &str {
    path.strip_prefix("fair/").unwrap()
}

fn gone(path: &str) -> KernelError {
    KernelError::Gone(path.into())
}

impl Meter for Hand {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        assert!(self.known.insert(id, name(&group.path).into()).is_none(), "{id:?} is in use");
        self.machine.world().guests.get(name(&group.path)).map(|_| ()).ok_or_else(|| gone(&group.path))
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        let name = &self.known[&id];
        let world = self.machine.world();
        let sim = world.guests.get(name).ok_or_else(|| gone(name))?;
        if sim.fails == Some("read") {
            return Err(KernelError::Content { what: name.clone(), found: "x".into(), expected: "a number" });
        }
        let [cpu, disk] = sim.used;
        Ok(Usage { cpu_ns: Some((cpu * 1e9) as u64), disk_bytes: Some(disk as u64), ..Usage::default() })
    }

    fn dismiss(&mut self, id: GroupId) {
        self.known.remove(&id);
    }
}

impl Enforcer for Hand {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn controls(&self) -> &[Control] {
        &[Control::Cpu, Control::Disk]
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        let world = self.machine.world();
        let sim = world.guests.get(name(&group.path)).ok_or_else(|| gone(&group.path))?;
        if sim.fails == Some("admit") {
            return Err(KernelError::Content {
                what: "the bus".into(),
                found: "nothing".into(),
                expected: "an answer",
            });
        }
        self.known.insert(id, name(&group.path).into());
        self.last.insert(id, sim.weights);
        let [cpu, disk] = sim.weights.map(|w| w.to_string());
        Ok(Before([("cpu".to_owned(), cpu), ("disk".to_owned(), disk)].into()))
    }

    fn apply(&mut self, id: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let mut world = self.machine.world();
        let name = self.known.get(&id).ok_or(KernelError::Unknown(id))?;
        let mut wrote = 0;
        let sim = world.guests.get_mut(name).ok_or_else(|| gone(name))?;
        if sim.fails == Some("write") {
            return Err(KernelError::Withdrawn { control: Control::Cpu, group: name.clone(), why: "test".into() });
        }
        let last = self.last.get_mut(&id).unwrap();
        for (r, (control, level)) in [(Control::Cpu, levels.cpu), (Control::Disk, levels.disk)].into_iter().enumerate()
        {
            let Some(value) = level.map(|w| u64::from(evenhand_heaviness::controller::cgroup_weight(w))) else {
                continue;
            };
            if last[r] != value {
                (last[r], sim.weights[r]) = (value, value);
                wrote += 1;
                changes.push(Change { group: id, control, value });
            }
        }
        world.writes += wrote;
        Ok(())
    }

    fn dismiss(&mut self, id: GroupId) {
        self.known.remove(&id);
        self.last.remove(&id);
    }

    fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError> {
        let mut world = self.machine.world();
        let Some(sim) = world.guests.get_mut(name(&group.path)) else { return Ok(()) };
        if sim.fails == Some("restore") {
            return Err(KernelError::Content {
                what: "the bus".into(),
                found: "nothing".into(),
                expected: "an answer",
            });
        }
        sim.weights = ["cpu", "disk"].map(|key| before.0[key].parse().unwrap());
        Ok(())
    }
}

/// All nodes' newest words. What others say is `delay` rounds old.
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
    /// Since when nothing is heard.
    pub(crate) cut: Arc<Mutex<Option<Duration>>>,
}

impl Peers for BusPeers {
    fn exchange(&mut self, own: Record) -> Totals {
        let mut all = self.bus.0.lock().unwrap();
        let mine = own.node.clone();
        all.entry(mine.clone()).or_default().push(own);
        let cut = *self.cut.lock().unwrap();
        let mut totals = Totals { isolated_since: cut, ..Totals::default() };
        for (node, said) in all.iter().filter(|(node, _)| cut.is_none() || **node == mine) {
            let late = if *node == mine { 0 } else { self.delay };
            let Some(record) = said.iter().rev().nth(late) else { continue };
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
    pub(crate) resources: Vec<Control>,
    pub(crate) delay: u32,
    pub(crate) peers: Box<dyn Peers>,
    pub(crate) journal: Option<Journal>,
}

impl Setting {
    /// Of a node alone that writes, with a journal in this folder.
    pub(crate) fn in_folder(folder: &std::path::Path) -> Setting {
        Setting {
            node: "a",
            metric: "deviation",
            law: Law::Integral(IntegralSettings::default()),
            resources: vec![Control::Cpu],
            delay: 0,
            peers: Box::new(SingleNode),
            journal: Some(Journal::open(&folder.join("agent.redb")).unwrap()),
        }
    }

    pub(crate) fn start(self, machine: &Machine) -> Agent {
        self.start_with(machine, machine)
    }

    /// With guests looked for on one machine, and groups written to on another.
    pub(crate) fn start_with(self, listed: &Machine, machine: &Machine) -> Agent {
        let [cpu, disk] = machine.world().supply;
        let there = machine.clone();
        let terms = Terms {
            metric: (metric_named(self.metric).unwrap().build)(&Parameters::default()).unwrap().into(),
            endowment: Default::default(),
            resources: self.resources,
            supply: [cpu, 0.0, disk, 0.0],
            speed: 1.0,
            quotas: Quotas::default(),
            law: self.law,
            delay: self.delay,
        };
        let control = ControlSection {
            interval: SECOND,
            law: self.law,
            controls: vec![Control::Cpu, Control::Disk],
            protected: 0.0,
            smoothing: 0.0,
        };
        let source: Box<dyn Source> = Box::new(Listing(listed.clone()));
        Agent::start(Parts {
            node: self.node.into(),
            metric: self.metric.into(),
            terms,
            control,
            guests: Guests::new([("test".to_owned(), source)], Own::from_text("")),
            meter: Box::new(Hand::of(machine)),
            enforcer: match self.journal {
                Some(_) => Box::new(Hand::of(machine)),
                None => Box::new(evenhand_enforcers::cgroups::DryRun::default()),
            },
            enforced_by: [Some("simulated".into()), None, Some("simulated".into()), None],
            peers: self.peers,
            journal: self.journal,
            identity: Box::new(move |path| there.world().guests.get(name(path)).map(|sim| sim.identity)),
            digest: digest(["test"]),
            incarnation: 1,
        })
        .unwrap()
    }
}

/// Machines and their agents, together for so many updates of a second; the first at `from`.
pub(crate) fn run(nodes: &mut [(&Machine, &mut Agent)], from: u64, updates: u64) {
    for s in from..from + updates {
        for (machine, agent) in nodes.iter_mut() {
            machine.work(SECOND);
            agent.update(Duration::from_secs(s)).unwrap();
        }
    }
}
