//! What is known of a site at an instant, and how it is read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use evenhand_model::{Span, Time, to_f64};
use evenhand_slurm::{
    Accounts, Commands, Configuration, Coordinators, Counted, FinishedJob, Job, JobState, Node, Nodes, Priorities,
    Queue, ReadError, ShareTable, WhyRecord,
};
use serde::Serialize;

/// How long what changes slowly is kept: the configuration, the accounts, the jobs that ended.
const SLOW_INTERVAL: Span = Span::from_secs(600);

/// The window of "this week".
pub(crate) const WEEK: Span = Span::from_secs(7 * 86_400);

/// How many answers are kept until the next snapshot; one has some 30 kB.
const KEPT_ANSWERS: usize = 1000;

/// A site at an instant. Visitors are shown parts of it, never more than they may see.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was read.
    pub read_at: Time,
    /// The queue.
    pub queue: Queue,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The priorities of waiting jobs.
    pub priorities: Priorities,
    /// The tree of shares with its usage.
    pub shares: ShareTable,
    /// What changes slowly.
    pub slow: Arc<SlowPart>,
    /// What could not be read, in sentences.
    pub notes: Vec<String>,
    /// What was computed from it for earlier visitors.
    pub computed: Computed,
}

/// CPU seconds of each user in each account.
pub(crate) type CpuSeconds = BTreeMap<(String, String), f64>;

/// CPU seconds in the week before a snapshot.
#[derive(Debug)]
pub(crate) struct RecentUse {
    pub(crate) week: CpuSeconds,
    /// When each day begins, and what was used in it; the oldest first.
    pub(crate) days: [(Time, CpuSeconds); 7],
}

/// What follows from a snapshot alone and several visitors ask for: computed once, at the first question.
#[derive(Debug, Default)]
pub struct Computed {
    recent_use: OnceLock<RecentUse>,
    /// The answers to `why`, by job, for visitors who see all jobs.
    why: Mutex<HashMap<String, WhyRecord>>,
}

impl Clone for Computed {
    /// A copy may be changed, so it begins anew.
    fn clone(&self) -> Computed {
        Computed::default()
    }
}

/// What is read every ten minutes.
#[derive(Clone, Debug, Default)]
pub struct SlowPart {
    /// The configuration; none if it could not be read, and then everything of others is hidden.
    pub configuration: Option<Configuration>,
    /// Each user with account, and the part of the whole to which the shares of all accounts entitle.
    pub entitlements: BTreeMap<(String, String), f64>,
    /// Which users coordinate which accounts; nobody, if that could not be read.
    pub coordinators: Coordinators,
    /// Jobs that ended, over the whole history.
    pub ended: Vec<FinishedJob>,
    /// What could not be read, in sentences.
    pub notes: Vec<String>,
}

/// Reads a site.
pub trait SiteReader: Send {
    /// Reads the site once.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be read. What else is missing is noted in the snapshot.
    fn read(&mut self, now: Time) -> Result<Snapshot, ReadError>;
}

/// Reads a site by Slurm's commands.
pub struct SlurmSite {
    commands: Box<dyn Commands + Send>,
    history: Span,
    slow: Option<(Time, Arc<SlowPart>)>,
}

impl SlurmSite {
    /// Reads by these commands, with the jobs that ended within `history`.
    pub fn new(commands: Box<dyn Commands + Send>, history: Span) -> SlurmSite {
        SlurmSite { commands, history, slow: None }
    }

    fn slow_part(&mut self, now: Time) -> Arc<SlowPart> {
        if let Some((at, slow)) = &self.slow
            && now.since(*at) < SLOW_INTERVAL
        {
            return Arc::clone(slow);
        }
        let commands = self.commands.as_ref();
        let mut notes = Vec::new();
        let configuration = or_note(Configuration::read(commands), "It is not known what the site hides", &mut notes);
        let cluster = configuration.as_ref().and_then(|c| c.cluster().map(String::from));
        let accounts = or_note(Accounts::read(commands, cluster.as_deref()), "Entitlements are not known", &mut notes);
        // Without accounting there are no coordinators, and the line on entitlements says so.
        let coordinators = accounts.is_some().then(|| Coordinators::read(commands));
        let coordinators = coordinators.and_then(|read| or_note(read, "Coordinators are not known", &mut notes));
        let from = now.saturating_sub(self.history.max(WEEK));
        let ended = or_note(FinishedJob::read(commands, from, now, true), "Jobs that ended are not known", &mut notes);
        let slow = Arc::new(SlowPart {
            configuration,
            entitlements: accounts.map(|accounts| entitlements(&accounts)).unwrap_or_default(),
            coordinators: coordinators.unwrap_or_default(),
            ended: distinct(ended.unwrap_or_default()),
            notes,
        });
        self.slow = Some((now, Arc::clone(&slow)));
        slow
    }
}

/// A requeued job may be listed twice.
fn distinct(mut ended: Vec<FinishedJob>) -> Vec<FinishedJob> {
    let mut seen = HashSet::new();
    ended.retain(|job| seen.insert((job.id, job.start)));
    ended
}

fn entitlements(accounts: &Accounts) -> BTreeMap<(String, String), f64> {
    let Ok(leaves) = accounts.association_tree() else { return BTreeMap::new() };
    let all = leaves.users.into_iter().enumerate();
    all.map(|(at, (user, account))| ((account, user), to_f64(leaves.tree.user_entitlement(at)))).collect()
}

