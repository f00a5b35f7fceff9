//! What a policy of Python's process decides on: users' standings, as the simulation's notifications leave them.

use std::cmp::Ordering;

use evenhand_model::{Time, UserId};
use evenhand_policies::{Holdings, Job, PolicyContext, RelativeWeights, TieRule};

/// Which users a policy sees at a decision.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Seen {
    /// All who wait.
    Waiting,
    /// Those of them who changed since the last decision.
    Changed,
}

/// Users' standings as the simulation's notifications leave them, and those of them that the policy sees.
pub(crate) struct State {
    seen: Seen,
    holdings: Holdings,
    /// Weights over the mean weight.
    weights: Vec<f64>,
    /// By user: what its first pending task requested, in seconds, if it waits.
    requested_s: Vec<Option<f64>>,
    /// Which of two users with equal keys goes first, and the places of first pending tasks in the log.
    ties: TieRule,
    /// What each user's first pending task demands of each resource, over the capacity.
    demand: Vec<f64>,
    rows: Rows,
    /// Whose key may have changed since the last decision, each once; not kept for [`Seen::Waiting`].
    changed: Vec<UserId>,
    is_changed: Vec<bool>,
    now: Time,
}

/// The users whom a policy sees, by number: a row for each, stored by column.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) users: Vec<i64>,
    /// Row by row, an element for each resource.
    pub(crate) shares: Vec<f64>,
    /// Row by row, an element for each resource.
    pub(crate) demand: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) submitted: Vec<f64>,
    pub(crate) position: Vec<i64>,
    pub(crate) requested: Vec<f64>,
}

impl Rows {
    /// Makes place for a row, whose elements are not set.
    fn insert(&mut self, at: usize, width: usize) {
        self.users.insert(at, 0);
        self.position.insert(at, 0);
        for column in [&mut self.weight, &mut self.submitted, &mut self.requested] {
            column.insert(at, 0.0);
        }
        for matrix in [&mut self.shares, &mut self.demand] {
            matrix.resize(matrix.len() + width, 0.0);
            matrix[at * width..].rotate_right(width);
        }
    }

    fn remove(&mut self, at: usize, width: usize) {
        self.users.remove(at);
        self.position.remove(at);
        for column in [&mut self.weight, &mut self.submitted, &mut self.requested] {
            column.remove(at);
        }
        for matrix in [&mut self.shares, &mut self.demand] {
            matrix.drain(at * width..(at + 1) * width);
        }
    }

    fn clear(&mut self) {
        self.users.clear();
        self.position.clear();
        for column in [&mut self.weight, &mut self.submitted, &mut self.requested, &mut self.shares, &mut self.demand] {
            column.clear();
        }
    }

    /// Returns the row of a user, or where it would be inserted.
    fn find(&self, user: UserId) -> Result<usize, usize> {
        self.users.binary_search(&i64::from(user.0))
    }
}

impl State {
    /// Returns the state of users who neither hold nor wait.
    pub(crate) fn new(context: &PolicyContext<'_>, seen: Seen) -> State {
        let users = context.weights.len();
        let relative = RelativeWeights::new(context.weights);
        let holdings = Holdings::new(context.capacity, users);
        State {
            seen,
            weights: (0..users).map(|user| 1.0 / relative.inverse(UserId(user as u32))).collect(),
            requested_s: vec![None; users],
            ties: TieRule::new(users),
            demand: vec![0.0; users * holdings.width()],
            holdings,
            rows: Rows::default(),
            changed: Vec::new(),
            is_changed: vec![false; users],
            now: Time::ZERO,
        }
    }

    /// Prepares the rows of a decision.
    pub(crate) fn select(&mut self, now: Time) {
        self.now = now;
        if self.seen == Seen::Waiting {
            // Kept with every notification.
            return;
        }
        self.rows.clear();
        let mut changed = std::mem::take(&mut self.changed);
        for user in changed.drain(..) {
            self.is_changed[user.index()] = false;
            if self.is_waiting(user) {
                self.show(user);
            }
        }
        self.changed = changed;
    }

    /// Returns the users whom the policy sees.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// As [`rows`](State::rows), for functions of which it is not known that they only read.
    pub(crate) fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of resources.
    pub(crate) fn width(&self) -> usize {
        self.holdings.width()
    }

    pub(crate) fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.requested_s[user.index()] = first.map(|job| job.requested.secs_f64());
        self.ties.set_first_pending(user, first);
        if let Some(job) = first {
            let width = self.holdings.width();
            let row = self.demand[user.index() * width..].iter_mut().take(width);
            for (r, (share, demand)) in row.zip(job.demand).enumerate() {
                *share = self.holdings.share(r, demand.0);
            }
        }
        self.change(user);
    }

    pub(crate) fn started(&mut self, job: &Job<'_>) {
        self.holdings.add(job.user, job.demand);
        self.change(job.user);
    }

    pub(crate) fn finished(&mut self, job: &Job<'_>) {
        self.holdings.remove(job.user, job.demand);
        self.change(job.user);
    }

    fn change(&mut self, user: UserId) {
        match (self.seen, self.is_waiting(user)) {
            (Seen::Waiting, true) => self.show(user),
            (Seen::Waiting, false) => {
                if let Ok(at) = self.rows.find(user) {
                    self.rows.remove(at, self.holdings.width());
                }
            }
            (Seen::Changed, _) => {
                if !std::mem::replace(&mut self.is_changed[user.index()], true) {
                    self.changed.push(user);
                }
            }
        }
    }

    /// Sets the row of a user who waits.
    fn show(&mut self, user: UserId) {
        let State { holdings, weights, requested_s, ties, demand, rows, .. } = self;
        let Some(requested_s) = requested_s[user.index()] else { return };
        let place = ties.place(user);
        let width = holdings.width();
        let at = rows.find(user).unwrap_or_else(|at| {
            rows.insert(at, width);
            at
        });
        rows.users[at] = i64::from(user.0);
        rows.weight[at] = weights[user.index()];
        rows.submitted[at] = place.submitted.secs_f64();
        rows.position[at] = place.position as i64;
        rows.requested[at] = requested_s;
        let shares = &mut rows.shares[at * width..][..width];
        for (r, (share, held)) in shares.iter_mut().zip(holdings.row(user)).enumerate() {
            *share = holdings.share(r, *held);
        }
        rows.demand[at * width..][..width].copy_from_slice(&demand[user.index() * width..][..width]);
    }

    pub(crate) fn is_waiting(&self, user: UserId) -> bool {
        self.requested_s.get(user.index()).is_some_and(Option::is_some)
    }

    /// Compares two users with equal keys: `Less` if `a` goes first. It is the rule of the program's own policies, also
    /// where repeats draw the ties.
    pub(crate) fn compare_ties(&self, a: UserId, b: UserId) -> Ordering {
        self.ties.compare(a, b)
    }

    pub(crate) fn shares(&self, user: UserId) -> Vec<f64> {
        self.holdings.shares(user)
    }

    /// Returns the users whom the policy sees, for an error.
    pub(crate) fn users_in_words(&self) -> String {
        let some: Vec<String> = self.rows.users.iter().take(10).map(i64::to_string).collect();
        let more = if self.rows.users.len() > 10 { ", …" } else { "" };
        format!("{}{more}", some.join(", "))
    }
}
