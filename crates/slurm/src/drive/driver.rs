//! One look at the queue after another, each time the policy's order written anew.

use std::collections::{BTreeMap, HashMap, HashSet};

use evenhand_model::{Span, Time};
use thiserror::Error;

use super::ranks::{Assigned, Ranks, assign};
use super::store::{Store, StoreError, Written};
use crate::accounts::Accounts;
use crate::commands::{Call, CommandError, Commands, Complaint};
use crate::configuration::Configuration;
use crate::ended::Ended;
use crate::error::ReadError;
use crate::nodes::Nodes;
use crate::partitions::{Partition, Partitions};
use crate::plan::{Plan, PlanError, PlanOptions, SiteSnapshot};
use crate::priorities::Priorities;
use crate::queue::{Job, JobState, Queue};

/// How a queue is kept in order.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// By which policy, and how many places.
    pub plan: PlanOptions,
    /// Whether anything is written; else it is only computed.
    pub apply: bool,
    /// The most changes one look may write, the first places first.
    pub most_changes: usize,
    /// How far back what ended counts.
    pub memory: Span,
    /// The cluster's name in accounting, if it has one.
    pub cluster: Option<String>,
    /// How Slurm itself is configured: a policy that models Slurm takes its defaults from it.
    pub configuration: Option<Configuration>,
}

/// Why a look did not do its work.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The site cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no order.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What is to survive cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Site factors may not be changed.
    #[error("{0}. Site factors need AdminLevel Operator: sacctmgr modify user NAME set AdminLevel=Operator")]
    Denied(CommandError),
}

impl DriveError {
    /// Whether trying again later makes sense: somebody does not answer.
    pub fn may_pass(&self) -> bool {
        match self {
            DriveError::Read(ReadError::Command(error)) => {
                matches!(
                    error,
                    CommandError::Late { .. } | CommandError::Failed { complaint: Complaint::Unreachable, .. }
                )
            }
            _ => false,
        }
    }
}

/// What one look found and did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tick {
    /// Jobs that wait, records of them.
    pub waiting: usize,
    /// Jobs that run.
    pub running: usize,
    /// The order.
    pub plan: Option<Plan>,
    /// What was changed, or would be.
    pub changes: Vec<Assigned>,
    /// Changes left for the next look.
    pub left: usize,
    /// Changes that Slurm refused, in its words.
    pub refused: Option<String>,
    /// Jobs that are left alone since somebody else set their priority or site factor.
    pub left_alone: usize,
    /// Why what ended is known by looking at the queue only, if so.
    pub without_accounting: Option<String>,
}

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Jobs that have the site factor 0 again.
    pub jobs: usize,
    /// What Slurm said against it.
    pub refused: Option<String>,
}

/// Keeps a site's queue in order.
pub struct Driver<'a> {
    commands: &'a dyn Commands,
    store: &'a Store,
    options: DriveOptions,
    /// What ended, by start and number.
    ended: Vec<Ended>,
    read_until: Option<Time>,
    /// What ran at the last look, for sites without accounting.
    running: HashMap<u64, Ended>,
    partitions: Vec<Partition>,
    accounts: Option<Accounts>,
    /// When partitions and accounts were read.
    settings_read: Option<Time>,
    /// Jobs whose priority an administrator set.
    pinned: HashSet<u64>,
    /// Jobs that this process gave a site factor, which Slurm took.
    given: HashSet<u64>,
}

/// Accounting is read again for so long before the last time: jobs reach it late.
const OVERLAP: Span = Span::from_secs(120);
/// Partitions and accounts seldom change.
const SETTINGS_HOLD: Span = Span::from_secs(300);

