//! Updates the order of the queue repeatedly: in each step reads the site, plans, and writes the site factors that
//! change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use evenhand_model::{Span, Time};
use thiserror::Error;

use super::assign_site_factors::{RankedJob, SiteFactorChange, assign_site_factors};
use super::saved_state::{SavedState, SavedStateError};
use super::write_site_factors::{WriteOutcome, is_known, write};
use super::written_factor::{Look, Owner, Shown, WrittenFactor, update_id};
use crate::associations::Accounts;
use crate::configuration::Configuration;
use crate::error::ReadError;
use crate::finished_job::FinishedJob;
use crate::nodes::Nodes;
use crate::partitions::{Partition, Partitions};
use crate::plan::{Plan, PlanError, PlanOptions, SiteSnapshot};
use crate::priorities::Priorities;
use crate::queue::{Job, Queue};
use crate::run_commands::{CommandError, Commands, FailureKind, beginning};
use crate::site_files::Qos;

/// Options of a [`Driver`].
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// The policy, and how many places of the order are maintained.
    pub plan: PlanOptions,
    /// Whether to write site factors; otherwise a dry run.
    pub apply: bool,
    /// The maximum number of changes in one step; the first places of the order have precedence.
    pub max_changes: usize,
    /// How long finished jobs count after their end.
    pub history: Span,
    /// The cluster's name in accounting, if it has one.
    pub cluster: Option<String>,
    /// Slurm's configuration, from which a policy that models Slurm takes its defaults.
    pub configuration: Option<Configuration>,
}

/// Why a step failed.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The site cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The state cannot be saved.
    #[error(transparent)]
    SavedState(#[from] SavedStateError),
    /// The user may not change site factors.
    #[error("{0}. Site factors need AdminLevel Operator: sacctmgr modify user NAME set AdminLevel=Operator")]
    Denied(CommandError),
}

impl DriveError {
    /// Returns whether a later attempt may succeed, since a daemon does not respond.
    pub fn is_transient(&self) -> bool {
        match self {
            DriveError::Read(ReadError::Command(error)) => {
                matches!(
                    error,
                    CommandError::TimedOut { .. } | CommandError::Failed { kind: FailureKind::Unreachable, .. }
                )
            }
            _ => false,
        }
    }
}

/// The result of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TickOutcome {
    /// The number of waiting records.
    pub waiting: usize,
    /// The number of running records.
    pub running: usize,
    /// The plan with the order.
    pub plan: Option<Plan>,
    /// The changes written, or in a dry run those that would be.
    pub changes: Vec<SiteFactorChange>,
    /// The number of changes deferred to the next step.
    pub deferred: usize,
    /// Slurm's message if it rejected changes.
    pub rejection: Option<String>,
    /// The number of jobs that no longer wait and have their old site factor again.
    pub put_back: usize,
    /// The number of jobs whose priority or site factor was set by others; they are not changed.
    pub set_by_others: usize,
    /// Why accounting cannot be read, if so. Finished jobs are then known only from differences of the queue.
    pub accounting_error: Option<String>,
}

/// The result of [`Driver::release`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseOutcome {
    /// The number of jobs that have their old site factor again.
    pub jobs: usize,
    /// The number of jobs that have ended with a site factor of this program. Slurm refuses to change them, and they stay in
    /// the saved state until it has forgotten them, since until then they can be requeued.
    pub ended: usize,
    /// Slurm's message if it rejected changes of jobs that have not ended.
    pub rejection: Option<String>,
}

/// Keeps a site's queue in order.
pub struct Driver<'a> {
    commands: &'a dyn Commands,
    store: &'a SavedState,
    options: DriveOptions,
    /// Finished jobs by start and id.
    finished: Vec<FinishedJob>,
    read_until: Option<Time>,
    /// Jobs that ran in the last step, for sites without accounting.
    running: HashMap<u64, FinishedJob>,
    partitions: Vec<Partition>,
    accounts: Option<Accounts>,
    qos: Vec<Qos>,
    /// The time at which partitions and accounts were read.
    settings_read: Option<Time>,
    /// After how long they are read again, if accounting did not respond then.
    settings_retry: Option<Span>,
    /// Jobs whose priority was set by an administrator.
    pinned: HashSet<u64>,
    /// Jobs to which this process has written a site factor that Slurm accepted.
    accepted: HashSet<u64>,
    /// What the saved state holds about jobs.
    written: BTreeMap<u64, WrittenFactor>,
    /// Of those, jobs whose site factor was another's at the last look.
    set_by_others: HashSet<u64>,
    /// The time of the last attempt to put a job back that did not succeed.
    attempted: HashMap<u64, Time>,
}

