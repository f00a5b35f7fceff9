//! Assembles an agent from its configuration and the mechanisms that work on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use evenhand_documents::DocumentError;
use evenhand_enforcers::cgroups::{
    CompositeEnforcer, DescriptorBudget, DiskWeight, Enforcer, GroupFilter, Hierarchies, HostLock, KernelError,
    Observation, PerResource, ProbeReport, ProtectedCgroups, Resource, ResourceSupport, SystemRoot, probe,
};
use evenhand_enforcers::systemd::SystemdDbus;
use evenhand_enforcers::traffic::{
    Check, Settings, TrafficDryRun, TrafficEnforcer, TrafficError, TrafficLeftovers, TrafficMeter,
};
use evenhand_heaviness::Metric;
use evenhand_model::counted;
use evenhand_protocol::exchange::{Fixed, RecordLimits};
use evenhand_protocol::transport::{
    Config, CredentialError, CredentialFiles, Credentials, KeyError, Mode, Peers, SingleNode, TlsFiles, TransportError,
    read_keys,
};
use thiserror::Error;

use crate::agent::{Agent, AgentError, AgentParts, digest};
use crate::configuration::{Configuration, NetworkSection, NodeSection, PeersSection, is_not_loaded};
use crate::fairness_round::{FairnessRound, RoundSettings};
use crate::journal::{Entry, Journal, JournalError};
use crate::largest_node::largest_node;
use crate::lock_folder::lock_folder;
use crate::node_supply::{SupplyError, node_supply, processor_speed};
use crate::other_devices::clear_other_devices;
use crate::quotas::Quotas;
use crate::trusted_files::{TrustError, check_trusted, create_private_folder};

/// An agent of this machine, with the probe's report and the lock.
pub struct Assembly {
    /// The agent.
    pub agent: Agent,
    /// The resources that can be divided on this machine.
    pub report: ProbeReport,
    /// The lock on the groups, which must be held while the agent may write; `None` in a dry run.
    pub lock: Option<HostLock>,
}

