//! Conservative backfilling (Mu'alem and Feitelson 2001): every job has a reserved start from its submission on.

use evenhand_model::{Time, UserId};
use evenhand_policies::Policy;

use super::engine::Engine;
use super::pending_jobs::{Entry, NO_ROW};
use crate::SimulationError;

impl Engine<'_> {
    /// Schedules an instant under conservative backfilling, after its finishes and submissions: the
    /// entries from `first_new` on are new.
    pub(super) fn schedule_conservatively(
        &mut self,
        now: Time,
        early: bool,
        first_new: usize,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        if let Some(plan) = &mut self.plan {
            plan.forget(now.nanos());
        }
        if early {
            for class in 0..self.jobs.classes as u8 {
                self.move_class_earlier(now, class, first_new, policy)?;
            }
        }
        // Behind the new ones nothing has started yet, so they are where they were.
        let new: Vec<Entry> = self.pending.entries().iter().skip(first_new).copied().collect();
        for entry in new.into_iter().filter(|e| e.row != NO_ROW) {
            self.progress.check()?;
            let kind = &self.jobs.kinds[entry.kind as usize];
            let Some(plan) = self.plan.as_mut() else { break };
            let found = plan.earliest(self.machines.site, kind, entry.estimate, now.nanos());
            // A job that is not refused fits on empty machines.
            let Some(reservation) = found else { continue };
            self.first_reservation[entry.row as usize] = reservation.start;
            plan.insert(self.machines.site, entry.row, kind, reservation);
        }
        let due = self.plan.as_ref().map(|plan| plan.due(now.nanos())).unwrap_or_default();
        for row in due {
            self.start_if_due(now, row, policy)?;
        }
        Ok(())
    }

    /// Moves reservations to earlier starts, in the order in which the policy chooses the jobs.
    fn move_class_earlier(
        &mut self,
        now: Time,
        class: u8,
        first_new: usize,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        if self.pending.in_class(class) == 0 {
            return Ok(());
        }
        let old = self.pending.entries().iter().take(first_new).filter(|e| e.row != NO_ROW);
        let mut touched: Vec<u32> = Vec::new();
        let mut candidates: Vec<Entry> = Vec::new();
        for entry in old {
            if entry.class == self.class {
                touched.push(entry.user);
            }
            if entry.class == class && self.place[entry.user as usize] == NO_ROW {
                self.place[entry.user as usize] = candidates.len() as u32;
                candidates.push(*entry);
            }
        }
        let last_old =
            self.pending.entries().iter().take(first_new).rev().find(|e| e.row != NO_ROW).map_or(0, |e| e.row);
        // The new ones too are known to the policy.
        let new = self.pending.entries().iter().skip(first_new).filter(|e| e.row != NO_ROW && e.class == self.class);
        touched.extend(new.map(|e| e.user));
        touched.extend(candidates.iter().map(|c| c.user));
        touched.sort_unstable();
        touched.dedup();
        touched.iter().for_each(|&user| policy.set_first_pending(UserId(user), None));
        for entry in &candidates {
            policy.set_first_pending(UserId(entry.user), Some(&self.pending_job(entry.row)));
        }
        while let Some(user) = policy.next(now) {
            self.progress.check()?;
            self.decisions += 1;
            let Some(candidate) = candidates.get_mut(self.place[user.index()] as usize) else { break };
            let entry = *candidate;
            let next = self.pending.after(class, user.0, entry.row).next().filter(|e| e.row <= last_old);
            if let Some(next) = next {
                *candidate = next;
            }
            let kind = &self.jobs.kinds[entry.kind as usize];
            if let Some(plan) = &mut self.plan {
                plan.move_earlier(self.machines.site, entry.row, kind, entry.estimate, now.nanos());
            }
            self.start_if_due(now, entry.row, policy)?;
            policy.set_first_pending(user, next.map(|e| self.pending_job(e.row)).as_ref());
        }
        candidates.iter().for_each(|c| self.place[c.user as usize] = NO_ROW);
        for user in touched {
            self.notify_first_pending(user, policy);
        }
        Ok(())
    }

    fn start_if_due(&mut self, now: Time, row: u32, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let held = self.plan.as_mut().and_then(|plan| plan.start_if_due(row, now.nanos()));
        let Some(held) = held else { return Ok(()) };
        let kind = &self.jobs.kinds[self.jobs.kind[row as usize] as usize];
        self.machines.take_placements(kind, &held);
        self.start(now, row, held, false, policy)?;
        let user = self.user_of(row);
        self.notify_first_pending(user, policy);
        Ok(())
    }
}
