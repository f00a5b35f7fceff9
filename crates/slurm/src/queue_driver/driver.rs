//! Updates the order of the queue repeatedly: in each step reads the site, plans, and writes the site factors that change.

use std::collections::{BTreeMap, HashMap, HashSet};

use evenhand_model::{Span, Time};
use thiserror::Error;

use super::assign_site_factors::{RankedJob, SiteFactorChange, assign_site_factors};
use super::saved_state::{SavedState, SavedStateError, WrittenFactor};
use crate::associations::Accounts;
use crate::configuration::Configuration;
use crate::error::ReadError;
use crate::finished_job::FinishedJob;
use crate::nodes::Nodes;
use crate::partitions::{Partition, Partitions};
use crate::plan::{Plan, PlanError, PlanOptions, SiteSnapshot};
use crate::priorities::Priorities;
use crate::queue::{Job, JobState, Queue};
use crate::run_commands::{Call, CommandError, Commands, FailureKind};

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
    /// How Slurm itself is configured: a policy that models Slurm takes its defaults from it.
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
    /// The number of jobs whose priority or site factor was set by others; they are not changed.
    pub set_by_others: usize,
    /// Why accounting cannot be read, if so. Finished jobs are then known only from differences of the queue.
    pub accounting_error: Option<String>,
}

/// The result of [`Driver::release`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseOutcome {
    /// The number of jobs whose site factor is 0 again.
    pub jobs: usize,
    /// Slurm's message if it rejected changes.
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
    /// The time at which partitions and accounts were read.
    settings_read: Option<Time>,
    /// Jobs whose priority was set by an administrator.
    pinned: HashSet<u64>,
    /// Jobs to which this process has written a site factor that Slurm accepted.
    written: HashSet<u64>,
}