/// Why an agent cannot be assembled.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// The file of quotas is invalid.
    #[error(transparent)]
    Quotas(Box<DocumentError>),
    /// None of the controls of the configuration can be written on this machine.
    #[error(
        "nothing can be written here: {reasons}. Run the agent as root, with control groups that may be written, or without --apply"
    )]
    NothingToWrite {
        /// What prevents each control.
        reasons: String,
    },
    /// There is no group to work below.
    #[error("{0}")]
    Under(Box<DocumentError>),
    /// The kernel's files are not as expected, or another agent manages the groups.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The resources of this machine cannot be determined.
    #[error(transparent)]
    Supply(#[from] SupplyError),
    /// The settings of groups cannot be stored.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Network traffic cannot be divided.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The exchange with other nodes cannot be started.
    #[error(transparent)]
    Peers(#[from] TransportError),
    /// The key cannot be read.
    #[error("{path}: {source}")]
    Key {
        /// The path of the file.
        path: String,
        /// The error.
        source: KeyError,
    },
    /// The key or the certificate cannot be used.
    #[error(transparent)]
    Credentials(CredentialError),
    /// Another user could change the key, or take the locks.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The agent itself cannot be created.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The directory for the agent's state or its locks cannot be created.
    #[error("{folder}: {source}")]
    State {
        /// The path of the directory.
        folder: String,
        /// The error.
        source: std::io::Error,
    },
}

/// Finds out which resources can be divided on this machine with this configuration. Changes nothing.
///
/// # Errors
/// Returns an error if the mounted cgroup hierarchies cannot be determined.
pub fn diagnose(configuration: Option<&Configuration>, system: &SystemRoot) -> Result<ProbeReport, KernelError> {
    let under = configuration.map_or("", |c| c.node.under.as_str());
    let mut report = probe(system, under)?;
    let support = match configuration.and_then(|c| Some((c, c.network.as_ref()?))) {
        Some((configuration, section)) => {
            network_support(&traffic_settings(section, &configuration.node), &report.hierarchies)
        }
        None => ResourceSupport {
            resource: Resource::Network,
            supported: false,
            mechanism: String::new(),
            reason: "no device is configured".into(),
            advice: Some("name the device through which the machine sends: [network] device = \"eth0\"".into()),
        },
    };
    report.add(support);
    Ok(report)
}

/// Returns the observation that groups have values that an agent wrote which runs no more, if there are any.
pub fn left_over(configuration: &Configuration, hierarchies: &Hierarchies) -> Option<Observation> {
    let journal = Journal::path_in(&configuration.node.state);
    let is_left =
        |entry: &Entry| !entry.saved.0.is_empty() && hierarchies.identity(&entry.group.path) == Some(entry.identity);
    let count = Journal::left_over(&journal).iter().filter(|entry| is_left(entry)).count();
    (count > 0).then(|| Observation {
        subject: journal.display().to_string(),
        found: format!(
            "{} values that an agent wrote, which runs no more",
            counted(count, "group still has", "groups still have")
        ),
        consequence: "evenhand agent release restores them, and an agent with --apply continues from them".into(),
    })
}

fn traffic_settings(section: &NetworkSection, node: &NodeSection) -> Settings {
    let link = node.supply.network.map(|bytes| bytes as u64);
    Settings { device: section.device.clone(), link, force: section.replace }
}

fn network_support(settings: &Settings, hierarchies: &Hierarchies) -> ResourceSupport {
    let checks = evenhand_enforcers::traffic::probe(settings, hierarchies);
    // Rules for groups or for devices: one kind suffices.
    let is_rule = |check: &Check| check.name.starts_with("rules");
    let passed = |check: &Check| check.passed == Some(true);
    let supported = checks.iter().filter(|c| !is_rule(c)).all(passed) && checks.iter().any(|c| is_rule(c) && passed(c));
    let (works, fails): (Vec<&Check>, Vec<&Check>) = checks.iter().partition(|check| passed(check));
    let failures = fails.iter().map(|check| check.message.as_str()).collect::<Vec<_>>().join(" ");
    let (mechanism, reason, advice) = if supported {
        let advice = (!fails.is_empty()).then_some(failures);
        (format!("classes of {}", settings.device), format!("{} is divided by HTB", settings.device), advice)
    } else {
        (String::new(), failures, works.is_empty().then(|| "run as root".into()))
    };
    ResourceSupport { resource: Resource::Network, supported, mechanism, reason, advice }
}

/// Assembles an agent of this machine. If it may write (`apply`), it locks its groups against other agents.
///
/// # Errors
/// Returns an error if a part that the agent needs is not available.
pub fn assemble(mut configuration: Configuration, apply: bool, system: &SystemRoot) -> Result<Assembly, AssembleError> {
    let mut report = diagnose(Some(&configuration), system)?;
    // Before an agent that writes, which continues from its journal.
    if !apply {
        report.observations.extend(left_over(&configuration, &report.hierarchies));
    }
    if let Some(error) = configuration.missing_under {
        return Err(AssembleError::Under(error));
    }
    if apply {
        configuration.check_trusted_files()?;
    }
    let quotas = read_quotas(&mut configuration)?;
    let Configuration { mut node, heaviness, control, network, peers, mut discovery, .. } = configuration;
    if apply {
        check_writable(&report, &control.controls)?;
        discovery.use_trusted_files_only();
    }
    let lock = match apply {
        true => {
            let folder = lock_folder(system, &node.state).map_err(|error| match error {
                TrustError::Read { path, source } => {
                    AssembleError::State { folder: path.display().to_string(), source }
                }
                other => other.into(),
            })?;
            Some(HostLock::take(&report.hierarchies, &node.under, &folder)?)
        }
        false => None,
    };
    DescriptorBudget::raise_limit();
    let budget = DescriptorBudget::of_process();
    let supported = |resource| report.support(resource).filter(|support| support.supported);
    let mut meter = report.meter(&budget);
    let mut traffic: Option<Box<dyn Enforcer>> = None;
    match network.as_ref().filter(|_| supported(Resource::Network).is_some()) {
        Some(section) if apply => {
            let opened = TrafficEnforcer::open(traffic_settings(section, &node), &report.hierarchies)?;
            node.supply.network.get_or_insert(opened.link() as f64);
            meter = meter.with(Box::new(opened.meter()?));
            traffic = Some(Box::new(opened));
        }
        Some(section) => {
            let dry = TrafficDryRun::open(&traffic_settings(section, &node), &report.hierarchies)?;
            node.supply.network.get_or_insert(dry.link() as f64);
            meter = meter.with(Box::new(TrafficMeter::of_devices()?));
            traffic = Some(Box::new(dry));
        }
        None => meter = meter.with(Box::new(TrafficMeter::of_devices()?)),
    }
    let enforcer = enforcers(&report, traffic, &budget, apply)?;
    let enforced_by = PerResource::from_fn(|resource| supported(resource).map(|support| support.mechanism.clone()));
    let journal = if apply {
        create_private_folder(&node.state)
            .map_err(|source| AssembleError::State { folder: node.state.display().to_string(), source })?;
        let journal = Journal::open(&Journal::path_in(&node.state))?;
        let divided = network.as_ref().filter(|_| supported(Resource::Network).is_some());
        let divided = divided.map(|section| section.device.as_str());
        clear_other_devices(&journal, divided, TrafficEnforcer::remove_leftovers)?;
        Some(journal)
    } else {
        None
    };
    let controls = control.controls.clone();
    let root = Path::new("/");
    let settings = RoundSettings {
        metric: heaviness.metric.into(),
        endowment: heaviness.endowment,
        supply: node_supply(&node, root)?,
        speed: processor_speed(node.speed, root, &node.state)?,
        law: control.law,
        // A record is sent, and received, between two updates.
        delay: peers.as_ref().map_or(0, |peers| if peers.ring { 2 } else { 1 }),
        resources: heaviness.resources,
        quotas,
    };
    let resources: Vec<&str> = settings.resources.iter().map(|resource| resource.name()).collect();
    let quotas_digest = settings.quotas.digest().to_string();
    let digest = digest([heaviness.canonical.as_str(), &resources.join(","), &quotas_digest]);
    let name = node.name.clone().unwrap_or_else(host_name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let incarnation = journal.as_ref().map_or(Ok(now), |journal| journal.incarnation(now))?;
    let peers: Box<dyn Peers> = match &peers {
        None => Box::new(SingleNode),
        Some(section) => {
            evenhand_protocol::transport::start(config(section, (&name, incarnation), &settings, control.interval)?)?
        }
    };
    let hierarchies = report.hierarchies.clone();
    let parts = AgentParts {
        node: name,
        metric: heaviness.name.into(),
        settings,
        control,
        discovery,
        meter: Box::new(meter),
        enforcer,
        enforced_by,
        peers,
        journal,
        identity: Box::new(move |path| hierarchies.identity(path)),
        digest,
        incarnation,
    };
    let mut agent = Agent::new(parts)?;
    if apply {
        agent.set_standing_warnings(not_permitted(&report, &controls));
    }
    Ok(Assembly { agent, report, lock })
}

/// Checks that at least one of the controls can be written: an agent that writes nothing must not look like one that does.
fn check_writable(report: &ProbeReport, controls: &[Resource]) -> Result<(), AssembleError> {
    let supports: Vec<&ResourceSupport> = controls.iter().filter_map(|control| report.support(*control)).collect();
    if supports.iter().any(|support| support.supported) {
        return Ok(());
    }
    let reasons: Vec<String> = supports.iter().map(|of| format!("{}: {}", of.resource, of.reason)).collect();
    Err(AssembleError::NothingToWrite { reasons: reasons.join("; ") })
}

/// Returns a sentence for each control that only the right to write is missing for.
fn not_permitted(report: &ProbeReport, controls: &[Resource]) -> Vec<String> {
    let refused = report.not_permitted.iter().filter(|(resource, _)| controls.contains(resource));
    refused.map(|(resource, why)| format!("{resource} is not set: {why}")).collect()
}

/// Reads the files that a configuration names, as an agent does that starts with it: quotas, the shared key and certificates. Returns
/// whether it read all: credentials of systemd are there only while the agent's unit runs.
///
/// # Errors
/// Returns the error for which the agent would not start.
pub fn check_named_files(configuration: &mut Configuration) -> Result<bool, AssembleError> {
    read_quotas(configuration)?;
    let Some(section) = &configuration.peers else { return Ok(true) };
    let mut secrets = std::iter::once(section.key.as_path()).chain(section.tls.iter().flat_map(TlsFiles::all));
    if secrets.any(is_not_loaded) {
        return Ok(false);
    }
    let name = configuration.node.name.clone().unwrap_or_else(host_name);
    credential_files(section)?.check_usable(&name).map_err(AssembleError::Credentials)?;
    Ok(true)
}

fn read_quotas(configuration: &mut Configuration) -> Result<Quotas, AssembleError> {
    if let Some(error) = configuration.missing_quotas.take() {
        return Err(AssembleError::Quotas(error));
    }
    let quotas = configuration.quotas.as_deref().map(Quotas::open).transpose();
    Ok(quotas.map_err(|error| AssembleError::Quotas(Box::new(error)))?.unwrap_or_default())
}

/// Combines all enforcers of this machine, each for the groups that it should write. Without `apply` they are the same, so that
/// a dry run reports exactly what would be written.
fn enforcers(
    report: &ProbeReport,
    traffic: Option<Box<dyn Enforcer>>,
    budget: &DescriptorBudget,
    apply: bool,
) -> Result<Box<dyn Enforcer>, KernelError> {
    let protected = ProtectedCgroups::detect()?;
    let mut all = CompositeEnforcer::new();
    if report.systemd {
        // Only systemd should write the attributes of its units (its single-writer rule), even where a file would do.
        let disk = report.disk_weight.unwrap_or(DiskWeight::Cost);
        let memory = report.memory_protection;
        let settings = evenhand_enforcers::systemd::Settings { disk, memory, ..Default::default() };
        let systemd = SystemdDbus::new(settings, protected.clone())?;
        all = all.with(GroupFilter::SystemdUnits, Box::new(if apply { systemd } else { systemd.dry_run() }));
    }
    let cgroups = if apply { report.enforcers(&protected, budget) } else { report.dry_run(&protected, budget) };
    for enforcer in cgroups {
        all = all.with(if report.systemd { GroupFilter::OtherGroups } else { GroupFilter::All }, enforcer);
    }
    // A configuration may no longer name the device that an earlier run divided before it crashed.
    let traffic = traffic.or_else(|| apply.then(|| Box::new(TrafficLeftovers) as Box<dyn Enforcer>));
    if let Some(traffic) = traffic {
        all = all.with(GroupFilter::All, traffic);
    }
    Ok(Box::new(all))
}

/// Returns the files with which a node proves itself, after a check of who could change them.
fn credential_files(section: &PeersSection) -> Result<CredentialFiles, AssembleError> {
    let key_error = |source| AssembleError::Key { path: section.key.display().to_string(), source };
    // A file that cannot be examined cannot be read either, which is the clearer message.
    match check_trusted(&section.key) {
        Err(TrustError::Read { source, .. }) => return Err(key_error(KeyError::Read(source))),
        checked => checked?,
    }
    read_keys(&section.key).map_err(key_error)?;
    for path in section.tls.iter().flat_map(TlsFiles::all) {
        check_trusted(path)?;
    }
    Ok(CredentialFiles {
        key: section.key.clone(),
        tls: section.tls.clone(),
        check: |path| check_trusted(path).map_err(|error| error.to_string()),
    })
}

/// The number of users that bounds a record under metrics whose sums have no other bound.
const USERS: usize = 1024;

fn config(
    section: &PeersSection,
    (node, incarnation): (&str, u64),
    settings: &RoundSettings,
    interval: std::time::Duration,
) -> Result<Config, AssembleError> {
    let credentials = Credentials::Files(credential_files(section)?);
    let metric: Arc<dyn Metric<f64>> = Arc::clone(&settings.metric);
    let users = settings.quotas.users().len().max(USERS);
    let bounds = move |supply: &[Fixed]| {
        let supply: Vec<f64> = supply.iter().map(|s| s.to_f64()).collect();
        // Slightly more than the bound, because clocks and meters are not exact.
        let bounds = FairnessRound::record_bounds(metric.as_ref(), users, &supply);
        bounds.into_iter().map(|bound| Fixed::from_f64(1.001 * bound + 1e-9).unwrap_or(Fixed::MAX)).collect()
    };
    let own = PerResource { cpu: settings.supply.cpu * settings.speed, ..settings.supply };
    let largest = largest_node(&section.largest, &own).select(&settings.resources).into_iter();
    let largest = largest.map(|bound| Fixed::from_f64(bound).unwrap_or(Fixed::MAX));
    let limits = RecordLimits {
        supply: Some(largest.collect()),
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
        ..Config::new(node, section.listen, credentials, interval, limits)
    })
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cpu: bool, memory: bool) -> ProbeReport {
        let support = |resource, supported| ResourceSupport {
            resource,
            supported,
            mechanism: String::new(),
            reason: "/cg cannot be written: Permission denied".into(),
            advice: None,
        };
        let resources = vec![support(Resource::Cpu, cpu), support(Resource::Memory, memory)];
        let refused =
            [(Resource::Cpu, cpu), (Resource::Memory, memory)].into_iter().filter(|(_, supported)| !supported);
        let not_permitted = refused.map(|(resource, _)| (resource, "/cg cannot be written: Permission denied".into()));
        ProbeReport { resources, not_permitted: not_permitted.collect(), ..ProbeReport::default() }
    }

    #[test]
    fn an_agent_that_can_write_nothing_does_not_start() {
        let error = check_writable(&report(false, false), &Resource::ALL).unwrap_err().to_string();
        assert!(
            error.starts_with("nothing can be written here: cpu: /cg cannot be written: Permission denied; mem: "),
            "{error}"
        );
        check_writable(&report(true, false), &Resource::ALL).unwrap();
        // What the configuration does not set does not count.
        assert!(check_writable(&report(true, false), &[Resource::Memory]).is_err());
    }

    #[test]
    fn each_control_that_cannot_be_written_has_a_warning() {
        let warnings = not_permitted(&report(true, false), &Resource::ALL);
        assert_eq!(warnings, ["mem is not set: /cg cannot be written: Permission denied"]);
        assert_eq!(not_permitted(&report(true, false), &[Resource::Cpu]), Vec::<String>::new());
    }
}
