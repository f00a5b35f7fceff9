//! The order of the queue: by the priorities of jobs, or by a policy that chooses among users.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use evenhand_model::{Time, UserId};
use evenhand_policies::{Job, Policy};

use super::super::pending_jobs::{NO_ROW, PendingJobs};
use crate::arrivals::SubmissionTimes;

/// The place of a job: the tier of its partition, its priority, the second of its submission, its row.
type Key = (u8, Reverse<u32>, u64, u32);

/// When rows were submitted, or began to wait again after a preemption.
pub(super) struct Times<'a> {
    pub(super) log: SubmissionTimes<'a>,
    pub(super) again: HashMap<u32, Time>,
}

impl Times<'_> {
    pub(super) fn of(&self, row: u32) -> Time {
        self.again.get(&row).copied().unwrap_or_else(|| self.log.of(row))
    }
}

/// The waiting jobs in order.
pub(super) enum Order {
    /// By priorities that the policy gives jobs.
    Priorities(Priorities),
    /// By users that the policy chooses; the jobs of a user in the order of submission.
    Users(Users),
}

#[derive(Default)]
pub(super) struct Priorities {
    waiting: BTreeSet<Key>,
    /// By row.
    key: Vec<Key>,
    /// The job after which a walk continues.
    after: Option<Key>,
}

#[derive(Default)]
pub(super) struct Users {
    /// The tier whose users the policy knows as pending.
    class: u8,
    /// The tier to which a walk has come.
    walk_class: u8,
    /// By user: the job that is next in a walk; [`NO_ROW`] if it is the first of the tier.
    next: Vec<u32>,
    touched: Vec<u32>,
}

impl Priorities {
    pub(super) fn new(rows: usize) -> Priorities {
        Priorities { key: vec![(0, Reverse(0), 0, 0); rows], ..Priorities::default() }
    }

    pub(super) fn insert(&mut self, row: u32, class: u8, priority: u32, submit: Time) {
        let key = (class, Reverse(priority), submit.nanos() / 1_000_000_000, row);
        self.key[row as usize] = key;
        self.waiting.insert(key);
    }

    pub(super) fn remove(&mut self, row: u32) {
        self.waiting.remove(&self.key[row as usize]);
    }

    pub(super) fn priority(&self, row: u32) -> u32 {
        self.key[row as usize].1.0
    }

    /// Gives each waiting job the priority that a function returns.
    pub(super) fn replace(&mut self, mut priority: impl FnMut(u32) -> u32) {
        let old = std::mem::take(&mut self.waiting);
        let new = |(class, _, submit, row): Key| (class, Reverse(priority(row)), submit, row);
        let mut keys: Vec<Key> = old.into_iter().map(new).collect();
        keys.sort_unstable();
        keys.iter().for_each(|key| self.key[key.3 as usize] = *key);
        self.waiting = keys.into_iter().collect();
    }

    /// The jobs of a higher tier, or of the same tier and a higher priority.
    pub(super) fn above(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let (class, priority, ..) = self.key[row as usize];
        self.waiting.range(..(class, priority, 0, 0)).map(|key| key.3)
    }

    pub(super) fn begin(&mut self) {
        self.after = None;
    }

    pub(super) fn next(&mut self) -> Option<u32> {
        let from = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        self.after = Some(*self.waiting.range((from, Bound::Unbounded)).next()?);
        self.after.map(|key| key.3)
    }
}

impl Users {
    pub(super) fn new(users: usize) -> Users {
        Users { next: vec![NO_ROW; users], ..Users::default() }
    }

    /// A submitted job that may be its user's first.
    pub(super) fn submitted<'a>(
        &mut self,
        row: u32,
        class: u8,
        user: u32,
        pending: &mut PendingJobs<'_>,
        policy: &mut dyn Policy,
        job: impl Fn(u32) -> Job<'a>,
    ) {
        if class == self.class && pending.first(class, user) == Some(row) {
            policy.set_first_pending(UserId(user), Some(&job(row)));
        }
    }

    pub(super) fn begin<'a>(
        &mut self,
        pending: &mut PendingJobs<'_>,
        policy: &mut dyn Policy,
        job: impl Fn(u32) -> Job<'a>,
    ) {
        let top = pending.top_class(0).unwrap_or(self.class);
        self.turn(top, pending, policy, job);
        self.walk_class = self.class;
    }

    /// Makes the users with jobs of a tier known to the policy.
    fn turn<'a>(
        &mut self,
        class: u8,
        pending: &mut PendingJobs<'_>,
        policy: &mut dyn Policy,
        job: impl Fn(u32) -> Job<'a>,
    ) {
        if class == self.class {
            return;
        }
        for user in 0..self.next.len() as u32 {
            let first = pending.first(class, user).map(&job);
            if first.is_some() || pending.first(self.class, user).is_some() {
                policy.set_first_pending(UserId(user), first.as_ref());
            }
        }
        self.class = class;
    }

    pub(super) fn next<'a>(
        &mut self,
        now: Time,
        pending: &mut PendingJobs<'_>,
        policy: &mut dyn Policy,
        job: impl Fn(u32) -> Job<'a>,
    ) -> Option<u32> {
        loop {
            if let Some(user) = policy.next(now) {
                let row = match self.next[user.index()] {
                    NO_ROW => {
                        self.touched.push(user.0);
                        pending.first(self.class, user.0)?
                    }
                    row => row,
                };
                let after = pending.after(self.class, user.0, row).next().map(|entry| entry.row);
                self.next[user.index()] = after.unwrap_or(row);
                policy.set_first_pending(user, after.map(&job).as_ref());
                return Some(row);
            }
            // All jobs of this tier have been walked: the users of the next one.
            self.restore_next();
            let lower = pending.top_class(self.class.checked_add(1)?)?;
            for user in 0..self.next.len() as u32 {
                if let Some(row) = pending.first(lower, user) {
                    policy.set_first_pending(UserId(user), Some(&job(row)));
                }
            }
            self.class = lower;
        }
    }

    /// Notes that a job of a user started outside a walk, so that the end of one makes its next job known.
    pub(super) fn started(&mut self, user: u32) {
        self.touched.push(user);
    }

    fn restore_next(&mut self) {
        for user in &self.touched {
            self.next[*user as usize] = NO_ROW;
        }
    }

    /// Ends a walk: the policy knows the first waiting job of each user again.
    pub(super) fn end<'a>(
        &mut self,
        pending: &mut PendingJobs<'_>,
        policy: &mut dyn Policy,
        job: impl Fn(u32) -> Job<'a>,
    ) {
        self.restore_next();
        if self.class == self.walk_class {
            for user in std::mem::take(&mut self.touched) {
                let first = pending.first(self.class, user).map(&job);
                policy.set_first_pending(UserId(user), first.as_ref());
            }
            return;
        }
        self.touched.clear();
        for user in 0..self.next.len() as u32 {
            let first = pending.first(self.walk_class, user).map(&job);
            policy.set_first_pending(UserId(user), first.as_ref());
        }
        self.class = self.walk_class;
    }
}