/// The overlap of successive reads of accounting, which jobs reach with a delay.
const OVERLAP: Span = Span::from_secs(120);
/// The interval at which partitions and accounts are read again, since they seldom change.
const SETTINGS_INTERVAL: Span = Span::from_secs(300);

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
        Ok(Driver {
            commands,
            store,
            options,
            finished,
            read_until,
            running: HashMap::new(),
            partitions: Vec::new(),
            accounts: None,
            settings_read: None,
            pinned: HashSet::new(),
            written: HashSet::new(),
        })
    }

    /// Performs one step: reads finished and waiting jobs, computes the order, and writes the site factors that change.
    ///
    /// # Errors
    /// Returns an error if the site cannot be read or the order cannot be computed; then nothing was written.
    pub fn tick(&mut self, now: Time) -> Result<TickOutcome, DriveError> {
        self.read_settings(now)?;
        // Accounting first: a job that ends in between is in neither, and found in the next step.
        let accounting = self.read_accounting(now)?;
        let queue = Queue::read(self.commands)?;
        let priorities = Priorities::read(self.commands)?;
        let nodes = Nodes::read(self.commands)?.nodes;
        if accounting.is_some() {
            self.compare_queue(&queue, now)?;
        }
        let site = SiteSnapshot {
            nodes: &nodes,
            partitions: &self.partitions,
            accounts: self.accounts.as_ref(),
            queue: &queue,
            ended: &self.finished,
            configuration: self.options.configuration.as_ref(),
        };
        let plan = Plan::new(&site, &self.options.plan, now)?;
        let written = self.store.written()?;
        let mut outcome = TickOutcome {
            waiting: queue.pending().count(),
            running: queue.running().count(),
            accounting_error: accounting,
            ..TickOutcome::default()
        };
        let waiting: BTreeMap<u64, &Job> = queue.pending().map(|job| (update_id(job), job)).collect();
        let site_factor = |id: u64| priorities.jobs.get(&id).map(|p| p.site_factor);
        self.pinned.retain(|id| waiting.contains_key(id));
        self.written.retain(|id| waiting.contains_key(id));
        let mut order: Vec<RankedJob> = Vec::new();
        let mut placed: HashSet<u64> = HashSet::new();
        for place in &plan.places {
            let job = &queue.jobs[place.job];
            let id = update_id(job);
            let has = site_factor(id).unwrap_or(0);
            if placed.contains(&id) {
                continue;
            }
            if self.is_set_by_others(id, job, has, written.get(&id)) {
                outcome.set_by_others += 1;
                continue;
            }
            placed.insert(id);
            order.push(RankedJob { job: id, now: has });
        }
        let mut changes = assign_site_factors(&order);
        // Jobs that no longer have a place, but still a site factor.
        for (id, given) in &written {
            let ours = [given.before, given.value];
            if waiting.contains_key(id) && !placed.contains(id) && !self.pinned.contains(id) {
                let has = site_factor(*id).unwrap_or(given.value);
                if has != 0 && ours.contains(&has) {
                    changes.push(SiteFactorChange { job: *id, value: 0 });
                }
            }
        }
        outcome.deferred = changes.len().saturating_sub(self.options.max_changes);
        changes.truncate(self.options.max_changes);
        if self.options.apply {
            let keeps = |id: &u64| waiting.contains_key(id);
            let mut intent: BTreeMap<u64, WrittenFactor> = written.into_iter().filter(|(id, _)| keeps(id)).collect();
            for change in &changes {
                let before = site_factor(change.job).unwrap_or(0);
                intent.insert(change.job, WrittenFactor { before, value: change.value });
            }
            self.store.set_written(&intent)?;
            outcome.rejection = self.write(&changes)?;
            for change in changes.iter().filter(|_| outcome.rejection.is_none()) {
                if change.value == 0 {
                    self.written.remove(&change.job)
                } else {
                    self.written.insert(change.job)
                };
            }
        }
        outcome.changes = changes;
        outcome.plan = Some(plan);
        Ok(outcome)
    }

    /// Sets the site factor of every job that still waits with a value of this program to 0.
    ///
    /// # Errors
    /// Returns an error if the site cannot be read or the state cannot be saved.
    pub fn release(&mut self) -> Result<ReleaseOutcome, DriveError> {
        let written = self.store.written()?;
        if written.is_empty() {
            return Ok(ReleaseOutcome::default());
        }
        let queue = Queue::read(self.commands)?;
        let priorities = Priorities::read(self.commands)?;
        let waiting: HashSet<u64> = queue.pending().map(update_id).collect();
        let ours = |priorities: &Priorities, unseen_too: bool| -> Vec<SiteFactorChange> {
            let is_ours = |(id, given): &(&u64, &WrittenFactor)| {
                // sprio does not show held jobs, so the value last written counts.
                let unseen = if unseen_too { given.value } else { 0 };
                let has = priorities.jobs.get(*id).map_or(unseen, |p| p.site_factor);
                waiting.contains(*id) && has != 0 && [given.before, given.value].contains(&has)
            };
            written.iter().filter(is_ours).map(|(id, _)| SiteFactorChange { job: *id, value: 0 }).collect()
        };
        let back = ours(&priorities, true);
        let mut rejection = self.write(&back)?;
        // Slurm rejects finished tasks of an array beside the waiting ones; what counts is which factors remain.
        if rejection.is_some() && ours(&Priorities::read(self.commands)?, false).is_empty() {
            rejection = None;
        }
        if rejection.is_none() {
            self.store.set_written(&BTreeMap::new())?;
        }
        Ok(ReleaseOutcome { jobs: back.len(), rejection })
    }

    fn read_settings(&mut self, now: Time) -> Result<(), DriveError> {
        if self.settings_read.is_some_and(|at| now.since(at) < SETTINGS_INTERVAL) {
            return Ok(());
        }
        self.partitions = Partitions::read(self.commands)?.partitions;
        // Without accounting all users have equal shares; known accounts are kept.
        if let Ok(accounts) = Accounts::read(self.commands, self.options.cluster.as_deref()) {
            self.accounts = Some(accounts).filter(|a| !a.associations.is_empty());
        }
        self.settings_read = Some(now);
        Ok(())
    }

    /// Reads jobs that finished since the last step. Returns the error if there is no accounting.
    fn read_accounting(&mut self, now: Time) -> Result<Option<String>, DriveError> {
        let oldest = now.saturating_sub(self.options.history);
        let from = self.read_until.map_or(oldest, |until| until.saturating_sub(OVERLAP).max(oldest));
        match FinishedJob::read(self.commands, from, now, true) {
            Ok(ended) => {
                self.remember(ended, now, now)?;
                self.read_until = Some(now);
                Ok(None)
            }
            Err(ReadError::Command(error)) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Without accounting, jobs that ran in the last step and no longer run have ended by now.
    fn compare_queue(&mut self, queue: &Queue, now: Time) -> Result<(), DriveError> {
        let running: HashMap<u64, FinishedJob> = queue.running().map(|job| (job.id, finished_now(job, now))).collect();
        let gone = self.running.drain().filter(|(id, _)| !running.contains_key(id));
        let gone: Vec<FinishedJob> = gone.map(|(_, job)| FinishedJob { end: now.max(job.start), ..job }).collect();
        self.running = running;
        self.remember(gone, now, now.saturating_sub(OVERLAP))
    }

    /// Adds new finished jobs and removes those that are too old to count, here and in the saved state.
    fn remember(&mut self, mut finished: Vec<FinishedJob>, now: Time, read_until: Time) -> Result<(), DriveError> {
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
    fn is_set_by_others(&mut self, id: u64, job: &Job, has: i64, given: Option<&WrittenFactor>) -> bool {
        if has != 0 && given.is_none_or(|g| ![g.before, g.value].contains(&has)) {
            return true;
        }
        // Setting a whole priority removes the site factor; so does removing only that.
        if has == 0 && self.written.contains(&id) {
            self.pinned.insert(id);
        }
        // A priority that was set does not follow the site factor; otherwise it is at least the site factor minus nice.
        let min = has.saturating_sub(job.nice.unwrap_or(0).max(0));
        let priority = job.priority.map_or(i64::MAX, |p| i64::try_from(p).unwrap_or(i64::MAX));
        if has > 0 && priority < min {
            self.pinned.insert(id);
        }
        self.pinned.contains(&id)
    }

    /// Writes all changes with one command. Returns Slurm's message if it rejected some.
    fn write(&self, changes: &[SiteFactorChange]) -> Result<Option<String>, DriveError> {
        if changes.is_empty() {
            return Ok(None);
        }
        let line = |c: &SiteFactorChange| format!("update JobId={} SiteFactor={}\n", c.job, c.value);
        let call =
            Call { input: Some(changes.iter().map(line).collect()), ..Call::new("scontrol", Vec::<String>::new()) };
        match self.commands.run(&call) {
            Ok(_) => Ok(None),
            Err(error @ CommandError::Failed { kind: FailureKind::Denied, .. }) => Err(DriveError::Denied(error)),
            // Some jobs have started or ended meanwhile; the next step reads the present state.
            Err(CommandError::Failed { message, kind: FailureKind::Other, .. }) => Ok(Some(message)),
            Err(error) => Err(ReadError::Command(error).into()),
        }
    }
}

/// Returns the job id by which a whole record is modified: for the waiting tasks of an array the array's.
fn update_id(job: &Job) -> u64 {
    match &job.array {
        Some(array) if job.state == JobState::Pending && array.tasks.count() > 1 => array.job,
        _ => job.id,
    }
}

/// Returns the sort key of a finished job.
fn sort_key(job: &FinishedJob) -> (Time, u64) {
    (job.start, job.id)
}

fn finished_now(job: &Job, now: Time) -> FinishedJob {
    let start = job.start.unwrap_or(now).min(now);
    FinishedJob {
        id: job.id,
        user: job.user.clone(),
        account: job.account.clone(),
        partition: job.partitions.first().cloned(),
        submit: job.submit.unwrap_or(start),
        start,
        end: now,
        limit: job.limit,
        held: job.requested.clone(),
        node_list: job.node_list.clone(),
    }
}
