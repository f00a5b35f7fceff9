//! An agent from its configuration: what works on this machine, and with that an [`Agent`] that uses it.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::discovery::Quotas;
use evenhand_documents::DocumentError;
use evenhand_enforcers::cgroups::{
    Budget, Control, DiskWeight, DryRun, Enforcer, Finding, Findings, Hierarchies, HostLock, KernelError, Own, Places,
    Several, Whom, probe,
};
use evenhand_enforcers::systemd::SystemdDbus;
use evenhand_enforcers::traffic::{Settings, Traffic, TrafficError, TrafficMeter};
use evenhand_heaviness::Metric;
use evenhand_protocol::exchange::{Fixed, RecordLimits};
use evenhand_protocol::transport::{Config, KeyError, Mode, Peers, SingleNode, TransportError};
use thiserror::Error;

use crate::agent::{Agent, AgentError, Parts, digest};
use crate::configuration::{Configuration, NetworkSection, NodeSection, PeersSection};
use crate::journal::{Journal, JournalError};
use crate::round::{Round, Terms};
use crate::supply::{SupplyError, speed, supply};

/// An agent, and what it stands on.
pub struct Assembly {
    /// The agent.
    pub agent: Agent,
    /// What works here.
    pub findings: Findings,
    /// Held for as long as the agent may write.
    pub lock: Option<HostLock>,
}

