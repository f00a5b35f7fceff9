//! The loop of the agent: discover, measure, exchange, compute, write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::{Change, Enforcer, KernelError, Meter, PerResource, Resource, Targets};
use evenhand_heaviness::HeavinessError;
use evenhand_model::counted;
use evenhand_protocol::exchange::{NodeState, Record, Totals};
use evenhand_protocol::transport::{Peers, SharedName};
use thiserror::Error;

use crate::admitted_workloads::{AdmittedWorkload, AdmittedWorkloads, MachineAccess, warn};
use crate::configuration::{ControlSection, Law};
use crate::discovery::Discovery;
use crate::fairness_round::{FairnessRound, RoundSettings};
use crate::journal::{Entry, Journal, JournalError};
use crate::load_tracker::{Load, LoadTracker};
use crate::status::TotalStatus;
use crate::weights_to_targets::{MemoryClaim, linear_targets, protected_memory, weight_targets};

/// Returns the identity of the group that now has a path; `None` if there is none.
pub type Identity = Box<dyn Fn(&str) -> Option<u64> + Send>;

/// The parts of an agent. All access to the machine goes through them, so that tests can simulate it.
pub struct AgentParts {
    /// The node's name.
    pub node: String,
    /// The name of the heaviness metric.
    pub metric: String,
    /// The constant settings of the computation.
    pub settings: RoundSettings,
    /// How weights follow from heaviness.
    pub control: ControlSection,
    /// Finds the running workloads.
    pub discovery: Discovery,
    /// Measures their use.
    pub meter: Box<dyn Meter>,
    /// Sets their weights.
    pub enforcer: Box<dyn Enforcer>,
    /// The mechanism that divides each resource, for the status; `None`: none.
    pub enforced_by: PerResource<Option<String>>,
    /// The connection to the other nodes.
    pub peers: Box<dyn Peers>,
    /// Stores the settings that groups had before the first write; `None`: nothing is written.
    pub journal: Option<Journal>,
    /// Identifies the groups that exist now.
    pub identity: Identity,
    /// The digest of the settings on which all nodes must agree.
    pub digest: u64,
    /// Increases at each start of the agent.
    pub incarnation: u64,
}

/// Why the agent cannot continue. What it wrote still has to be restored.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The settings of groups cannot be stored, so the groups must not be changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The heaviness cannot be computed, because an input is not a number.
    #[error("heaviness cannot be computed: {0}")]
    Heaviness(#[from] HeavinessError),
}

/// The result of an update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// The values that were written, or would be written in a dry run.
    pub changes: Vec<Change>,
    /// The number of running workloads on this node.
    pub workloads: usize,
    /// The number of users on all nodes.
    pub users: usize,
    /// The number of nodes whose records count in full.
    pub nodes: usize,
    /// The warnings that the last update did not have.
    pub new_warnings: Vec<String>,
    /// Where the sources looked, if no workload runs on this node; otherwise empty.
    pub why_nothing: Vec<String>,
}

/// The result of restoring groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// The number of groups that were restored.
    pub groups: usize,
    /// The errors.
    pub failed: Vec<String>,
    /// The paths of the groups that could not be restored. The journal keeps them.
    pub left: BTreeSet<String>,
}

impl Released {
    /// Adds the result of [`restore_entry`].
    pub(crate) fn add(&mut self, entry: &Entry, restored: Result<bool, KernelError>) {
        match restored {
            // Nothing was written to a group without saved settings.
            Ok(exists) => self.groups += usize::from(exists && !entry.saved.0.is_empty()),
            Err(KernelError::Gone(_)) => {}
            Err(error) => {
                self.left.insert(entry.group.path.clone());
                self.failed.push(error.to_string());
            }
        }
    }
}

/// The daemon of a node, except for the clock that calls it.
pub struct Agent {
    pub(crate) parts: AgentParts,
    pub(crate) round: FairnessRound,
    pub(crate) workloads: AdmittedWorkloads,
    pub(crate) totals: Totals,
    pub(crate) warnings: Vec<String>,
    pub(crate) counts: TotalStatus,
    pub(crate) updates: u64,
    /// What holds as long as the agent runs.
    standing_warnings: Vec<String>,
    loads: LoadTracker,
    /// The groups that were changed, by an earlier run of the agent or as workloads that are none any more, and are not
    /// restored, by path.
    previous: BTreeMap<String, Entry>,
    /// The number of updates since the last record of another node, if there should be others.
    pub(crate) isolated_updates: u32,
    /// What an isolated node could not restore yet.
    unrestored: BTreeSet<String>,
}

