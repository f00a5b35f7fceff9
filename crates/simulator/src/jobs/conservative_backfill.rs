//! Conservative backfilling (Mu'alem and Feitelson 2001): every job has a reserved start from its submission on.

use std::collections::{BTreeSet, HashMap};

use evenhand_model::{Time, UserId};
use evenhand_policies::Policy;

use super::availability_profile::Profile;
use super::engine::Engine;
use super::head_reservation::may_use;
use super::kind::{Kind, copies, fits};
use super::machine_state::Placements;
use super::pending_jobs::{Entry, NO_ROW};
use super::placement::{Placement, Scores};
use super::site::Site;
use super::uneven_chunks;
use crate::SimulationError;

/// A job's place in the plan.
#[derive(Clone, Debug)]
struct Reservation {
    start: u64,
    end: u64,
    held: Placements,
    /// The plan's count of changes when it was last looked for an earlier one.
    searched_at: u64,
}

/// All reservations and the capacity that they leave free.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    profiles: Vec<Profile>,
    reservations: HashMap<u32, Reservation>,
    by_start: BTreeSet<(u64, u32)>,
    scores: Scores,
    /// Number of times capacity was released.
    changes: u64,
    /// By machine: that number when capacity of it was last released; 0 if that never was.
    released_at: Vec<u64>,
    /// The machines of which capacity was ever released, by that number.
    by_release: BTreeSet<(u64, u32)>,
}

/// What a new reservation for a job that has one must improve on.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    /// It must start before this.
    than: u64,
    /// The machines that the job may use and of which capacity was released since its last search, ascending.
    released: &'a [u32],
}

impl Plan {
    pub(super) fn new(site: &Site, width: usize, rule: Placement) -> Plan {
        let each = |g: &super::site::Group| vec![Profile::new(&g.has); g.count as usize];
        Plan {
            profiles: site.groups.iter().flat_map(each).collect(),
            reservations: HashMap::new(),
            by_start: BTreeSet::new(),
            scores: Scores::new(rule, site, width),
            changes: 0,
            released_at: vec![0; site.len()],
            by_release: BTreeSet::new(),
        }
    }

    /// Notes that capacity of a machine was released with the current change.
    fn note_release(&mut self, machine: u32) {
        let last = std::mem::replace(&mut self.released_at[machine as usize], self.changes);
        self.by_release.remove(&(last, machine));
        self.by_release.insert((self.changes, machine));
    }

    /// The machines that a kind may use and of which capacity was released since, ascending. A step for each machine of
    /// which any was, not for each of the site.
    fn released_since(&self, searched_at: u64, kind: &Kind, site: &Site) -> Vec<u32> {
        let released = self.by_release.range((searched_at + 1, 0)..).map(|(_, machine)| *machine);
        let mut released: Vec<u32> = released.filter(|machine| may_use(kind, *machine, site)).collect();
        released.sort_unstable();
        released
    }

    /// The next promised start.
    pub(super) fn next_start(&self) -> Option<Time> {
        self.by_start.first().map(|(start, _)| Time::from_nanos(*start))
    }

    /// Releases what a job that finished before its estimate no longer needs.
    pub(super) fn release_early(&mut self, kind: &Kind, held: &Placements, now: u64, expected: u64) {
        self.changes += 1;
        for (machine, chunks, chunk) in held.chunks(kind) {
            self.profiles[machine as usize].give(now, expected, chunk, chunks);
            self.note_release(machine);
        }
    }

    fn insert(&mut self, row: u32, kind: &Kind, reservation: Reservation) {
        for (machine, chunks, chunk) in reservation.held.chunks(kind) {
            self.profiles[machine as usize].take(reservation.start, reservation.end, chunk, chunks);
        }
        self.by_start.insert((reservation.start, row));
        self.reservations.insert(row, reservation);
    }

    fn remove(&mut self, row: u32, kind: &Kind) -> Option<Reservation> {
        let reservation = self.reservations.remove(&row)?;
        self.by_start.remove(&(reservation.start, row));
        for (machine, chunks, chunk) in reservation.held.chunks(kind) {
            self.profiles[machine as usize].give(reservation.start, reservation.end, chunk, chunks);
        }
        Some(reservation)
    }

