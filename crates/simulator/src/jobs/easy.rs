//! EASY backfilling: who may start before the head of the queue.

use evenhand_model::{NO_TIME, Time, UserId};
use evenhand_policies::Policy;

use super::engine::{Engine, Memo};
use super::waiting::{Entry, NONE};
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
        // Nothing has finished or started since the same head was reserved for: what could not
        // start then cannot start now, and the reservation stands.
        let only_new = self.settled == Some(head);
        let from = if only_new { first_new } else { 0 };
        self.pass += 1;
        let mut reserved = only_new;
        if self.promised[head as usize] == NO_TIME {
            self.reserve(head, &mut reserved);
            self.promised[head as usize] = self.reservation.shadow;
        }
        if !self.floor.has_in_all(&self.least) {
            self.settled = reserved.then_some(head);
            return Ok(());
        }
        let mut started = false;
        for class in self.class..self.jobs.classes as u8 {
            if self.waiting.in_class(class) > 0 {
                started |= self.backfill_class(now, head, class, from, &mut reserved, policy)?;
            }
        }
        // On one machine a job that starts beside the reservation changes nothing about it.
        self.settled = (reserved && (!started || self.floor.site.len() == 1)).then_some(head);
        Ok(())
    }

    fn reserve(&mut self, head: u32, reserved: &mut bool) {
        if !std::mem::replace(reserved, true) {
            let kind = self.kind(head);
            self.floor.reserve(kind, &self.jobs.kinds, &mut self.reservation);
        }
    }

    /// Whether a job could start now beside the reservation.
    fn could_start(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> bool {
        let memo = &mut self.memo[entry.kind as usize];
        if memo.pass != self.pass {
            *memo = Memo { pass: self.pass, fails_from: u64::MAX };
        }
        let fails = entry.estimate >= memo.fails_from || self.no_room[entry.kind as usize];
        if fails || self.is_over_limit(entry.row, entry.user) {
            return false;
        }
        let kind = &self.jobs.kinds[entry.kind as usize];
        if !self.floor.has_room(kind) {
            self.no_room[entry.kind as usize] = true;
            self.lacking.push(entry.kind);
            return false;
        }
        self.reserve(head, reserved);
        let could = self.floor.has_room_beside(kind, now.nanos(), entry.estimate, &self.reservation);
        if !could {
            self.memo[entry.kind as usize].fails_from = entry.estimate;
        }
        could
    }

    /// The first entry of a class, from the place `at` on, that is not yet known to lack room; and
    /// the place after it.
    fn hopeful(&self, at: usize, class: u8) -> Option<(Entry, usize)> {
        let free = self.floor.free_of_first();
        let entries = &self.waiting.entries()[at..];
        let hopeful = entries.iter().position(|e| e.row != NONE && e.class == class && self.is_hopeful(e, free))?;
        Some((entries[hopeful], at + hopeful + 1))
    }

    /// Starts a job that [could](Engine::could_start); whether anything came of it.
    fn start_beside(&mut self, now: Time, entry: Entry, policy: &mut dyn Policy) -> Result<bool, SimulationError> {
        let kind = &self.jobs.kinds[entry.kind as usize];
        match self.floor.take_beside(kind, now.nanos(), entry.estimate, &mut self.reservation) {
            Some(held) => self.start(now, entry.row, held, policy).map(|()| true),
            None => Ok(false),
        }
    }

    /// The user's next job after `row` that could start.
    fn next_candidate(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> Option<Entry> {
        let mut row = entry.row;
        loop {
            let free = self.floor.free_of_first();
            let mut later = self.waiting.after(entry.class, entry.user, row);
            let next = later.find(|e| e.row != head && self.is_hopeful(e, free))?;
            drop(later);
            if self.could_start(now, head, next, reserved) {
                return Some(next);
            }
            row = next.row;
        }
    }

    /// Whether a job is not yet known to lack room, of the first resource or otherwise.
    fn is_hopeful(&self, entry: &Entry, free: u64) -> bool {
        if entry.needs > free || self.no_room[entry.kind as usize] {
            return false;
        }
        let memo = &self.memo[entry.kind as usize];
        memo.pass != self.pass || entry.estimate < memo.fails_from
    }

    /// Goes through the jobs of a class behind the head in the order in which the policy names
    /// them; whether any started.
    ///
    /// Of each user only the first job that could start is shown to the policy. Jobs that cannot
    /// start now cannot start later in the pass either, as room only shrinks: leaving them out
    /// changes nothing about the others.
    fn backfill_class(
        &mut self,
        now: Time,
        head: u32,
        class: u8,
        from: usize,
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        let mut candidates: Vec<Entry> = Vec::new();
        let mut at = from;
        while let Some((entry, next)) = self.hopeful(at, class) {
            at = next;
            if entry.row == head || self.place[entry.user as usize] != NONE {
                continue;
            }
            if self.could_start(now, head, entry, reserved) {
                self.place[entry.user as usize] = candidates.len() as u32;
                candidates.push(entry);
            }
        }
        let started = self.backfill_candidates(now, head, &mut candidates, reserved, policy);
        candidates.iter().for_each(|c| self.place[c.user as usize] = NONE);
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
            // Whom the policy would name is known.
            [only] => {
                let (mut next, mut started) = (Some(*only), false);
                while let Some(entry) = next {
                    started |= self.start_beside(now, entry, policy)?;
                    next = self.next_candidate(now, head, entry, reserved);
                }
                self.tell(only.user, policy);
                return Ok(started);
            }
            _ => {}
        }
        let mut touched: Vec<u32> = candidates.iter().map(|c| c.user).collect();
        touched.iter().for_each(|&user| self.told[user as usize] = self.pass);
        for entry in self.waiting.entries().iter().filter(|e| e.row != NONE && e.class == self.class) {
            if std::mem::replace(&mut self.told[entry.user as usize], self.pass) != self.pass {
                policy.set_first_pending(UserId(entry.user), None);
                touched.push(entry.user);
            }
        }
        // A pass goes through several classes.
        touched.iter().for_each(|&user| self.told[user as usize] = 0);
        for entry in candidates.iter() {
            policy.set_first_pending(UserId(entry.user), Some(&self.waits(entry.row)));
        }
        let mut started = false;
        while let Some(user) = policy.next(now) {
            self.decisions += 1;
            let Some(candidate) = candidates.get_mut(self.place[user.index()] as usize) else { break };
            let entry = *candidate;
            if self.could_start(now, head, entry, reserved) {
                started |= self.start_beside(now, entry, policy)?;
            }
            let next = self.next_candidate(now, head, entry, reserved);
            policy.set_first_pending(user, next.map(|e| self.waits(e.row)).as_ref());
            if let Some(next) = next {
                *candidate = next;
            }
        }
        for user in touched {
            self.tell(user, policy);
        }
        Ok(started)
    }
}
