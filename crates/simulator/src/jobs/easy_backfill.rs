//! EASY backfilling (Lifka 1995): which jobs start before the head of the queue.

use evenhand_model::{NO_TIME, Time};
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
            self.considered_for = (!self.jobs.has_uneven).then_some(head);
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
        self.considered_for = ((!started || keeps) && !self.jobs.has_uneven).then_some(head);
        Ok(())
    }

    fn reserve(&mut self, head: u32, reserved: &mut bool) {
        if !std::mem::replace(reserved, true) {
            self.shadow = self.machines.reserve(self.jobs.kind[head as usize], &self.jobs.kinds);
        }
    }

    /// Whether a job could start now beside the reservation.
    pub(super) fn could_start(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> bool {
        let memo = &mut self.memo[entry.kind as usize];
        if memo.pass != self.pass {
            *memo = Memo { pass: self.pass, fails_from: u64::MAX, ..Memo::default() };
        }
        let succeeds = memo.as_of == self.done && entry.estimate <= memo.succeeds_to;
        let fails = entry.estimate >= memo.fails_from || self.pending.kinds.lacks_capacity(entry.kind);
        if fails || self.limits.is_over(entry.row) {
            return false;
        }
        let kind = &self.jobs.kinds[entry.kind as usize];
        if kind.is_uneven() {
            // Whether it fits is known only once its chunks are put on machines, when its turn comes.
            self.reserve(head, reserved);
            return self.machines.fits_together(kind);
        }
        if succeeds {
            return true;
        }
        if !self.machines.fits_now(kind) {
            self.pending.kinds.set_lacks_capacity(entry.kind, true);
            self.kinds_not_fitting.push(entry.kind);
            return false;
        }
        self.reserve(head, reserved);
        let could = self.machines.fits_beside_reservation(kind, now.nanos(), entry.estimate);
        let memo = &mut self.memo[entry.kind as usize];
        match could {
            true => (memo.succeeds_to, memo.as_of) = (entry.estimate, self.done),
            false => memo.fails_from = entry.estimate,
        }
        could
    }

    /// From which estimate on the user's jobs of a kind are known not to start; `None` if all are.
    fn possible_below(&self, kind: u32) -> Option<u64> {
        let needs = self.jobs.kinds[kind as usize].total(0);
        if needs > self.machines.free_of_first_resource() || self.pending.kinds.lacks_capacity(kind) {
            return None;
        }
        let memo = &self.memo[kind as usize];
        Some(if memo.pass == self.pass { memo.fails_from } else { u64::MAX })
    }

    /// Returns the user's first job of a kind, from row `from` on, that is not the head and not known to lack capacity.
    fn next_possible(&self, kind: u32, user: u32, from: u32, head: u32) -> Option<u32> {
        let below = self.possible_below(kind)?;
        match self.pending.kinds.next(kind, user, from, below) {
            Some(row) if row == head => self.pending.kinds.next(kind, user, head.saturating_add(1), below),
            found => found,
        }
    }

    /// The same for each user with such a job.
    fn first_possible(&self, kind: u32, from: u32, head: u32) -> Vec<(u32, u32)> {
        let Some(below) = self.possible_below(kind) else { return Vec::new() };
        let firsts = self.pending.kinds.first_of_users(kind, from, below);
        let not_head = firsts.filter_map(|(user, row)| match row == head {
            true => Some((user, self.pending.kinds.next(kind, user, head.saturating_add(1), below)?)),
            false => Some((user, row)),
        });
        not_head.collect()
    }

    /// Returns the first job that could start of the kind and user of a possible job, from that on.
    fn next_of_kind(&mut self, now: Time, head: u32, possible: u32, reserved: &mut bool) -> Option<Entry> {
        let mut entry = self.pending.entry(possible);
        loop {
            if self.could_start(now, head, entry, reserved) {
                return Some(entry);
            }
            let is_over = self.limits.is_over(entry.row);
            let is_same_for_all = match is_over {
                true => !self.jobs.limits.differ_within_users(),
                // Whether a job of several sizes of chunks fits was found by putting them on machines.
                false => self.jobs.kinds[entry.kind as usize].is_uneven(),
            };
            if is_same_for_all {
                return None;
            }
            let from = entry.row + u32::from(is_over);
            entry = self.pending.entry(self.next_possible(entry.kind, entry.user, from, head)?);
        }
    }

    /// Starts a job that [could](Engine::could_start); whether anything came of it.
    pub(super) fn start_beside_reservation(
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
    pub(super) fn next_candidate(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> Option<Entry> {
        let from = entry.row.saturating_add(1);
        let of_class = |kind: &u32| self.jobs.kinds[*kind as usize].class == entry.class;
        let kinds: Vec<u32> = self.pending.kinds.possible().iter().copied().filter(of_class).collect();
        let mut rows: Vec<u32> =
            kinds.into_iter().filter_map(|kind| self.next_possible(kind, entry.user, from, head)).collect();
        rows.sort_unstable();
        let mut first: Option<Entry> = None;
        for row in rows {
            if first.is_some_and(|first| first.row < row) {
                break;
            }
            let found = self.next_of_kind(now, head, row, reserved);
            first = [first, found].into_iter().flatten().min_by_key(|entry| entry.row);
        }
        first
    }

    /// Considers the jobs of a class behind the head in the order in which the policy chooses
    /// them; whether any started.
    ///
    /// Of users only those with a job that could start are shown to the policy. Jobs that cannot
    /// start now cannot start later in the pass either, as free capacity only shrinks: leaving them out
    /// changes nothing about the others, unless the key depends on the job ([`Policy::key_depends_on_job`]): then a
    /// user's jobs before that one are shown in their turn.
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
        let kinds: Vec<u32> = self.pending.kinds.possible().iter().copied().filter(of_class).collect();
        for kind in kinds {
            self.progress.check()?;
            for (user, row) in self.first_possible(kind, from, head) {
                if self.pending.kinds.lacks_capacity(kind) {
                    break;
                }
                let place = self.place[user as usize];
                let first = candidates.get(place as usize).map_or(NO_ROW, |first| first.row);
                if row > first {
                    continue;
                }
                let Some(found) = self.next_of_kind(now, head, row, reserved) else { continue };
                if place == NO_ROW {
                    self.place[user as usize] = candidates.len() as u32;
                    candidates.push(found);
                } else if found.row < first {
                    candidates[place as usize] = found;
                }
            }
        }
        candidates.sort_unstable_by_key(|candidate| candidate.row);
        candidates.iter().zip(0..).for_each(|(candidate, place)| self.place[candidate.user as usize] = place);
        let started = self.backfill_candidates(now, head, &candidates, reserved, policy);
        candidates.iter().for_each(|c| self.place[c.user as usize] = NO_ROW);
        started
    }

    fn backfill_candidates(
        &mut self,
        now: Time,
        head: u32,
        candidates: &[Entry],
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        match candidates {
            [] => Ok(false),
            // Only one user is left to choose from.
            [only] => {
                let (mut next, mut started) = (Some(*only), false);
                while let Some(entry) = next {
                    self.progress.check()?;
                    started |= self.start_beside_reservation(now, entry, policy)?;
                    next = self.next_candidate(now, head, entry, reserved);
                }
                self.notify_first_pending(only.user, policy);
                Ok(started)
            }
            _ => self.backfill_in_turns(now, head, candidates, reserved, policy),
        }
    }
}