    /// The earliest start that breaks no promise, and where its rule puts the job then. With `earlier` only a start that
    /// is; a job of one chunk then is put on one of the machines of which capacity was released.
    fn earliest(
        &mut self,
        site: &Site,
        kind: &Kind,
        estimate: u64,
        now: u64,
        earlier: Option<Earlier<'_>>,
    ) -> Option<Reservation> {
        let machines = || {
            let groups = kind.groups.iter().map(|&g| &site.groups[usize::from(g)]);
            groups.flat_map(|g| g.first..g.first + g.count)
        };
        let before = earlier.map_or(u64::MAX, |earlier| earlier.than);
        if kind.copies == 1 {
            return match earlier {
                Some(earlier) => {
                    self.earliest_of_one(site, kind, estimate, now, before, earlier.released.iter().copied())
                }
                None => self.earliest_of_one(site, kind, estimate, now, before, machines()),
            };
        }
        let length = site.groups[usize::from(kind.slowest)].scale(estimate);
        let profiles = &self.profiles;
        let width = kind.chunk.len();
        let mut least = vec![0; width];
        let steps = |m: u32| profiles[m as usize].times_after(now).iter().copied().take_while(|time| *time < before);
        let mut times: Vec<u64> = machines().flat_map(steps).collect();
        times.extend(Some(now).filter(|now| *now < before));
        times.sort_unstable();
        times.dedup();
        if kind.is_uneven() {
            return self.earliest_uneven(site, kind, length, &times);
        }
        let start = times.into_iter().find(|&t| {
            let mut left = u128::from(kind.copies);
            let mut last_fits = false;
            machines().any(|m| {
                let chunks = profiles[m as usize].copies(t, length, &kind.chunk);
                if kind.last.is_some() && !last_fits {
                    profiles[m as usize].min_free(t, length, &mut least);
                    last_fits = kind.has_room_for_last(&least, chunks);
                }
                left = left.saturating_sub(chunks);
                left == 0 || (left == 1 && last_fits)
            })
        })?;
        let numbers: Vec<u32> = machines().collect();
        let mut free = vec![0; numbers.len() * width];
        for (row, m) in free.chunks_exact_mut(width).zip(&numbers) {
            profiles[*m as usize].min_free(start, length, row);
        }
        let mut held = Placements::default();
        let mut left = kind.full_chunks();
        self.scores.of_chunk(&kind.chunk);
        let is_first_fit = self.scores.rule == Placement::FirstFit;
        let mut from = 0;
        while left > 0 {
            let mut rows = free.chunks_exact(width).enumerate().skip(from).filter(|(_, row)| fits(&kind.chunk, row));
            let scores = &mut self.scores;
            let at = match is_first_fit {
                true => rows.next()?.0,
                false => rows.map(|(i, row)| (scores.score(row), i)).min()?.1,
            };
            // First fit fills one machine after another.
            from = if is_first_fit { at } else { 0 };
            let row = &mut free[at * width..][..width];
            let chunks = match self.scores.rule {
                Placement::FirstFit | Placement::BestFit => copies(&kind.chunk, row).min(u128::from(left)) as u32,
                Placement::WorstFit | Placement::Dominant => 1,
            };
            row.iter_mut().zip(&kind.chunk).for_each(|(f, c)| *f -= c * u64::from(chunks));
            held.add(numbers[at], chunks);
            left -= chunks;
        }
        held.merge();
        if let Some(last) = &kind.last {
            self.scores.of_chunk(last);
            let rows = free.chunks_exact(width).enumerate().filter(|(_, row)| fits(last, row));
            let scores = &mut self.scores;
            let (_, at) = rows.map(|(i, row)| (scores.score(row), i)).min()?;
            held.last = Some(numbers[at]);
        }
        Some(Reservation { start, end: start.saturating_add(length), held, searched_at: self.changes })
    }

