//! The submissions of a running simulation.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use evenhand_model::{NO_TIME, Time, UserId, Workload};

use super::Reactions;
use super::reactions::NO_END;
use crate::UserTasks;

/// When rows are submitted, as a simulation finds out.
pub(crate) struct Submissions<'a> {
    workload: &'a Workload,
    source: Source<'a>,
}

enum Source<'a> {
    /// At the times of the log. Rows below this are submitted.
    Clock(usize),
    Reactions(Reacting<'a>),
}

/// The state of users who react.
struct Reacting<'a> {
    reactions: &'a Reactions,
    tasks: &'a UserTasks,
    /// Submissions whose time is known, by time and row.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// By row: when it was submitted.
    times: Rc<[Cell<u64>]>,
    users: Vec<User>,
    /// By user and place in the order of its tasks' ends in the log: whether the task has ended.
    ended: Vec<bool>,
}

/// A user who reacts.
#[derive(Clone, Copy, Default)]
struct User {
    /// The position of its next task among its rows.
    next: usize,
    /// How many of its tasks, in the order of their ends in the log, have ended, without gaps.
    ended: u32,
    /// Whether the next task waits for ends.
    waits: bool,
}

/// The times of submission: those of the log, or those that a simulation has found out.
#[derive(Clone)]
pub(crate) enum SubmissionTimes<'a> {
    Clock(&'a [Time]),
    Reactions(Rc<[Cell<u64>]>),
}

impl SubmissionTimes<'_> {
    /// Returns when a row was submitted; it must have been.
    #[inline]
    pub(crate) fn of(&self, row: u32) -> Time {
        match self {
            SubmissionTimes::Clock(times) => times[row as usize],
            SubmissionTimes::Reactions(times) => Time::from_nanos(times[row as usize].get()),
        }
    }
}

impl<'a> Submissions<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        tasks: &'a UserTasks,
        reactions: Option<&'a Reactions>,
    ) -> Submissions<'a> {
        let Some(reactions) = reactions else { return Submissions { workload, source: Source::Clock(0) } };
        let mut due = BinaryHeap::new();
        for user in (0..workload.users().len() as u32).map(UserId) {
            due.extend(tasks.of(user).first().map(|row| Reverse((workload.columns().submit[*row as usize], *row))));
        }
        let source = Source::Reactions(Reacting {
            reactions,
            tasks,
            due,
            times: vec![Cell::new(NO_TIME); workload.len()].into(),
            users: vec![User::default(); workload.users().len()],
            ended: vec![false; workload.len()],
        });
        Submissions { workload, source }
    }

    /// The time of the next submission; users who react may submit before it, once tasks end.
    pub(crate) fn next_time(&self) -> Option<Time> {
        match &self.source {
            Source::Clock(submitted) => self.workload.columns().submit.get(*submitted).copied(),
            Source::Reactions(reacting) => reacting.due.peek().map(|Reverse((time, _))| *time),
        }
    }

    /// Submits the next row: of one instant, the first in file order.
    pub(crate) fn submit(&mut self) -> Option<u32> {
        match &mut self.source {
            Source::Clock(submitted) => {
                *submitted += 1;
                Some(*submitted as u32 - 1)
            }
            Source::Reactions(reacting) => {
                let Reverse((now, row)) = reacting.due.pop()?;
                reacting.times[row as usize].set(now.nanos());
                let user = self.workload.columns().user[row as usize];
                reacting.users[user.index()].next += 1;
                reacting.expect_next(now, user, self.workload);
                Some(row)
            }
        }
    }

    /// Notes that a task has ended, or will never run.
    pub(crate) fn ended(&mut self, now: Time, row: u32) {
        let Source::Reactions(reacting) = &mut self.source else { return };
        let place = reacting.reactions.tasks[row as usize].place_of_end;
        if place == NO_END {
            return;
        }
        let user = self.workload.columns().user[row as usize];
        let first = reacting.tasks.offsets[user.index()];
        let ended = &mut reacting.ended[first..reacting.tasks.offsets[user.index() + 1]];
        ended[place as usize] = true;
        let state = &mut reacting.users[user.index()];
        while ended.get(state.ended as usize) == Some(&true) {
            state.ended += 1;
        }
        if state.waits {
            reacting.expect_next(now, user, self.workload);
        }
    }

    /// Whether a row is submitted.
    #[inline]
    pub(crate) fn is_submitted(&self, row: u32) -> bool {
        match &self.source {
            Source::Clock(submitted) => (row as usize) < *submitted,
            Source::Reactions(reacting) => reacting.times[row as usize].get() != NO_TIME,
        }
    }

    /// Returns the times of the rows that have been submitted; stays valid.
    pub(crate) fn times(&self) -> SubmissionTimes<'a> {
        match &self.source {
            Source::Clock(_) => SubmissionTimes::Clock(&self.workload.columns().submit),
            Source::Reactions(reacting) => SubmissionTimes::Reactions(Rc::clone(&reacting.times)),
        }
    }

    /// Returns when each row was submitted, in nanoseconds, or [`NO_TIME`]; `None` if that is in the log.
    pub(crate) fn found(&self) -> Option<Vec<u64>> {
        match &self.source {
            Source::Clock(_) => None,
            Source::Reactions(reacting) => Some(reacting.times.iter().map(Cell::get).collect()),
        }
    }
}

impl Reacting<'_> {
    /// Determines when a user's next task is submitted, if what it waits for has happened by now.
    fn expect_next(&mut self, now: Time, user: UserId, workload: &Workload) {
        let state = &mut self.users[user.index()];
        let Some(&row) = self.tasks.of(user).get(state.next) else {
            state.waits = false;
            return;
        };
        let reaction = &self.reactions.tasks[row as usize];
        state.waits = state.ended < reaction.awaits;
        if state.waits {
            return;
        }
        let time = match reaction.by_clock {
            true => now.max(workload.columns().submit[row as usize]),
            false => now.checked_add(reaction.think).unwrap_or(Time::MAX),
        };
        self.due.push(Reverse((time, row)));
    }
}