/// The overlap of successive reads of accounting, which jobs reach with a delay.
const OVERLAP: Span = Span::from_secs(120);
/// The interval between attempts to put a job back that Slurm does not show or has ended: it is asked whether it still
/// knows the job.
const ATTEMPT_INTERVAL: Span = Span::from_secs(60);
/// The number of jobs that are put back one by one in a step if Slurm's message about all does not tell which it means.
const ASKED_ALONE: usize = 10;
/// The largest number of changes in one command at the end: about half a second's work of a controller, so that a deadline
/// in between leaves little undone.
const RELEASED_AT_ONCE: usize = 250;
/// The longest time that a service that drives a queue takes to end: to stop the command that runs, and to restore site
/// factors. A service manager has to wait longer than this before it kills the process.
pub const EXIT_LIMIT: Duration = Duration::from_secs(10);
/// The time limit of a command while a service drives a queue.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Returns the longest time from one report of a service that drives a queue to the next, with this interval between two
/// updates: the interval, and a command, and as much again for the order, which is computed between two commands.
pub fn longest_silence(interval: Duration) -> Duration {
    2 * (interval + COMMAND_LIMIT)
}
/// The interval at which partitions and accounts are read again, since they seldom change.
const SETTINGS_INTERVAL: Span = Span::from_secs(300);
/// The interval after which they are read again if accounting did not respond. It doubles with each failure up to
/// [`SETTINGS_INTERVAL`]: without shares all users count the same, but a site without accounting never responds.
const SETTINGS_RETRY: Span = Span::from_secs(5);