/// The longest time from SIGTERM to the end, with all groups restored: the update that is under way, whose requests to
/// daemons each have a limit, and the restoration. A service manager waits longer than this before it kills the agent.
pub const EXIT_LIMIT: Duration = Duration::from_secs(10);

/// Returns the longest time from one report of a working agent to its service manager to the next, with this interval
/// between two updates: the interval, and an update or a start with its requests to daemons, twice what ending takes.
pub fn longest_silence(interval: Duration) -> Duration {
    interval + 2 * EXIT_LIMIT
}

/// After this number of updates without any other node all groups are restored. Before that the records of others have
/// aged, and each of these updates halves the distance of all weights to neutral, so that restoring is no large step.
const MAX_ISOLATED_UPDATES: u32 = 5;

impl Agent {
    /// Creates an idle agent.
    ///
    /// # Errors
    /// Returns an error if the supply or a quota is not a number, or if the journal cannot be read.
    pub fn new(parts: AgentParts) -> Result<Agent, AgentError> {
        let entries = parts.journal.as_ref().map(Journal::entries).transpose()?.unwrap_or_default();
        Ok(Agent {
            round: FairnessRound::new(parts.settings.clone())?,
            loads: LoadTracker::new(parts.control.smoothing),
            previous: entries.into_iter().map(|entry| (entry.group.path.clone(), entry)).collect(),
            workloads: AdmittedWorkloads::default(),
            totals: Totals::default(),
            warnings: Vec::new(),
            standing_warnings: Vec::new(),
            counts: TotalStatus::default(),
            updates: 0,
            isolated_updates: 0,
            unrestored: BTreeSet::new(),
            parts,
        })
    }

    /// Sets the warnings that every update has.
    pub(crate) fn set_standing_warnings(&mut self, warnings: Vec<String>) {
        self.standing_warnings = warnings;
    }

    /// Runs one update, at this time of a monotonic clock.
    ///
    /// # Errors
    /// Returns an error if the agent cannot continue. All other problems are warnings.
    pub fn update(&mut self, at: Duration) -> Result<Update, AgentError> {
        let (begun, cpu_before) = (Instant::now(), thread_cpu_time());
        let mut warnings = self.standing_warnings.clone();
        self.updates += 1;
        let mut changed = self.refresh_workloads(&mut warnings)?;
        changed |= self.measure_loads(at, &mut warnings);
        if changed {
            self.round.set_workloads(self.workloads.iter().map(|admitted| admitted.info()).collect())?;
        }
        let loads: Vec<Load> = self.workloads.iter().map(|admitted| admitted.load).collect();
        let measured = self.round.measure(&loads)?;
        for (resource, used) in &measured.beyond_supply {
            let supply = self.parts.settings.supply[*resource];
            warnings.push(format!(
                "workloads use {used:.4e} of {resource}, more than the node's supply of {supply:.4e} by its configuration"
            ));
        }
        let record = Record {
            node: self.parts.node.clone(),
            incarnation: self.parts.incarnation,
            sequence: self.updates,
            digest: self.parts.digest,
            supply: measured.supply,
            users: measured.users,
        };
        self.totals = self.parts.peers.exchange(record);
        warnings.extend(self.parts.peers.problem());
        warnings.extend(self.parts.peers.shared_names().iter().map(shared_name_warning));
        if self.totals.isolated_since.is_some() {
            self.isolated_updates = self.isolated_updates.saturating_add(1);
            self.round.set_totals(&self.totals)?;
            self.round.decay_weights(0.5);
        } else {
            self.isolated_updates = 0;
            self.unrestored.clear();
            for failure in self.round.update_weights(&self.totals)? {
                self.counts.errors += 1;
                let parent = if failure.parent.is_empty() { "the root" } else { &failure.parent };
                warnings.push(format!("the weights of the groups below {parent} stay as they are: {}", failure.error));
            }
        }
        let mut changes = Vec::new();
        if self.isolated_updates < MAX_ISOLATED_UPDATES {
            self.write(&mut changes, &mut warnings);
        } else {
            // Afterwards nothing is written that would have to be restored: what is left is tried again.
            let is_first = self.isolated_updates == MAX_ISOLATED_UPDATES;
            if is_first || !self.unrestored.is_empty() {
                let left = std::mem::take(&mut self.unrestored);
                let released = self.restore(|path| is_first || left.contains(path));
                warnings.extend(released.failed);
                self.unrestored = released.left;
            }
            warnings.push(match self.unrestored.len() {
                0 => "no other node is reachable: all groups have their earlier settings until one is".into(),
                number => format!(
                    "no other node is reachable: {} to be restored to earlier settings, which the next update tries again",
                    counted(number, "group is still", "groups are still")
                ),
            });
        }
        self.counts.changes += changes.len() as u64;
        let new_warnings = warnings.iter().filter(|warning| !self.warnings.contains(warning)).cloned().collect();
        self.warnings = warnings;
        self.counts.update_s = begun.elapsed().as_secs_f64();
        self.counts.update_cpu_s = thread_cpu_time().saturating_sub(cpu_before).as_secs_f64();
        Ok(Update {
            changes,
            workloads: self.workloads.iter().len(),
            users: self.totals.users.len(),
            nodes: self.totals.nodes.iter().filter(|node| node.state == NodeState::Fresh).count(),
            new_warnings,
            why_nothing: self.parts.discovery.why_nothing(),
        })
    }

