//! EASY backfilling (Lifka 1995): which jobs start before the head of the queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evenhand_model::{NO_TIME, Time, UserId};
use evenhand_policies::Policy;

use super::engine::{Engine, Memo};
use super::pending_jobs::{Entry, NO_ROW};
use super::placement::Placement;
use crate::SimulationError;

impl Engine<'_> {
    /// Lets jobs behind the head start where that does not delay it.
    pub(super) fn backfill(
        &mut self,
        now: Time,
        head: u32,
        policy: &mut dyn Policy,
        first_new: usize,
    ) -> Result<(), SimulationError> {
        // Since the same head was considered last nothing has finished, nor started in a way that changes the
        // reservation: jobs that could not start then cannot start now.
        let only_new = self.considered_for == Some(head);
        // Where users react, rows are not in the order of submission.
        let from = match only_new {
            true => self.pending.entries().iter().skip(first_new).map(|new| new.row).min().unwrap_or(NO_ROW),
            false => 0,
        };
        self.pass += 1;
        let mut reserved = false;
        if self.first_reservation[head as usize] == NO_TIME {
            self.reserve(head, &mut reserved);
            self.first_reservation[head as usize] = self.shadow;
        }
        if !self.machines.fits_in_total(&self.smallest_demand) {
            self.considered_for = Some(head);
            return Ok(());
        }
        let mut started = false;
        for class in self.class..self.jobs.classes as u8 {
            if self.pending.in_class(class) > 0 {
                started |= self.backfill_class(now, head, class, from, &mut reserved, policy)?;
            }
        }
        // On one machine, and where the first machines are taken, a job that starts beside the reservation changes
        // nothing about it.
        let keeps = self.machines.site.len() == 1 || self.options.placement == Placement::FirstFit;
        self.considered_for = (!started || keeps).then_some(head);
        Ok(())
    }

    fn reserve(&mut self, head: u32, reserved: &mut bool) {
        if !std::mem::replace(reserved, true) {
            self.shadow = self.machines.reserve(self.jobs.kind[head as usize], &self.jobs.kinds);
        }
    }

    /// Whether a job could start now beside the reservation.
    fn could_start(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> bool {
        let memo = &mut self.memo[entry.kind as usize];
        if memo.pass != self.pass {
            *memo = Memo { pass: self.pass, fails_from: u64::MAX };
        }
        let fails = entry.estimate >= memo.fails_from || self.pending.kinds.lacks_capacity(entry.kind);
        if fails || self.limits.is_over(entry.row) {
            return false;
        }
        let kind = &self.jobs.kinds[entry.kind as usize];
        if !self.machines.fits_now(kind) {
            self.pending.kinds.set_lacks_capacity(entry.kind, true);
            self.kinds_not_fitting.push(entry.kind);
            return false;
        }
        self.reserve(head, reserved);
        let could = self.machines.fits_beside_reservation(kind, now.nanos(), entry.estimate);
        if !could {
            self.memo[entry.kind as usize].fails_from = entry.estimate;
        }
        could
    }

    /// Returns the first job of a kind, from row `from` on, that is not known to lack capacity.
    fn next_possible(&self, kind: u32, from: u32) -> Option<u32> {
        let needs = self.jobs.kinds[kind as usize].total(0);
        if needs > self.machines.free_of_first_resource() || self.pending.kinds.lacks_capacity(kind) {
            return None;
        }
        let memo = &self.memo[kind as usize];
        let below = if memo.pass == self.pass { memo.fails_from } else { u64::MAX };
        self.pending.kinds.next(kind, from, below)
    }

    /// Starts a job that [could](Engine::could_start); whether anything came of it.
    fn start_beside_reservation(
        &mut self,
        now: Time,
        entry: Entry,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        let kind = &self.jobs.kinds[entry.kind as usize];
        match self.machines.place_beside_reservation(kind, now.nanos(), entry.estimate) {
            Some(held) => self.start(now, entry.row, held, true, policy).map(|()| true),
            None => Ok(false),
        }
    }

    /// The user's next job after `row` that could start.
    fn next_candidate(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> Option<Entry> {
        let mut row = entry.row;
        let is_any = |&kind: &u32| self.next_possible(kind, row.saturating_add(1)).is_some();
        if !self.pending.kinds.possible().iter().any(is_any) {
            return None;
        }
        loop {
            let free = self.machines.free_of_first_resource();
            let mut later = self.pending.after(entry.class, entry.user, row);
            let next = later.find(|e| e.row != head && self.is_possible(e, free))?;
            drop(later);
            if self.could_start(now, head, next, reserved) {
                return Some(next);
            }
            row = next.row;
        }
    }

    /// Returns whether a job is not yet known to lack capacity, of the first resource or of any.
    fn is_possible(&self, entry: &Entry, free: u64) -> bool {
        if entry.needs > free || self.pending.kinds.lacks_capacity(entry.kind) {
            return false;
        }
        let memo = &self.memo[entry.kind as usize];
        memo.pass != self.pass || entry.estimate < memo.fails_from
    }

    /// Considers the jobs of a class behind the head in the order in which the policy chooses
    /// them; whether any started.
    ///
    /// Of each user only the first job that could start is shown to the policy. Jobs that cannot
    /// start now cannot start later in the pass either, as free capacity only shrinks: leaving them out
    /// changes nothing about the others.
    fn backfill_class(
        &mut self,
        now: Time,
        head: u32,
        class: u8,
        from: u32,
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        let mut candidates: Vec<Entry> = Vec::new();
        let of_class = |kind: &u32| self.jobs.kinds[*kind as usize].class == class;
        let kinds = self.pending.kinds.possible().iter().copied().filter(of_class);
        // The next possible job of each kind: all of them come in the order of submission.
        let mut next: BinaryHeap<Reverse<(u32, u32)>> =
            kinds.filter_map(|kind| Some(Reverse((self.next_possible(kind, from)?, kind)))).collect();
        while let Some(Reverse((row, kind))) = next.pop() {
            self.progress.check()?;
            let until = next.peek().map_or(NO_ROW, |Reverse((row, _))| *row);
            let mut row = Some(row);
            while let Some(at) = row.filter(|row| *row < until) {
                let entry = self.pending.entry(at);
                let is_first = at != head && self.place[entry.user as usize] == NO_ROW;
                if is_first && self.could_start(now, head, entry, reserved) {
                    self.place[entry.user as usize] = candidates.len() as u32;
                    candidates.push(entry);
                }
                row = self.next_possible(kind, at.saturating_add(1));
            }
            next.extend(row.map(|row| Reverse((row, kind))));
        }
        let started = self.backfill_candidates(now, head, &mut candidates, reserved, policy);
        candidates.iter().for_each(|c| self.place[c.user as usize] = NO_ROW);
        started
    }

    fn backfill_candidates(
        &mut self,
        now: Time,
        head: u32,
        candidates: &mut [Entry],
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        match candidates {
            [] => return Ok(false),
            // Only one user is left to choose from.
            [only] => {
                let (mut next, mut started) = (Some(*only), false);
                while let Some(entry) = next {
                    self.progress.check()?;
                    started |= self.start_beside_reservation(now, entry, policy)?;
                    next = self.next_candidate(now, head, entry, reserved);
                }
                self.notify_first_pending(only.user, policy);
                return Ok(started);
            }
            _ => {}
        }
        let mut touched: Vec<u32> = candidates.iter().map(|c| c.user).collect();
        touched.iter().for_each(|&user| self.notified_in_pass[user as usize] = self.pass);
        for user in self.pending.users_by_first(self.class) {
            if std::mem::replace(&mut self.notified_in_pass[user as usize], self.pass) != self.pass {
                policy.set_first_pending(UserId(user), None);
                touched.push(user);
            }
        }
        // A pass covers several classes.
        touched.iter().for_each(|&user| self.notified_in_pass[user as usize] = 0);
        for entry in candidates.iter() {
            policy.set_first_pending(UserId(entry.user), Some(&self.pending_job(entry.row)));
        }
        let mut started = false;
        while let Some(user) = policy.next(now) {
            self.progress.check()?;
            self.decisions += 1;
            let Some(candidate) = candidates.get_mut(self.place[user.index()] as usize) else { break };
            let entry = *candidate;
            if self.could_start(now, head, entry, reserved) {
                started |= self.start_beside_reservation(now, entry, policy)?;
            }
            let next = self.next_candidate(now, head, entry, reserved);
            policy.set_first_pending(user, next.map(|e| self.pending_job(e.row)).as_ref());
            if let Some(next) = next {
                *candidate = next;
            }
        }
        for user in touched {
            self.notify_first_pending(user, policy);
        }
        Ok(started)
    }
}