impl SiteReader for SlurmSite {
    fn read(&mut self, now: Time) -> Result<Snapshot, ReadError> {
        // First the queue: where the controller is away, one command waits for it and not five.
        let queue = Queue::read(self.commands.as_ref())?;
        let nodes = Nodes::read(self.commands.as_ref())?.nodes;
        let slow = self.slow_part(now);
        let mut notes = Vec::new();
        let priorities = or_note(
            Priorities::read_with_factors(self.commands.as_ref()),
            "The factors of priorities are not known",
            &mut notes,
        );
        let shares = or_note(ShareTable::read(self.commands.as_ref(), true), "Usage is not known", &mut notes);
        Ok(Snapshot {
            read_at: now,
            queue,
            nodes,
            priorities: priorities.unwrap_or_default(),
            shares: shares.unwrap_or_default(),
            slow,
            notes,
            computed: Computed::default(),
        })
    }
}

fn or_note<T>(read: Result<T, ReadError>, without: &str, notes: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| notes.push(format!("{without}: {error}."))).ok()
}

/// The nodes in few numbers; nodes that may come later are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeCounts {
    /// All nodes.
    pub nodes: usize,
    /// Those that are down or drained.
    pub unavailable: usize,
    /// The CPUs of all nodes.
    pub cpus: u64,
    /// The CPUs that jobs hold.
    pub cpus_allocated: u64,
}

/// Returns how many jobs wait for each of Slurm's reasons; each task of an array counts.
pub fn waiting_by_reason<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> BTreeMap<&'a str, u64> {
    let mut reasons = BTreeMap::new();
    for job in jobs.into_iter().filter(|job| job.state == JobState::Pending) {
        *reasons.entry(job.reason()).or_default() += job.tasks();
    }
    reasons
}

impl Snapshot {
    /// Returns the nodes in few numbers.
    pub fn node_counts(&self) -> NodeCounts {
        let mut counts = NodeCounts::default();
        for node in self.nodes.iter().filter(|node| !node.is_future()) {
            counts.nodes += 1;
            counts.unavailable += usize::from(node.is_unavailable());
            counts.cpus += node.cpus;
            counts.cpus_allocated += node.allocated_cpus;
        }
        counts
    }

    /// Returns which resources are counted where starts are planned or forecast.
    pub(crate) fn counted(&self) -> Counted {
        Counted::of(&self.nodes, self.slow.configuration.as_ref())
    }

    /// Returns the kinds of data that the site hides; everything, if that is not known.
    pub(crate) fn hides(&self, kind: &str) -> bool {
        let configuration = self.slow.configuration.as_ref();
        configuration
            .is_none_or(|c| c.private_data().iter().any(|word| word.eq_ignore_ascii_case(kind) || *word == "all"))
    }

    /// Returns a setting of the site.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.slow.configuration.as_ref()?.get(name)
    }

    /// Returns what each user used in the week before.
    pub(crate) fn recent_use(&self) -> &RecentUse {
        self.computed.recent_use.get_or_init(|| {
            let running = self.running_only();
            let day = |ago: u64| {
                let to = self.read_at.saturating_sub(Span::from_secs(86_400 * ago));
                let from = to.saturating_sub(Span::from_secs(86_400));
                (from, self.cpu_seconds(&running, from, to))
            };
            let week = self.cpu_seconds(&running, self.read_at.saturating_sub(WEEK), self.read_at);
            RecentUse { week, days: [6, 5, 4, 3, 2, 1, 0].map(day) }
        })
    }

    /// Returns the answer that `compute` gives to visitors who see all jobs.
    pub(crate) fn why<E>(&self, job: &str, compute: impl FnOnce() -> Result<WhyRecord, E>) -> Result<WhyRecord, E> {
        let known = || self.computed.why.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = known().get(job) {
            return Ok(record.clone());
        }
        // Without the lock: others need not wait for this job.
        let record = compute()?;
        let mut known = known();
        if known.len() < KEPT_ANSWERS {
            known.insert(job.to_string(), record.clone());
        }
        Ok(record)
    }

    /// Returns the running jobs that are not among those that ended, with their starts: a job that completes is in both.
    fn running_only(&self) -> Vec<(&Job, Time)> {
        let ended: HashSet<(u64, Time)> = self.slow.ended.iter().map(|job| (job.id, job.start)).collect();
        let running = self.queue.running().filter_map(|job| Some((job, job.start?)));
        running.filter(|(job, start)| !ended.contains(&(job.id, *start))).collect()
    }

    /// Returns the CPU seconds of each user in each account between two times, of ended and of running jobs.
    fn cpu_seconds(&self, running: &[(&Job, Time)], from: Time, to: Time) -> CpuSeconds {
        let mut used = CpuSeconds::new();
        let mut add = |account: Option<&str>, user: &str, start: Time, end: Time, cpus: u64| {
            let (start, end) = (start.max(from), end.min(to));
            if end > start {
                let key = (account.unwrap_or("-").to_string(), user.to_string());
                *used.entry(key).or_default() += end.since(start).secs_f64() * cpus as f64;
            }
        };
        for job in &self.slow.ended {
            add(job.account.as_deref(), &job.user, job.start, job.end, job.held.cpus());
        }
        for (job, start) in running {
            add(job.account.as_deref(), &job.user, *start, self.read_at, cpus_of(job));
        }
        used
    }
}

/// The CPUs of a job, or of each task of an array.
pub(crate) fn cpus_of(job: &Job) -> u64 {
    job.cpus.unwrap_or_else(|| job.requested.cpus())
}
