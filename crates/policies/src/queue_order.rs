//! In which order a policy would start the jobs that wait now, given what ran before.
//!
//! A live engine asks another question than a simulator: not what happens next, but who stands where in the
//! queue. [`order`] answers it by virtual filling: the policy is told what ran, chooses, is told that its choice
//! has started, and chooses again. Nothing is said of what fits: the engine starts what fits, in this order.
//!
//! The answer depends on its arguments alone. Whoever keeps a queue in order asks anew each time with what has
//! become known since, so there is no state to lose or to go stale here.
//!
//! ```
//! use evenhand_model::*;
//! use evenhand_policies::queue_order::{Ran, Waits, order};
//! use evenhand_policies::{Setting, registration};
//! let resources = [Resource::new("cpu", "")];
//! let capacity = Capacity::new(&resources, vec![Rational::from(8)]).unwrap();
//! let weights = Weights::equal(2);
//! let mut drf = (registration("drf").unwrap().build)(&Setting::new(&capacity, &weights));
//!
//! let (ann, bob, now) = (UserId(0), UserId(1), Time::from_secs(100));
//! let ran = [Ran { started: Time::from_secs(50), ..Ran::new(ann, vec![Amount(2)]) }];
//! let job = |user| Waits::new(user, vec![Amount(1)]);
//! let turns = order(drf.as_mut(), &ran, &[job(ann), job(bob), job(bob), job(bob)], now, 10);
//! // Bob until he holds as much as Ann; then they tie, and the smaller number goes.
//! assert_eq!(turns.iter().map(|t| t.job).collect::<Vec<_>>(), [1, 2, 0, 3]);
//! ```
use crate::{Job, Policy, Standing};
use evenhand_model::{Amount, Span, Time, UserId};

/// A job that has started.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// What it is.
    pub job: Waits,
    /// When it started.
    pub started: Time,
    /// When it ended; `None`: it runs.
    pub ended: Option<Time>,
}

impl Ran {
    /// A job that has run since the beginning of time.
    pub fn new(user: UserId, demand: Vec<Amount>) -> Ran {
        Ran { job: Waits::new(user, demand), started: Time::ZERO, ended: None }
    }
}

/// A job, or several that are alike and not to be parted.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// Whose it is.
    pub user: UserId,
    /// When it was submitted.
    pub submitted: Time,
    /// What each task holds, in steps.
    pub demand: Vec<Amount>,
    /// On how many machines each runs at once.
    pub chunks: u32,
    /// Its queue, as the policy knows it.
    pub queue: Option<u32>,
    /// The wall time each asks for.
    pub requested: Span,
    /// What a second is charged at ([`Job::rate`]).
    pub rate: f64,
    /// How many there are.
    pub tasks: u64,
}

impl Waits {
    /// One task of one chunk in no queue, at rate 1.
    pub fn new(user: UserId, demand: Vec<Amount>) -> Waits {
        Waits {
            user,
            submitted: Time::ZERO,
            demand,
            chunks: 1,
            queue: None,
            requested: Span::ZERO,
            rate: 1.0,
            tasks: 1,
        }
    }

    fn seen(&self) -> Job<'_> {
        Job {
            submitted: self.submitted,
            chunks: self.chunks,
            queue: self.queue,
            requested: self.requested,
            rate: self.rate,
            ..Job::new(self.user, &self.demand)
        }
    }
}

/// One place in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Which of the waiting jobs.
    pub job: usize,
    /// What its user's standing was when it was chosen.
    pub standing: Standing,
    /// How many tasks were chosen before it: those of arrays in their turn count one by one.
    pub before: u64,
}

/// Tasks of one record that are chosen before it counts as gone: what is behind it is far from its turn.
const MOST_TASKS: u64 = 10_000;

/// The first `most` places in the order in which `policy`, which was told nothing yet, would start `waits` at
/// `now`. The jobs of one user start in the order given. Several tasks that are not to be parted have the place
/// of the first.
///
/// What started after `now` counts from `now` on; what took no time, not at all.
pub fn order(policy: &mut dyn Policy, ran: &[Ran], waits: &[Waits], now: Time, most: usize) -> Vec<Turn> {
    tell(policy, ran, now);
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (at, job) in waits.iter().enumerate().rev() {
        let user = job.user.index();
        if rows.len() <= user {
            rows.resize_with(user + 1, Vec::new);
        }
        // The last is the first of the user's.
        rows[user].push(at);
    }
    for row in &rows {
        if let Some(first) = row.last().map(|at| waits[*at].seen()) {
            policy.waiting(first.user, Some(&first));
        }
    }
    let mut turns: Vec<Turn> = Vec::new();
    let mut taken = vec![0u64; waits.len()];
    let mut before = 0;
    while turns.len() < most {
        let Some(user) = policy.next(now) else { break };
        let row = &mut rows[user.index()];
        let Some(&job) = row.last() else { break };
        let seen = waits[job].seen();
        if taken[job] == 0 {
            turns.push(Turn { job, standing: policy.standing(now, user), before });
        }
        policy.started(now, &Job { started: now, ..seen });
        before += 1;
        taken[job] += 1;
        if taken[job] >= waits[job].tasks.min(MOST_TASKS) {
            row.pop();
        }
        let first = row.last().map(|at| waits[*at].seen());
        policy.waiting(user, first.as_ref());
    }
    turns
}

/// Tells what ran, in the order in which it happened; at one instant first what ended.
fn tell(policy: &mut dyn Policy, ran: &[Ran], now: Time) {
    let mut events: Vec<(Time, bool, usize)> = Vec::with_capacity(2 * ran.len());
    for (at, ran) in ran.iter().enumerate() {
        let ended = ran.ended.filter(|end| *end <= now);
        if ended.is_none_or(|end| end > ran.started) {
            events.push((ran.started.min(now), true, at));
            events.extend(ended.map(|end| (end, false, at)));
        }
    }
    events.sort_unstable();
    for (time, starts, at) in events {
        let Ran { job, started, .. } = &ran[at];
        let job = Job { started: (*started).min(now), ..job.seen() };
        if starts { policy.started(time, &job) } else { policy.finished(time, &job) }
    }
}