    /// Refreshes the list of workloads. Returns whether it changed.
    fn refresh_workloads(&mut self, warnings: &mut Vec<String>) -> Result<bool, AgentError> {
        let snapshot = self.parts.discovery.refresh();
        warnings.extend(snapshot.warnings.iter().map(ToString::to_string));
        let mut access = MachineAccess {
            meter: &mut *self.parts.meter,
            enforcer: &mut *self.parts.enforcer,
            loads: &mut self.loads,
            journal: self.parts.journal.as_ref(),
            identity: &self.parts.identity,
        };
        // In most updates nothing changes, and all workloads were admitted.
        let same = snapshot.added.is_empty() && snapshot.changed.is_empty() && snapshot.removed.is_empty();
        let refreshed = if same && self.workloads.iter().len() == snapshot.workloads.len() {
            Ok(false)
        } else {
            self.workloads.replace(&snapshot.workloads, &mut self.previous, &mut access, warnings)
        };
        let refreshed = match refreshed {
            Ok(false) => self.workloads.retry(&mut self.previous, &mut access, warnings).map(|()| false),
            other => other,
        };
        // Also without a journal that can be written, as on a full disk: restoring needs none.
        let forgotten = self.restore_previous(warnings);
        let changed = refreshed?;
        forgotten?;
        Ok(changed)
    }

    /// Restores the groups that an earlier run or update changed and that are no longer workloads. What cannot be restored, or
    /// is still in the journal, is tried again by the next update and at the end.
    fn restore_previous(&mut self, warnings: &mut Vec<String>) -> Result<(), JournalError> {
        let mut restored = Vec::new();
        for (path, entry) in &self.previous {
            match restore_entry(&mut *self.parts.enforcer, &self.parts.identity, entry) {
                Ok(_) => restored.push(path.clone()),
                Err(error) => warn(warnings, &error),
            }
        }
        if let Some(journal) = &self.parts.journal {
            journal.forget(restored.iter().map(String::as_str))?;
        }
        restored.iter().for_each(|path| _ = self.previous.remove(path));
        Ok(())
    }

    /// Measures the loads. Returns whether a workload has ended meanwhile.
    fn measure_loads(&mut self, at: Duration, warnings: &mut Vec<String>) -> bool {
        let supply = &self.parts.settings.supply;
        let mut gone = Vec::new();
        for admitted in self.workloads.iter_mut() {
            match self.parts.meter.read(admitted.id) {
                Ok(usage) => {
                    let reading = self.loads.update(admitted.id, at, usage);
                    self.counts.backwards += u64::from(reading.backwards.is_some());
                    // A resource of unknown supply cannot be divided, here or by other nodes.
                    admitted.load = Load::from_fn(|r| if supply[r] > 0.0 { reading.load[r] } else { 0.0 });
                }
                Err(KernelError::Gone(_)) => gone.push(admitted.workload.group.path.clone()),
                Err(error) => {
                    self.counts.errors += 1;
                    warn(warnings, &error);
                }
            }
        }
        let mut access = MachineAccess {
            meter: &mut *self.parts.meter,
            enforcer: &mut *self.parts.enforcer,
            loads: &mut self.loads,
            journal: None,
            identity: &self.parts.identity,
        };
        // The next refresh removes their journal entries, or restores a group that only lost a device.
        for path in &gone {
            let entry = self.workloads.remove(path, &mut access).and_then(AdmittedWorkload::into_entry);
            self.previous.extend(entry.map(|entry| (path.clone(), entry)));
        }
        !gone.is_empty()
    }