impl<'a> Driver<'a> {
    /// With what an earlier one left in the store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn new(commands: &'a dyn Commands, store: &'a Store, options: DriveOptions) -> Result<Driver<'a>, StoreError> {
        let mut ended = store.ended()?;
        ended.sort_by_key(place);
        let read_until = store.read_until()?;
        Ok(Driver {
            commands,
            store,
            options,
            ended,
            read_until,
            running: HashMap::new(),
            partitions: Vec::new(),
            accounts: None,
            settings_read: None,
            pinned: HashSet::new(),
            given: HashSet::new(),
        })
    }

    /// Looks once: reads what ended and what waits, computes the order, and writes what changed of it.
    ///
    /// # Errors
    /// If the site cannot be read or the order not be computed; then nothing was written.
    pub fn tick(&mut self, now: Time) -> Result<Tick, DriveError> {
        self.settings(now)?;
        // Accounting first: what ends in between is in neither, and known next time.
        let accounting = self.follow_accounting(now)?;
        let queue = Queue::read(self.commands)?;
        let priorities = Priorities::read(self.commands)?;
        let nodes = Nodes::read(self.commands)?.nodes;
        if accounting.is_some() {
            self.follow_queue(&queue, now)?;
        }
        let site = SiteSnapshot {
            nodes: &nodes,
            partitions: &self.partitions,
            accounts: self.accounts.as_ref(),
            queue: &queue,
            ended: &self.ended,
            configuration: self.options.configuration.as_ref(),
        };
        let plan = Plan::new(&site, &self.options.plan, now)?;
        let written = self.store.written()?;
        let mut tick = Tick {
            waiting: queue.pending().count(),
            running: queue.running().count(),
            without_accounting: accounting,
            ..Tick::default()
        };
        let waiting: BTreeMap<u64, &Job> = queue.pending().map(|job| (number(job), job)).collect();
        let site_factor = |id: u64| priorities.jobs.get(&id).map(|p| p.site_factor);
        self.pinned.retain(|id| waiting.contains_key(id));
        self.given.retain(|id| waiting.contains_key(id));
        let mut order: Vec<Ranks> = Vec::new();
        let mut placed: HashSet<u64> = HashSet::new();
        for place in &plan.places {
            let job = &queue.jobs[place.job];
            let id = number(job);
            let has = site_factor(id).unwrap_or(0);
            if placed.contains(&id) {
                continue;
            }
            if self.is_anothers(id, job, has, written.get(&id)) {
                tick.left_alone += 1;
                continue;
            }
            placed.insert(id);
            order.push(Ranks { job: id, now: has });
        }
        let mut changes = assign(&order);
        // What has a place no more, and a value still.
        for (id, given) in &written {
            let ours = [given.before, given.value];
            if waiting.contains_key(id) && !placed.contains(id) && !self.pinned.contains(id) {
                let has = site_factor(*id).unwrap_or(given.value);
                if has != 0 && ours.contains(&has) {
                    changes.push(Assigned { job: *id, value: 0 });
                }
            }
        }
        tick.left = changes.len().saturating_sub(self.options.most_changes);
        changes.truncate(self.options.most_changes);
        if self.options.apply {
            let keeps = |id: &u64| waiting.contains_key(id);
            let mut intent: BTreeMap<u64, Written> = written.into_iter().filter(|(id, _)| keeps(id)).collect();
            for change in &changes {
                let before = site_factor(change.job).unwrap_or(0);
                intent.insert(change.job, Written { before, value: change.value });
            }
            self.store.set_written(&intent)?;
            tick.refused = self.write(&changes)?;
            for change in changes.iter().filter(|_| tick.refused.is_none()) {
                if change.value == 0 {
                    self.given.remove(&change.job)
                } else {
                    self.given.insert(change.job)
                };
            }
        }
        tick.changes = changes;
        tick.plan = Some(plan);
        Ok(tick)
    }

    /// Puts back what was written: the site factor of every job that still waits with a value of ours is 0 again.
    ///
    /// # Errors
    /// If the site cannot be read or the store not be written.
    pub fn release(&mut self) -> Result<Released, DriveError> {
        let written = self.store.written()?;
        if written.is_empty() {
            return Ok(Released::default());
        }
        let queue = Queue::read(self.commands)?;
        let priorities = Priorities::read(self.commands)?;
        let waiting: HashSet<u64> = queue.pending().map(number).collect();
        let ours = |priorities: &Priorities, unseen_too: bool| -> Vec<Assigned> {
            let is_ours = |(id, given): &(&u64, &Written)| {
                // Of held jobs no factor is shown: what was given counts.
                let unseen = if unseen_too { given.value } else { 0 };
                let has = priorities.jobs.get(*id).map_or(unseen, |p| p.site_factor);
                waiting.contains(*id) && has != 0 && [given.before, given.value].contains(&has)
            };
            written.iter().filter(is_ours).map(|(id, _)| Assigned { job: *id, value: 0 }).collect()
        };
        let back = ours(&priorities, true);
        let mut refused = self.write(&back)?;
        // Tasks of an array that are over are refused beside those that wait: what counts is what is left.
        if refused.is_some() && ours(&Priorities::read(self.commands)?, false).is_empty() {
            refused = None;
        }
        if refused.is_none() {
            self.store.set_written(&BTreeMap::new())?;
        }
        Ok(Released { jobs: back.len(), refused })
    }

    fn settings(&mut self, now: Time) -> Result<(), DriveError> {
        if self.settings_read.is_some_and(|at| now.since(at) < SETTINGS_HOLD) {
            return Ok(());
        }
        self.partitions = Partitions::read(self.commands)?.partitions;
        // Without accounting everybody has the same share; what was known stays known.
        if let Ok(accounts) = Accounts::read(self.commands, self.options.cluster.as_deref()) {
            self.accounts = Some(accounts).filter(|a| !a.associations.is_empty());
        }
        self.settings_read = Some(now);
        Ok(())
    }

    /// Reads what ended since; why not, if there is no accounting.
    fn follow_accounting(&mut self, now: Time) -> Result<Option<String>, DriveError> {
        let oldest = now.saturating_sub(self.options.memory);
        let from = self.read_until.map_or(oldest, |until| until.saturating_sub(OVERLAP).max(oldest));
        match Ended::read(self.commands, from, now, true) {
            Ok(ended) => {
                self.remember(ended, now, now)?;
                self.read_until = Some(now);
                Ok(None)
            }
            Err(ReadError::Command(error)) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Without accounting: what ran at the last look and runs no more has ended by now.
    fn follow_queue(&mut self, queue: &Queue, now: Time) -> Result<(), DriveError> {
        let running: HashMap<u64, Ended> = queue.running().map(|job| (job.id, ended_now(job, now))).collect();
        let gone = self.running.drain().filter(|(id, _)| !running.contains_key(id));
        let gone: Vec<Ended> = gone.map(|(_, job)| Ended { end: now.max(job.start), ..job }).collect();
        self.running = running;
        self.remember(gone, now, now.saturating_sub(OVERLAP))
    }

    /// Keeps what is new of jobs that ended, forgets what is too old to count, here and in the store.
    fn remember(&mut self, mut ended: Vec<Ended>, now: Time, read_until: Time) -> Result<(), DriveError> {
        ended.retain(|job| {
            self.ended.binary_search_by_key(&place(job), place).map_or(true, |at| self.ended[at] != *job)
        });
        let oldest = now.saturating_sub(self.options.memory);
        let forgotten: Vec<Ended> = self.ended.extract_if(.., |job| job.end < oldest).collect();
        self.store.change_ended(&ended, &forgotten, read_until)?;
        self.ended.extend(ended);
        // Of the same job what was read last counts; the sort keeps their order.
        self.ended.sort_by_key(place);
        self.ended.dedup_by(|later, earlier| {
            let same = place(later) == place(earlier);
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Ok(())
    }

    /// Whether somebody else set the job's site factor, or its whole priority.
    fn is_anothers(&mut self, id: u64, job: &Job, has: i64, given: Option<&Written>) -> bool {
        if has != 0 && given.is_none_or(|g| ![g.before, g.value].contains(&has)) {
            return true;
        }
        // Who sets a whole priority takes the site factor away; so does who takes just that away.
        if has == 0 && self.given.contains(&id) {
            self.pinned.insert(id);
        }
        // A priority that was set does not move with the site factor; else it is at least that, less nice.
        let least = has.saturating_sub(job.nice.unwrap_or(0).max(0));
        let priority = job.priority.map_or(i64::MAX, |p| i64::try_from(p).unwrap_or(i64::MAX));
        if has > 0 && priority < least {
            self.pinned.insert(id);
        }
        self.pinned.contains(&id)
    }

    /// One command for all changes; what it says if some failed.
    fn write(&self, changes: &[Assigned]) -> Result<Option<String>, DriveError> {
        if changes.is_empty() {
            return Ok(None);
        }
        let line = |c: &Assigned| format!("update JobId={} SiteFactor={}\n", c.job, c.value);
        let call =
            Call { input: Some(changes.iter().map(line).collect()), ..Call::new("scontrol", Vec::<String>::new()) };
        match self.commands.run(&call) {
            Ok(_) => Ok(None),
            Err(error @ CommandError::Failed { complaint: Complaint::Denied, .. }) => Err(DriveError::Denied(error)),
            // Jobs that started or ended meanwhile among them: the next look sees what is.
            Err(CommandError::Failed { said, complaint: Complaint::Other, .. }) => Ok(Some(said)),
            Err(error) => Err(ReadError::Command(error).into()),
        }
    }
}

/// The number by which a record is changed whole: of an array's waiting tasks the array's.
fn number(job: &Job) -> u64 {
    match &job.array {
        Some(array) if job.state == JobState::Pending && array.tasks.count() > 1 => array.job,
        _ => job.id,
    }
}

/// A job's place among those that ended.
fn place(job: &Ended) -> (Time, u64) {
    (job.start, job.id)
}

fn ended_now(job: &Job, now: Time) -> Ended {
    let start = job.start.unwrap_or(now).min(now);
    Ended {
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
