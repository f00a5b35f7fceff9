//! The state of a history at one instant: what users hold and wait for, updated from event to event.

use crate::History;
use crate::compare_with_entitlement::ExactEntitlements;
use crate::events::{Event, Events};
use crate::history::NO_ROW;
use crate::user_set::UserSet;

/// The state of a history between two events.
#[derive(Debug)]
pub(crate) struct HistoryState<'a> {
    history: &'a History<'a>,
    width: usize,
    events: Events<'a>,
    /// Each user's first row that has not started, submitted or not, and each row's successor of the same user.
    first: Vec<u32>,
    next: Vec<u32>,
    /// Number of running rows of each user.
    running_rows: Vec<u32>,
    /// Amounts that users hold, as `[user][resource]`.
    held: Vec<u64>,
    /// The same plus the first waiting task of the user, if any.
    held_with_next: Vec<u64>,
    /// Demand of that task, as `[user][resource]`.
    next_demand: Vec<u64>,
    /// Amounts that all users hold.
    pub(crate) total: Vec<u64>,
    /// Sum of the weights of active users.
    pub(crate) active_weight: u64,
    active: Vec<bool>,
    pub(crate) waiting: UserSet,
    pub(crate) running: UserSet,
    /// Users whose holdings or first waiting task may have changed since [`HistoryState::take_changed`], each once.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

impl<'a> HistoryState<'a> {
    /// Creates the state before the first event.
    pub(crate) fn new(history: &'a History<'a>) -> HistoryState<'a> {
        let (n, width) = (history.workload().users().len(), history.workload().resources().len());
        let (first, next) = history.rows_of_users();
        HistoryState {
            history,
            width,
            events: Events::new(history),
            first,
            next,
            running_rows: vec![0; n],
            held: vec![0; n * width],
            held_with_next: vec![0; n * width],
            next_demand: vec![0; n * width],
            total: vec![0; width],
            active_weight: 0,
            active: vec![false; n],
            waiting: UserSet::new(n),
            running: UserSet::new(n),
            changed: Vec::new(),
            is_changed: vec![false; n],
        }
    }

    /// Returns the amounts that a user holds.
    #[inline]
    pub(crate) fn held(&self, user: u32) -> &[u64] {
        &self.held[user as usize * self.width..][..self.width]
    }

    /// Returns the amounts that a waiting user would hold with the user's first waiting task.
    #[inline]
    pub(crate) fn held_with_next(&self, user: u32) -> &[u64] {
        &self.held_with_next[user as usize * self.width..][..self.width]
    }

    /// Returns the demand of a waiting user's first waiting task.
    #[inline]
    pub(crate) fn next_demand(&self, user: u32) -> &[u64] {
        &self.next_demand[user as usize * self.width..][..self.width]
    }

    /// Returns the time of the next event in nanoseconds.
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.events.next_time()
    }

    /// Applies all events at `now`, which is the time of the next event.
    pub(crate) fn advance(&mut self, now: u64, entitlements: &ExactEntitlements) {
        while let Some(event) = self.events.next_at(now) {
            match event {
                Event::Finish(row) => self.hold(row, false),
                Event::Start(row) if self.history.workload().columns().duration[row as usize].nanos() > 0 => {
                    self.hold(row, true);
                }
                Event::Start(row) => self.mark_changed(self.user(row)),
                Event::Submit(row) => {
                    // A submission behind a waiting task changes nothing; the start of that task marks the user.
                    let user = self.user(row);
                    if self.history.has_start(row) && !self.waiting.contains(user) {
                        self.mark_changed(user);
                    }
                }
            }
        }
        // Users marked at an earlier instant and not yet taken are updated again, which is harmless.
        for at in 0..self.changed.len() {
            self.update_user(self.changed[at], now, entitlements);
        }
    }

    fn user(&self, row: u32) -> u32 {
        self.history.workload().columns().user[row as usize].0
    }

    fn mark_changed(&mut self, user: u32) {
        if !std::mem::replace(&mut self.is_changed[user as usize], true) {
            self.changed.push(user);
        }
    }

    /// Adds the amounts of a row to its user's holdings, or removes them.
    fn hold(&mut self, row: u32, starts: bool) {
        let user = self.user(row);
        let count = u64::from(self.history.workload().count(row as usize));
        let held = &mut self.held[user as usize * self.width..][..self.width];
        let amounts = self.history.workload().amounts(row as usize);
        for ((amount, h), total) in amounts.iter().zip(held).zip(&mut self.total) {
            // The sum fits u64: the history has checked its peak.
            let amount = amount.0 * count;
            if starts {
                *h += amount;
                *total += amount;
            } else {
                *h -= amount;
                *total -= amount;
            }
        }
        let running = &mut self.running_rows[user as usize];
        *running = if starts { *running + 1 } else { *running - 1 };
        self.mark_changed(user);
    }

    /// Recomputes a user's first waiting task, activity and membership in the sets.
    fn update_user(&mut self, user: u32, now: u64, entitlements: &ExactEntitlements) {
        let u = user as usize;
        while self.first[u] != NO_ROW && self.history.start(self.first[u]) <= now {
            self.first[u] = self.next[self.first[u] as usize];
        }
        let first = Some(self.first[u]).filter(|&row| row != NO_ROW && self.history.submit(row) <= now);
        if let Some(row) = first {
            let amounts = self.history.workload().amounts(row as usize);
            for (r, amount) in amounts.iter().enumerate() {
                let at = u * self.width + r;
                self.next_demand[at] = amount.0;
                self.held_with_next[at] = self.held[at] + amount.0;
            }
        }
        self.waiting.set(user, first.is_some());
        self.running.set(user, self.running_rows[u] > 0);
        let active = first.is_some() || self.running_rows[u] > 0;
        if active != self.active[u] {
            self.active[u] = active;
            let weight = entitlements.weight(u);
            self.active_weight = if active { self.active_weight + weight } else { self.active_weight - weight };
        }
    }

    /// Moves the users whose state may have changed since the last call to `into`.
    pub(crate) fn take_changed(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.changed);
        into.iter().for_each(|&user| self.is_changed[user as usize] = false);
    }
}
