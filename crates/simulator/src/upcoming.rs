//! The tasks each user will start next.

use evenhand_model::{DemandId, Span, Time, UserId, Workload};

use crate::UserTasks;

/// How many tasks of each user are kept at hand, unless there are very many users.
const AT_HAND: usize = 8;
/// No more than so many in all: 6 MB, which stays in a processor's cache.
const AT_HAND_IN_ALL: usize = 1 << 18;

/// What the pool needs to know of a task to start it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) submit: Time,
    pub(crate) duration: Span,
    pub(crate) row: u32,
    pub(crate) demand: DemandId,
}

/// Stands for a task where there is none: no workload has so many rows.
const NO_TASK: Task = Task { submit: Time::ZERO, duration: Span::ZERO, row: u32::MAX, demand: DemandId(0) };

/// Every user's tasks that have neither started nor been rejected, in submission order.
///
/// In an overloaded pool a user's next task was submitted long before the present rows of the trace,
/// so each of its columns is a miss of the cache. Tasks are therefore fetched some at a time: the
/// processor then waits for all of them at once.
pub(crate) struct Upcoming<'a> {
    workload: &'a Workload,
    tasks: &'a UserTasks,
    at_hand: usize,
    /// Each user's tasks at hand.
    fetched: Vec<Task>,
    /// Each user's place: of its first task among those at hand, how many of those there are, and of
    /// the first task not yet fetched among its rows.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    first: u8,
    fetched: u8,
    next: usize,
}

impl<'a> Upcoming<'a> {
    pub(crate) fn new(workload: &'a Workload, tasks: &'a UserTasks, rejected: &[bool]) -> Upcoming<'a> {
        let users = workload.users().len();
        let at_hand = (AT_HAND_IN_ALL / users.max(1)).clamp(1, AT_HAND);
        let places = tasks.offsets[..users].iter().map(|&next| Place { first: 0, fetched: 0, next }).collect();
        let mut upcoming = Upcoming { workload, tasks, at_hand, fetched: vec![NO_TASK; users * at_hand], places };
        for user in (0..users as u32).map(UserId) {
            upcoming.fetch(user);
            upcoming.skip_rejected(user, rejected);
        }
        upcoming
    }

    /// The user's first task, submitted or not; of row `u32::MAX` if none is left.
    #[inline]
    pub(crate) fn first(&self, user: UserId) -> &Task {
        &self.fetched[user.index() * self.at_hand + self.places[user.index()].first as usize]
    }

    /// The user's first waiting task, if the rows before `submitted` have been submitted.
    #[inline]
    pub(crate) fn first_waiting(&self, user: UserId, submitted: usize) -> Option<&Task> {
        let first = self.first(user);
        ((first.row as usize) < submitted).then_some(first)
    }

    /// The user's first task has started.
    #[inline]
    pub(crate) fn advance(&mut self, user: UserId, rejected: &[bool]) {
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
    fn skip_rejected(&mut self, user: UserId, rejected: &[bool]) {
        while self.first(user).row != NO_TASK.row && rejected[self.first(user).demand.index()] {
            self.step(user);
        }
    }

    /// Fetches the user's next tasks; none is at hand.
    fn fetch(&mut self, user: UserId) {
        let (columns, place) = (self.workload.columns(), &mut self.places[user.index()]);
        let end = self.tasks.offsets[user.index() + 1].min(place.next + self.at_hand);
        let rows = &self.tasks.rows[place.next..end];
        let fetched = &mut self.fetched[user.index() * self.at_hand..][..self.at_hand];
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
