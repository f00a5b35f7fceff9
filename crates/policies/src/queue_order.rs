//! The order in which a policy would start the pending jobs, given what has started and finished before.
//!
//! A live engine asks another question than a simulator: not what happens next, but which rank each job of the queue
//! has. [`order`] answers it by virtual filling: it notifies the policy of past starts and finishes, takes its choice,
//! notifies it that the choice has started, and asks again. It does not consider what fits: the engine starts what fits,
//! in this order.
//!
//! The answer depends on the arguments alone. A caller that keeps a queue in order asks anew each time, with what has
//! become known since, so there is no state to lose or to go stale.
//!
//! ```
//! use evenhand_model::*;
//! use evenhand_policies::queue_order::{PendingJob, StartedJob, order};
//! use evenhand_policies::{PolicyContext, Registry};
//! let resources = [Resource::new("cpu", "")];
//! let capacity = Capacity::new(&resources, vec![Rational::from(8)]).unwrap();
//! let weights = Weights::equal(2);
//! let mut drf = Registry::built_in().build("drf", &PolicyContext::new(&capacity, &weights)).unwrap();
//!
//! let (ann, bob, now) = (UserId(0), UserId(1), Time::from_secs(100));
//! let started = [StartedJob { started: Time::from_secs(50), ..StartedJob::new(ann, vec![Amount(2)]) }];
//! let job = |user| PendingJob::new(user, vec![Amount(1)]);
//! let ranks = order(drf.as_mut(), &started, &[job(ann), job(bob), job(bob), job(bob)], now, 10);
//! // Bob until he holds as much as Ann; then they tie, and the job that stands first in the queue goes first.
//! assert_eq!(ranks.iter().map(|rank| rank.job).collect::<Vec<_>>(), [1, 2, 0, 3]);
//! ```
use crate::{Job, LogPlace, Policy, Standing};
use evenhand_model::{Amount, Span, Time, UserId};

/// A job that has started, and may have finished.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedJob {
    /// The job.
    pub job: PendingJob,
    /// When it started.
    pub started: Time,
    /// When it finished; `None`: it is running.
    pub ended: Option<Time>,
}

impl StartedJob {
    /// Creates a job that has been running since time 0.
    pub fn new(user: UserId, demand: Vec<Amount>) -> StartedJob {
        StartedJob { job: PendingJob::new(user, demand), started: Time::ZERO, ended: None }
    }
}

/// A pending job, or a job array whose tasks are equal and start one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingJob {
    /// The user that submitted it.
    pub user: UserId,
    /// When it was submitted, and its number on the engine.
    pub place: LogPlace,
    /// What each task holds of each resource, in steps of [`Amount`].
    pub demand: Vec<Amount>,
    /// The number of machines on which each task runs at once.
    pub chunks: u32,
    /// Its queue, as an index of [`PolicyContext::queues`](crate::PolicyContext::queues).
    pub queue: Option<u32>,
    /// Its quality of service, as an index of [`PolicyContext::qos`](crate::PolicyContext::qos).
    pub qos: Option<u32>,
    /// The nodes for which each task asks, if that is known.
    pub nodes: Option<u32>,
    /// By how much its user lowers its priority.
    pub nice: i64,
    /// The requested wall time of each task.
    pub requested: Span,
    /// The factor of the charge for a second ([`Job::rate`]).
    pub rate: f64,
    /// The number of tasks.
    pub tasks: u64,
}

impl PendingJob {
    /// Creates one task of one chunk in no queue, at rate 1.
    pub fn new(user: UserId, demand: Vec<Amount>) -> PendingJob {
        PendingJob {
            user,
            place: LogPlace::default(),
            demand,
            chunks: 1,
            queue: None,
            qos: None,
            nodes: None,
            nice: 0,
            requested: Span::ZERO,
            rate: 1.0,
            tasks: 1,
        }
    }

    fn as_job(&self) -> Job<'_> {
        Job {
            place: self.place,
            chunks: self.chunks,
            queue: self.queue,
            qos: self.qos,
            nodes: self.nodes,
            nice: self.nice,
            requested: self.requested,
            rate: self.rate,
            ..Job::new(self.user, &self.demand)
        }
    }
}

/// The rank of one pending job in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// The job, as an index of the pending jobs.
    pub job: usize,
    /// Its user's standing when it was chosen.
    pub standing: Standing,
    /// The number of tasks chosen before it; tasks of arrays count one by one.
    pub before: u64,
}

/// The largest number of tasks of one array that are chosen; what follows them would not start soon.
const MAX_TASKS: u64 = 10_000;

/// Returns the first `depth` ranks of the order in which `policy`, which must be newly built, would start `pending` at
/// `now`. The jobs of one user start in the order given. An array has the rank of its first task.
///
/// A start after `now` counts from `now` on; a job that took no time does not count.
pub fn order(
    policy: &mut dyn Policy,
    started: &[StartedJob],
    pending: &[PendingJob],
    now: Time,
    depth: usize,
) -> Vec<Rank> {
    replay_past(policy, started, now);
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (at, job) in pending.iter().enumerate().rev() {
        let user = job.user.index();
        if rows.len() <= user {
            rows.resize_with(user + 1, Vec::new);
        }
        // Reversed: the last entry is the user's first job.
        rows[user].push(at);
    }
    for row in &rows {
        if let Some(first) = row.last().map(|at| pending[*at].as_job()) {
            policy.set_first_pending(first.user, Some(&first));
        }
    }
    let mut ranks: Vec<Rank> = Vec::new();
    let mut taken = vec![0u64; pending.len()];
    let mut before = 0;
    while ranks.len() < depth {
        let Some(user) = policy.next(now) else { break };
        let row = &mut rows[user.index()];
        let Some(&job) = row.last() else { break };
        let next = pending[job].as_job();
        if taken[job] == 0 {
            ranks.push(Rank { job, standing: policy.standing(now, user), before });
        }
        policy.started(now, &Job { started: now, ..next });
        before += 1;
        taken[job] += 1;
        if taken[job] >= pending[job].tasks.min(MAX_TASKS) {
            row.pop();
        }
        let first = row.last().map(|at| pending[*at].as_job());
        policy.set_first_pending(user, first.as_ref());
    }
    ranks
}

/// Notifies the policy of past starts and finishes, in the order in which they happened; at one instant, finishes first.
fn replay_past(policy: &mut dyn Policy, past: &[StartedJob], now: Time) {
    let mut events: Vec<(Time, bool, usize)> = Vec::with_capacity(2 * past.len());
    for (at, job) in past.iter().enumerate() {
        let ended = job.ended.filter(|end| *end <= now);
        if ended.is_none_or(|end| end > job.started) {
            events.push((job.started.min(now), true, at));
            events.extend(ended.map(|end| (end, false, at)));
        }
    }
    events.sort_unstable();
    for (time, starts, at) in events {
        let StartedJob { job, started, .. } = &past[at];
        let job = Job { started: (*started).min(now), ..job.as_job() };
        if starts { policy.started(time, &job) } else { policy.finished(time, &job) }
    }
}