/// Why there is no agent.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// The quotas are none.
    #[error(transparent)]
    Quotas(Box<DocumentError>),
    /// The kernel's files say something else, or somebody else writes there.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// It is not known what this machine has.
    #[error(transparent)]
    Supply(#[from] SupplyError),
    /// What groups have cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What guests send cannot be divided.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Other nodes cannot be reached.
    #[error(transparent)]
    Peers(#[from] TransportError),
    /// The key cannot be read.
    #[error("{path}: {source}")]
    Key {
        /// The file.
        path: String,
        /// Why.
        source: KeyError,
    },
    /// The agent's own.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The folder for what has to survive cannot be made.
    #[error("{folder}: {source}")]
    State {
        /// The folder.
        folder: String,
        /// Why.
        source: std::io::Error,
    },
}

/// What works here, for these settings. Changes nothing.
///
/// # Errors
/// If it cannot be found out.
pub fn doctor(configuration: Option<&Configuration>, places: &Places) -> Result<Findings, KernelError> {
    let under = configuration.map_or("", |c| c.node.under.as_str());
    let mut findings = probe(places, under)?;
    let row = match configuration.and_then(|c| Some((c, c.network.as_ref()?))) {
        Some((configuration, section)) => network(&settings(section, &configuration.node), &findings.hierarchies),
        None => Finding {
            control: Control::Network,
            able: false,
            by: String::new(),
            why: "no device is named".into(),
            advice: Some("name the device by which the machine sends: [network] device = \"eth0\"".into()),
        },
    };
    findings.set(row);
    Ok(findings)
}

fn settings(section: &NetworkSection, node: &NodeSection) -> Settings {
    let link = node.supply[Control::Network as usize].map(|bytes| bytes as u64);
    Settings { device: section.device.clone(), link, force: section.replace }
}

fn network(settings: &Settings, hierarchies: &Hierarchies) -> Finding {
    let tried = evenhand_enforcers::traffic::probe(settings, hierarchies);
    // By group or by device: one is enough.
    let rules = |what: &str| what.starts_with("rules");
    let able = tried.iter().filter(|found| !rules(found.what)).all(|found| found.works == Some(true))
        && tried.iter().any(|found| rules(found.what) && found.works == Some(true));
    let (works, not): (Vec<_>, Vec<_>) = tried.iter().partition(|found| found.works == Some(true));
    let sentences = |of: &[&evenhand_enforcers::traffic::Finding]| {
        of.iter().map(|f| f.sentence.as_str()).collect::<Vec<_>>().join(" ")
    };
    Finding {
        control: Control::Network,
        able,
        by: if able { format!("classes of {}", settings.device) } else { String::new() },
        why: if able { format!("{} is divided by HTB", settings.device) } else { sentences(&not) },
        advice: (able && !not.is_empty())
            .then(|| sentences(&not))
            .or_else(|| (!able && works.is_empty()).then(|| "run as root".into())),
    }
}

/// An agent of this machine. If it may write, nobody else may, where it works.
///
/// # Errors
/// If anything that it needs is not there.
pub fn assemble(configuration: Configuration, apply: bool, places: &Places) -> Result<Assembly, AssembleError> {
    let findings = doctor(Some(&configuration), places)?;
    let Configuration { mut node, heaviness, control, network, peers, quotas, guests, .. } = configuration;
    let lock = apply.then(|| HostLock::take(&findings.hierarchies, &node.under)).transpose()?;
    let quotas = quotas.map(|path| Quotas::open(&path)).transpose().map_err(|e| AssembleError::Quotas(Box::new(e)))?;
    let quotas = quotas.unwrap_or_default();
    Budget::raise_limit();
    let budget = Budget::of_process();
    let able = |control| findings.row(control).is_some_and(|row| row.able);
    let mut meter = findings.meters(&budget);
    let mut traffic = None;
    match network.as_ref().filter(|_| apply && able(Control::Network)) {
        Some(section) => {
            let opened = Traffic::open(settings(section, &node), &findings.hierarchies)?;
            node.supply[Control::Network as usize].get_or_insert(opened.link() as f64);
            meter = meter.with(Box::new(opened.meter()?));
            traffic = Some(opened);
        }
        None => meter = meter.with(Box::new(TrafficMeter::of_devices()?)),
    }
    let enforcer: Box<dyn Enforcer> =
        if apply { enforcers(&findings, traffic, &budget)? } else { Box::new(DryRun::default()) };
    let enforced_by =
        Control::ALL.map(|control| findings.row(control).filter(|row| row.able).map(|row| row.by.clone()));
    let journal = if apply {
        std::fs::create_dir_all(&node.state)
            .map_err(|source| AssembleError::State { folder: node.state.display().to_string(), source })?;
        Some(Journal::open(&node.state.join("agent.redb"))?)
    } else {
        None
    };
    let root = Path::new("/");
    let terms = Terms {
        metric: heaviness.metric.into(),
        endowment: heaviness.endowment,
        supply: supply(&node, root)?,
        speed: speed(node.speed, root, &node.state)?,
        law: control.law,
        // A word is told, and heard, between two updates.
        delay: peers.as_ref().map_or(0, |peers| if peers.ring { 2 } else { 1 }),
        resources: heaviness.resources,
        quotas,
    };
    let resources: Vec<&str> = terms.resources.iter().map(|c| c.resource()).collect();
    let digest =
        digest([&heaviness.said, &resources.join(","), &terms.quotas.digest().to_string()].map(|s| s.as_str()));
    let name = node.name.clone().unwrap_or_else(host_name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let incarnation = journal.as_ref().map_or(Ok(now), |journal| journal.incarnation(now))?;
    let peers: Box<dyn Peers> = match &peers {
        None => Box::new(SingleNode),
        Some(section) => {
            evenhand_protocol::transport::start(config(section, (&name, incarnation), &terms, control.interval)?)?
        }
    };
    let hierarchies = findings.hierarchies.clone();
    let parts = Parts {
        node: name,
        metric: heaviness.name.into(),
        terms,
        control,
        guests,
        meter: Box::new(meter),
        enforcer,
        enforced_by,
        peers,
        journal,
        identity: Box::new(move |path| hierarchies.identity(path)),
        digest,
        incarnation,
    };
    Ok(Assembly { agent: Agent::start(parts)?, findings, lock })
}

/// Everything that can write here, each to what is its own.
fn enforcers(findings: &Findings, traffic: Option<Traffic>, budget: &Budget) -> Result<Box<dyn Enforcer>, KernelError> {
    let own = Own::detect(&findings.hierarchies)?;
    let mut all = Several::new();
    if findings.systemd {
        // Units are systemd's to write (its single-writer rule), also where a file would do.
        let disk = findings.disk.unwrap_or(DiskWeight::Cost);
        let settings = evenhand_enforcers::systemd::Settings { disk, memory: findings.memory, ..Default::default() };
        all = all.with(Whom::Units, Box::new(SystemdDbus::new(settings, own.clone())?));
    }
    for enforcer in findings.enforcers(&own, budget) {
        all = all.with(if findings.systemd { Whom::Others } else { Whom::All }, enforcer);
    }
    if let Some(traffic) = traffic {
        all = all.with(Whom::All, Box::new(traffic));
    }
    Ok(Box::new(all))
}

/// No word counts for more than a user's worth of so many users, under metrics whose sums have no other bound.
const USERS: usize = 1024;

fn config(
    section: &PeersSection,
    (node, incarnation): (&str, u64),
    terms: &Terms,
    interval: std::time::Duration,
) -> Result<Config, AssembleError> {
    let key = evenhand_protocol::transport::read_key(&section.key)
        .map_err(|e| AssembleError::Key { path: section.key.display().to_string(), source: e })?;
    let metric: Arc<dyn Metric<f64>> = Arc::clone(&terms.metric);
    let users = terms.quotas.users().len().max(USERS);
    let bounds = move |supply: &[Fixed]| {
        let supply: Vec<f64> = supply.iter().map(|s| s.to_f64()).collect();
        // A little more than what is there: clocks and meters are not exact.
        let most = Round::most(metric.as_ref(), users, &supply);
        most.into_iter().map(|most| Fixed::from_f64(1.001 * most + 1e-9).unwrap_or(Fixed::MAX)).collect()
    };
    let most = terms.resources.iter().map(|c| section.largest[*c as usize]);
    let known = section.largest.iter().any(Option::is_some);
    let most = most.map(|most| most.map_or(Fixed::MAX, |most| Fixed::from_f64(most).unwrap_or(Fixed::MAX)));
    let limits = RecordLimits {
        supply: known.then(|| most.collect()),
        terms: Arc::new(bounds),
        users: evenhand_protocol::exchange::MAX_USERS,
    };
    let mode = if section.ring { Mode::Ring } else { Mode::Gossip };
    Ok(Config {
        incarnation,
        advertise: section.advertise,
        seeds: section.seeds.clone(),
        mode,
        fresh_intervals: section.fresh,
        max_halvings: section.lost - section.fresh,
        ..Config::new(node, section.listen, key, interval, limits)
    })
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