impl<'a> Driver<'a> {
    /// Creates a driver that continues from the saved state.
    ///
    /// # Errors
    /// Returns an error if the saved state cannot be read.
    pub fn new(
        commands: &'a dyn Commands,
        store: &'a SavedState,
        options: DriveOptions,
    ) -> Result<Driver<'a>, SavedStateError> {
        let mut finished = store.finished_jobs()?;
        finished.sort_by_key(sort_key);
        let read_until = store.read_until()?;
        let written = store.written()?;
        Ok(Driver {
            commands,
            store,
            options,
            finished,
            read_until,
            running: HashMap::new(),
            partitions: Vec::new(),
            accounts: None,
            qos: Vec::new(),
            settings_read: None,
            settings_retry: None,
            pinned: HashSet::new(),
            accepted: HashSet::new(),
            written,
            set_by_others: HashSet::new(),
            attempted: HashMap::new(),
        })
    }

    /// Runs all further commands by `commands`, such as ones that must end before a deadline.
    pub fn use_commands(&mut self, commands: &'a dyn Commands) {
        self.commands = commands;
    }

    /// Performs one step: reads finished and waiting jobs, computes the order, and writes the site factors that change.
    ///
    /// # Errors
    /// Returns an error if the site cannot be read or the order cannot be computed, where nothing was written; or if Slurm or the
    /// saved state fails while site factors are written: what was written is in the saved state.
    pub fn tick(&mut self, now: Time) -> Result<TickOutcome, DriveError> {
        self.read_settings(now)?;
        // Accounting first: a job that ends in between is in neither, and found in the next step.
        let accounting = self.read_accounting(now)?;
        let queue = Queue::read(self.commands)?;
        let priorities = Priorities::read(self.commands)?;
        let nodes = Nodes::read(self.commands)?.nodes;
        if accounting.is_some() {
            self.compare_queue(&queue, now)?;
        } else {
            // When it fails again, these have ended at times that it knew.
            self.running.clear();
        }
        let site = SiteSnapshot {
            nodes: &nodes,
            partitions: &self.partitions,
            accounts: self.accounts.as_ref(),
            queue: &queue,
            qos: &self.qos,
            ended: &self.finished,
            configuration: self.options.configuration.as_ref(),
        };
        let plan = Plan::new(&site, &self.options.plan, now)?;
        let look = Look::new(&queue, &priorities);
        let mut outcome = TickOutcome {
            waiting: queue.pending().count(),
            running: queue.running().count(),
            accounting_error: accounting,
            ..TickOutcome::default()
        };
        self.pinned.retain(|id| look.waits(*id));
        self.accepted.retain(|id| look.waits(*id));
        let restored = self.learn(&look);
        let mut order: Vec<RankedJob> = Vec::new();
        let mut placed: HashSet<u64> = HashSet::new();
        for place in &plan.places {
            let job = &queue.jobs[place.job];
            let id = update_id(job);
            let Some(shown) = look.of(id).filter(|_| placed.insert(id)) else { continue };
            if self.is_set_by_others(id, job, shown) {
                outcome.set_by_others += 1;
            } else if !shown.factors.is_empty() {
                // Records that differ get a new value.
                order.push(RankedJob { job: id, now: shown.factor().unwrap_or(0) });
            }
        }
        let mut changes = assign_site_factors(&order);
        // Jobs that no longer have a place, but still a site factor.
        for (id, factor) in &self.written {
            let is_ours = |shown: &Shown| shown.waits && factor.owner(shown) == Owner::Ours;
            if !placed.contains(id) && !self.pinned.contains(id) && look.of(*id).is_some_and(is_ours) {
                changes.push(SiteFactorChange { job: *id, value: factor.original });
            }
        }
        let put_back = self.no_longer_wait(&look, now);
        outcome.deferred = (changes.len() + put_back.len()).saturating_sub(self.options.max_changes);
        changes.truncate(self.options.max_changes);
        if self.options.apply {
            let all: Vec<SiteFactorChange> =
                changes.iter().chain(&put_back).take(self.options.max_changes).copied().collect();
            let mut written = self.write(&all, &look, restored)?;
            let put_back = &all[changes.len()..];
            if written.is_unclear {
                for change in put_back.iter().take(ASKED_ALONE) {
                    written.resolve(change.job, &self.write(std::slice::from_ref(change), &look, Vec::new())?);
                }
            }
            outcome.put_back = put_back.iter().filter(|change| written.is_accepted(change.job)).count();
            self.attempted.extend(put_back.iter().map(|change| (change.job, now)));
            // Of jobs, and of tasks of an array, that ended meanwhile the next step reads the present state.
            outcome.rejection = written
                .message
                .filter(|_| written.is_unclear || !written.rejected.is_empty())
                .map(|message| beginning(&message).to_owned());
            self.forget_unknown(&look, now)?;
        }
        self.attempted.retain(|id, _| self.written.contains_key(id));
        outcome.changes = changes;
        outcome.plan = Some(plan);
        Ok(outcome)
    }

    /// Updates what is known of written jobs by a look. Returns the jobs that need not be restored: those that have their
    /// original site factor again, or another's.
    fn learn(&mut self, look: &Look) -> Vec<u64> {
        let mut restored = Vec::new();
        for (id, factor) in &self.written {
            let Some(shown) = look.of(*id) else { continue };
            let owner = factor.owner(shown);
            // A task of the array that runs may still have what this program wrote.
            let is_whole = shown.running_priority.is_none() && !shown.factors.is_empty();
            if is_whole && matches!(owner, Owner::Original | Owner::Others) {
                restored.push(*id);
                self.set_by_others.remove(id);
            } else if owner == Owner::Others {
                self.set_by_others.insert(*id);
            } else if owner != Owner::Unknown {
                self.set_by_others.remove(id);
            }
        }
        restored
    }

    /// Returns the changes that put back written jobs of which no record waits: they run, have ended, or are missing in
    /// this look. A site factor has no effect then, but it would come back with a requeue.
    fn no_longer_wait(&self, look: &Look, now: Time) -> Vec<SiteFactorChange> {
        let due = |id: &u64| self.attempted.get(id).is_none_or(|at| is_due(now, *at, ATTEMPT_INTERVAL));
        let of = self.written.iter().filter(|(id, _)| {
            let others = self.set_by_others.contains(id);
            !others && !look.waits(**id) && due(id)
        });
        of.map(|(id, factor)| SiteFactorChange { job: *id, value: factor.original }).collect()
    }

    /// Asks whether Slurm still knows jobs that are not put back because they had another's site factor when they ran, and
    /// that no look shows any more.
    fn forget_unknown(&mut self, look: &Look, now: Time) -> Result<(), DriveError> {
        let due = |id: &u64| self.attempted.get(id).is_none_or(|at| is_due(now, *at, ATTEMPT_INTERVAL));
        let missing = self.set_by_others.iter().copied().filter(|id| look.of(*id).is_none() && due(id));
        for id in missing.take(ASKED_ALONE).collect::<Vec<_>>() {
            self.attempted.insert(id, now);
            if !is_known(self.commands, id)? {
                self.written.remove(&id);
                self.set_by_others.remove(&id);
                self.store.update_written([], [id])?;
            }
        }
        Ok(())
    }

    /// Saves what is about to be written, writes it, and keeps what Slurm made of it.
    fn write(
        &mut self,
        changes: &[SiteFactorChange],
        look: &Look,
        restored: Vec<u64>,
    ) -> Result<WriteOutcome, DriveError> {
        for id in &restored {
            self.written.remove(id);
        }
        for SiteFactorChange { job, value } in changes {
            let shown = look.of(*job).and_then(Shown::factor);
            let factor = self.written.remove(job);
            let factor = factor.unwrap_or(WrittenFactor { original: shown.unwrap_or(0), values: Vec::new() });
            self.written.insert(*job, factor.attempted(*value));
        }
        let of = |change: &SiteFactorChange| Some((change.job, self.written.get(&change.job)?));
        self.store.update_written(changes.iter().filter_map(of), restored)?;
        let outcome = write(self.commands, changes)?;
        let mut removed = Vec::new();
        for SiteFactorChange { job, value } in changes {
            let Some(factor) = self.written.get_mut(job) else { continue };
            let is_restored = outcome.is_accepted(*job) && *value == factor.original;
            if is_restored || outcome.is_unknown(*job) {
                self.written.remove(job);
                self.accepted.remove(job);
                self.set_by_others.remove(job);
                removed.push(*job);
            } else if outcome.is_accepted(*job) {
                factor.values = vec![*value];
                self.accepted.insert(*job);
            }
        }
        self.store.update_written([], removed)?;
        Ok(outcome)
    }

    /// Restores the site factor of every job that still has one of this program, whether it waits, runs or is not shown.
    ///
    /// If Slurm does not answer queries, site factors are restored by what the last look has shown; what another program
    /// set since then is lost in that case.
    ///
    /// # Errors
    /// Returns an error if Slurm does not accept changes or the state cannot be saved. What was not restored stays in the
    /// saved state.
    pub fn release(&mut self) -> Result<ReleaseOutcome, DriveError> {
        let mut outcome = ReleaseOutcome::default();
        if self.written.is_empty() {
            return Ok(outcome);
        }
        let look = Queue::read(self.commands).and_then(|queue| Ok((queue, Priorities::read(self.commands)?)));
        let look = match look {
            Ok((queue, priorities)) => Look::new(&queue, &priorities),
            Err(_) => Look::new(&Queue::default(), &Priorities::default()),
        };
        let mut restored = self.learn(&look);
        let is_ours = |id: &u64| !restored.contains(id) && !self.set_by_others.contains(id);
        let back: Vec<SiteFactorChange> = self
            .written
            .iter()
            .filter(|(id, _)| is_ours(id))
            .map(|(id, factor)| SiteFactorChange { job: *id, value: factor.original })
            .collect();
        if back.is_empty() {
            self.write(&[], &look, std::mem::take(&mut restored))?;
        }
        for part in back.chunks(RELEASED_AT_ONCE) {
            let written = self.write(part, &look, std::mem::take(&mut restored))?;
            outcome.jobs += part.iter().filter(|change| written.is_accepted(change.job)).count();
            outcome.ended += written.ended.len();
            if written.is_unclear || !written.rejected.is_empty() {
                outcome.rejection = written.message.map(|message| beginning(&message).to_owned());
            }
        }
        Ok(outcome)
    }

    fn read_settings(&mut self, now: Time) -> Result<(), DriveError> {
        let interval = self.settings_retry.unwrap_or(SETTINGS_INTERVAL);
        if self.settings_read.is_some_and(|at| !is_due(now, at, interval)) {
            return Ok(());
        }
        self.partitions = Partitions::read(self.commands)?.partitions;
        // Without accounting all users have equal shares; known accounts are kept.
        let accounts = Accounts::read(self.commands, self.options.cluster.as_deref());
        let mut has_failed = accounts.is_err();
        if let Ok(accounts) = accounts {
            self.accounts = Some(accounts).filter(|a| !a.associations.is_empty());
        }
        if self.options.configuration.as_ref().is_some_and(Configuration::counts_qos) {
            match Qos::read(self.commands) {
                Ok(qos) => self.qos = qos,
                Err(_) => has_failed = true,
            }
        }
        let doubled = |last: Span| Span::from_nanos(2 * last.nanos()).min(SETTINGS_INTERVAL);
        self.settings_retry = has_failed.then(|| self.settings_retry.map_or(SETTINGS_RETRY, doubled));
        self.settings_read = Some(now);
        Ok(())
    }

    /// Reads jobs that finished since the last step. Returns the error if there is no accounting.
    fn read_accounting(&mut self, now: Time) -> Result<Option<String>, DriveError> {
        let oldest = now.saturating_sub(self.options.history);
        // The clock may have been set back since.
        let from = self.read_until.map_or(oldest, |until| until.min(now).saturating_sub(OVERLAP).max(oldest));
        match FinishedJob::read(self.commands, from, now, true) {
            Ok(ended) => {
                self.remember(ended, now, Some(now))?;
                self.read_until = Some(now);
                Ok(None)
            }
            Err(ReadError::Command(error)) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Without accounting, jobs that ran in the last step and are no longer in the queue have ended by now, and those that are being
    /// completed at the time that the queue shows.
    fn compare_queue(&mut self, queue: &Queue, now: Time) -> Result<(), DriveError> {
        let (running, completing): (Vec<&Job>, Vec<&Job>) = queue.running().partition(|job| job.runs());
        let queued: HashSet<u64> = queue.running().map(|job| job.id).collect();
        let gone = self.running.drain().filter(|(id, _)| !queued.contains(id));
        let gone = gone.map(|(_, job)| FinishedJob { end: now.max(job.start), ..job });
        let of_queue = completing.iter().map(|job| FinishedJob::of_queue(job, job.ended(now).unwrap_or(now)));
        let ended: Vec<FinishedJob> = gone.chain(of_queue).collect();
        self.running = running.iter().map(|job| (job.id, FinishedJob::of_queue(job, now))).collect();
        // What accounting has of this time is read once it answers, also by the next run.
        self.remember(ended, now, None)
    }

    /// Adds new finished jobs and removes those that are too old to count, here and in the saved state.
    fn remember(
        &mut self,
        mut finished: Vec<FinishedJob>,
        now: Time,
        read_until: Option<Time>,
    ) -> Result<(), DriveError> {
        finished.retain(|job| {
            self.finished.binary_search_by_key(&sort_key(job), sort_key).map_or(true, |at| self.finished[at] != *job)
        });
        let oldest = now.saturating_sub(self.options.history);
        let forgotten: Vec<FinishedJob> = self.finished.extract_if(.., |job| job.end < oldest).collect();
        self.store.update_finished_jobs(&finished, &forgotten, read_until)?;
        self.finished.extend(finished);
        // Of the same job the last version counts; the sort is stable.
        self.finished.sort_by_key(sort_key);
        self.finished.dedup_by(|later, earlier| {
            let same = sort_key(later) == sort_key(earlier);
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Ok(())
    }

    /// Returns whether another user set the job's site factor or its whole priority.
    fn is_set_by_others(&mut self, id: u64, job: &Job, shown: &Shown) -> bool {
        let owner = match self.written.get(&id) {
            Some(factor) => factor.owner(shown),
            None if shown.factors.iter().all(|factor| *factor == 0) => Owner::Original,
            None => Owner::Others,
        };
        if owner == Owner::Others {
            return true;
        }
        // Setting a whole priority removes the site factor; so does removing only that.
        if owner == Owner::Original && self.accepted.contains(&id) {
            self.pinned.insert(id);
        }
        // A priority that was set does not follow the site factor; otherwise it is at least the site factor minus nice.
        let has = shown.factor().unwrap_or(0);
        let min = has.saturating_sub(job.nice.unwrap_or(0).max(0));
        let priority = job.priority.map_or(i64::MAX, |p| i64::try_from(p).unwrap_or(i64::MAX));
        if has > 0 && priority < min {
            self.pinned.insert(id);
        }
        self.pinned.contains(&id)
    }
}

/// Returns whether an interval has passed since `last`. Also if `last` is in the future, since the clock was set back then.
fn is_due(now: Time, last: Time, interval: Span) -> bool {
    now < last || now.since(last) >= interval
}

/// Returns the sort key of a finished job.
fn sort_key(job: &FinishedJob) -> (Time, u64) {
    (job.start, job.id)
}