    /// Writes the targets of all workloads.
    fn write(&mut self, changes: &mut Vec<Change>, warnings: &mut Vec<String>) {
        let targets = self.targets();
        for (admitted, targets) in self.workloads.iter().zip(&targets) {
            if admitted.saved.is_none() {
                continue;
            }
            match self.parts.enforcer.apply(admitted.id, targets, changes) {
                Ok(()) | Err(KernelError::Gone(_)) => {}
                Err(error) => {
                    self.counts.errors += 1;
                    warn(warnings, &error);
                }
            }
        }
        if let Err(error) = self.parts.enforcer.flush() {
            self.counts.errors += 1;
            warn(warnings, &error);
        }
        changes.iter().for_each(|change| self.workloads.record(change));
    }

    fn targets(&self) -> Vec<Targets> {
        let ControlSection { law, controls: resources, protected, .. } = &self.parts.control;
        if *law == Law::Linear {
            let linear = |(index, admitted): (usize, &AdmittedWorkload)| {
                linear_targets(|range| self.round.linear_value(index, range), admitted.memory(), resources)
            };
            return self.workloads.iter().enumerate().map(linear).collect();
        }
        let weights: Vec<f64> = self.round.outcomes().map(|outcome| outcome.weight).collect();
        let mut targets: Vec<Targets> = weights.iter().map(|weight| weight_targets(*weight, resources)).collect();
        if resources.contains(&Resource::Memory) && *protected > 0.0 {
            let claim = |(admitted, weight): (&AdmittedWorkload, &f64)| MemoryClaim {
                weight: *weight,
                size: admitted.memory(),
            };
            let claims: Vec<MemoryClaim> = self.workloads.iter().zip(&weights).map(claim).collect();
            let total = protected * self.parts.settings.supply.memory;
            let bytes = protected_memory(total, &claims);
            targets.iter_mut().zip(bytes).for_each(|(targets, bytes)| targets.memory = Some(bytes as f64));
        }
        targets
    }

    /// Restores all groups that this run of the agent or an earlier one changed. The agent may continue afterwards.
    pub fn release(&mut self) -> Released {
        let mut released = self.restore(|_| true);
        let paths = self.workloads.iter().map(|admitted| admitted.workload.group.path.as_str());
        let done = paths.chain(self.previous.keys().map(String::as_str));
        let done: Vec<&str> = done.filter(|path| !released.left.contains(*path)).collect();
        if let Some(Err(error)) = self.parts.journal.as_ref().map(|journal| journal.forget(done)) {
            released.failed.push(error.to_string());
        }
        released
    }

    /// Restores the groups whose paths are chosen, and keeps their entries in the journal.
    fn restore(&mut self, is_chosen: impl Fn(&str) -> bool) -> Released {
        let mut released = Released::default();
        let previous = self.previous.values().map(|entry| (entry.clone(), None));
        let admitted = self.workloads.iter().filter_map(|admitted| Some((admitted.entry()?, Some(admitted.id))));
        for (entry, id) in previous.chain(admitted).filter(|(entry, _)| is_chosen(&entry.group.path)) {
            let group = &entry.group;
            released.add(&entry, restore_entry(&mut *self.parts.enforcer, &self.parts.identity, &entry));
            // The enforcer has to read the restored settings. If that fails, the next update reports it.
            if let Some(id) = id {
                self.parts.enforcer.dismiss(id);
                let _ = self.parts.enforcer.admit(id, group);
            }
        }
        if let Err(error) = self.parts.enforcer.flush() {
            released.failed.push(error.to_string());
        }
        let restored = self.workloads.iter_mut().filter(|admitted| is_chosen(&admitted.workload.group.path));
        restored.for_each(|admitted| admitted.written = PerResource::default());
        released
    }
}

/// Restores a group, or what is left of it where only its group in the main hierarchy has ended. Returns whether it has not.
pub(crate) fn restore_entry(
    enforcer: &mut dyn Enforcer,
    identity: impl Fn(&str) -> Option<u64>,
    entry: &Entry,
) -> Result<bool, KernelError> {
    // A new group of the same path was never changed.
    if identity(&entry.group.path) == Some(entry.identity) {
        return enforcer.restore(&entry.group, &entry.saved).map(|()| true);
    }
    enforcer.restore_remains(&entry.group, &entry.saved).map(|()| false)
}

fn shared_name_warning(shared: &SharedName) -> String {
    let addresses: Vec<String> = shared.addresses.iter().map(ToString::to_string).collect();
    format!(
        "several nodes have the name {}, at {}: only what the one that started last reports counts; give each a name of its own: \
         [node] name",
        shared.name,
        addresses.join(" and ")
    )
}

/// Returns the CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Computes the digest of settings on which nodes must agree: FNV-1a over the texts, each with its length.
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for text in texts {
        (text.len() as u64).to_le_bytes().into_iter().chain(text.bytes()).for_each(&mut add);
    }
    hash
}