    /// The first of these times from which on all chunks of a job of several sizes fit, and where.
    fn earliest_uneven(&mut self, site: &Site, kind: &Kind, length: u64, times: &[u64]) -> Option<Reservation> {
        let width = kind.chunk.len();
        let mut free = vec![0; site.len() * width];
        for &start in times {
            for (row, profile) in free.chunks_exact_mut(width).zip(&self.profiles) {
                profile.min_free(start, length, row);
            }
            let now = |machine: u32| &free[machine as usize * width..][..width];
            let found = uneven_chunks::place(
                site,
                kind,
                &uneven_chunks::Free { now: &now, later: &|_| None },
                &mut self.scores,
            );
            if let Some(held) = found {
                let end = start.saturating_add(length);
                return Some(Reservation { start, end, held, searched_at: self.changes });
            }
        }
        None
    }

    /// The same for a job of one chunk on one of these machines, which are in ascending order.
    fn earliest_of_one(
        &mut self,
        site: &Site,
        kind: &Kind,
        estimate: u64,
        now: u64,
        before: u64,
        machines: impl Iterator<Item = u32>,
    ) -> Option<Reservation> {
        let mut best: Option<(u64, u64, u32)> = None;
        let mut length = 0;
        let mut free = vec![0; kind.chunk.len()];
        self.scores.of_chunk(&kind.chunk);
        for machine in machines {
            let takes = site.groups[site.group_of(machine)].scale(estimate);
            let profile = &self.profiles[machine as usize];
            let start = profile.earliest(now, takes, &kind.chunk);
            if start >= before || best.is_some_and(|b| start > b.0) {
                continue;
            }
            profile.min_free(start, takes, &mut free);
            let score = self.scores.score(&free);
            if best.is_none_or(|b| (start, score, machine) < b) {
                best = Some((start, score, machine));
                length = takes;
            }
            if start == now && self.scores.rule == Placement::FirstFit {
                break;
            }
        }
        let (start, _, machine) = best?;
        let mut held = Placements::default();
        held.add(machine, 1);
        Some(Reservation { start, end: start.saturating_add(length), held, searched_at: self.changes })
    }

    /// Moves a job to an earlier start, if there is one.
    fn move_earlier(&mut self, site: &Site, row: u32, kind: &Kind, estimate: u64, now: u64) {
        let changes = self.changes;
        let Some(old) = self.reservations.get_mut(&row) else { return };
        let searched_at = std::mem::replace(&mut old.searched_at, changes);
        let released = self.released_since(searched_at, kind, site);
        // For a job of several sizes of chunks nothing is inferred from the last search.
        if released.is_empty() && !kind.is_uneven() {
            return;
        }
        let Some(old) = self.remove(row, kind) else { return };
        let earlier = Earlier { than: old.start, released: &released };
        match self.earliest(site, kind, estimate, now, Some(earlier)) {
            Some(new) => {
                self.changes += 1;
                old.held.machines().for_each(|machine| self.note_release(machine));
                self.insert(row, kind, Reservation { searched_at: self.changes, ..new });
            }
            None => self.insert(row, kind, old),
        }
    }
}

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
            let found = plan.earliest(self.machines.site, kind, entry.estimate, now.nanos(), None);
            // A job that is not refused fits on empty machines.
            let Some(reservation) = found else { continue };
            self.first_reservation[entry.row as usize] = reservation.start;
            plan.insert(entry.row, kind, reservation);
        }
        let due: Vec<u32> =
            self.plan.iter().flat_map(|p| p.by_start.iter()).take_while(|d| d.0 == now.nanos()).map(|d| d.1).collect();
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
        let Some(plan) = &mut self.plan else { return Ok(()) };
        let Some(reservation) = plan.reservations.get(&row).filter(|p| p.start == now.nanos()) else { return Ok(()) };
        let held = reservation.held.clone();
        // Its capacity stays taken in the plan until it has finished.
        plan.reservations.remove(&row);
        plan.by_start.remove(&(now.nanos(), row));
        let kind = &self.jobs.kinds[self.jobs.kind[row as usize] as usize];
        for machine in held.machines() {
            plan.profiles[machine as usize].forget(now.nanos());
        }
        self.machines.take_placements(kind, &held);
        self.start(now, row, held, false, policy)?;
        let user = self.user_of(row);
        self.notify_first_pending(user, policy);
        Ok(())
    }
}
