//! The next tasks of each user.

use evenhand_model::{DemandId, Span, Time, UserId, Workload};

use crate::{Rejection, UserTasks};

/// How many tasks of each user are prefetched, unless there are very many users.
const MAX_PREFETCHED_PER_USER: usize = 8;
/// Maximum number of prefetched tasks of all users: 6 MB, which stays in a processor's cache.
const MAX_PREFETCHED_TOTAL: usize = 1 << 18;

/// The fields of a task that starting it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) submit: Time,
    pub(crate) duration: Span,
    pub(crate) row: u32,
    pub(crate) demand: DemandId,
}

/// Marks the absence of a task: no workload has so many rows.
const NO_TASK: Task = Task { submit: Time::ZERO, duration: Span::ZERO, row: u32::MAX, demand: DemandId(0) };

/// Every user's tasks that have neither started nor been rejected, in submission order.
///
/// In an overloaded pool a user's next task was submitted long before the current rows of the trace,
/// so each of its columns is a cache miss. Fetching several tasks at a time lets these misses
/// overlap.
pub(crate) struct PendingTasks<'a> {
    workload: &'a Workload,
    tasks: &'a UserTasks,
    prefetched_per_user: usize,
    /// Each user's prefetched tasks.
    fetched: Vec<Task>,
    /// Each user's position: of its first task among the prefetched ones, how many of those there are, and of
    /// the first task not yet fetched among its rows.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    first: u8,
    fetched: u8,
    next: usize,
}

impl<'a> PendingTasks<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        tasks: &'a UserTasks,
        rejected: &[Option<Rejection>],
    ) -> PendingTasks<'a> {
        let users = workload.users().len();
        let prefetched_per_user = (MAX_PREFETCHED_TOTAL / users.max(1)).clamp(1, MAX_PREFETCHED_PER_USER);
        let places = tasks.offsets[..users].iter().map(|&next| Place { first: 0, fetched: 0, next }).collect();
        let mut upcoming = PendingTasks {
            workload,
            tasks,
            prefetched_per_user,
            fetched: vec![NO_TASK; users * prefetched_per_user],
            places,
        };
        for user in (0..users as u32).map(UserId) {
            upcoming.fetch(user);
            upcoming.skip_rejected(user, rejected);
        }
        upcoming
    }

    /// Returns the user's first task, submitted or not; its row is `u32::MAX` if none is left.
    #[inline]
    pub(crate) fn first(&self, user: UserId) -> &Task {
        &self.fetched[user.index() * self.prefetched_per_user + self.places[user.index()].first as usize]
    }

    /// Returns the user's first pending task, given that the rows before `submitted` have been submitted.
    #[inline]
    pub(crate) fn first_waiting(&self, user: UserId, submitted: usize) -> Option<&Task> {
        let first = self.first(user);
        ((first.row as usize) < submitted).then_some(first)
    }

    /// Advances past the user's first task, which has started.
    #[inline]
    pub(crate) fn advance(&mut self, user: UserId, rejected: &[Option<Rejection>]) {
        self.step(user);
        self.skip_rejected(user, rejected);
    }

    #[inline]
    fn step(&mut self, user: UserId) {
        let place = &mut self.places[user.index()];
        place.first += 1;
        if place.first >= place.fetched {
            self.fetch(user);
        }
    }

    #[inline]
    fn skip_rejected(&mut self, user: UserId, rejected: &[Option<Rejection>]) {
        while self.first(user).row != NO_TASK.row && rejected[self.first(user).demand.index()].is_some() {
            self.step(user);
        }
    }

    /// Fetches the user's next tasks, once no prefetched one is left.
    fn fetch(&mut self, user: UserId) {
        let (columns, place) = (self.workload.columns(), &mut self.places[user.index()]);
        let end = self.tasks.offsets[user.index() + 1].min(place.next + self.prefetched_per_user);
        let rows = &self.tasks.rows[place.next..end];
        let fetched = &mut self.fetched[user.index() * self.prefetched_per_user..][..self.prefetched_per_user];
        for (task, &row) in fetched.iter_mut().zip(rows) {
            let at = row as usize;
            *task =
                Task { submit: columns.submit[at], duration: columns.duration[at], row, demand: columns.demand[at] };
        }
        *place = Place { first: 0, fetched: rows.len() as u8, next: end };
        if rows.is_empty() {
            fetched[0] = NO_TASK;
        }
    }
}
