//! Conservative backfilling, where jobs end earlier than expected: reservations move to earlier starts.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::availability_profile::Profile;
use super::free_totals::Window;
use super::kind::Kind;
use super::placements::Placements;
use super::release_log::ReleaseLog;
use super::reservation_plan::{Earlier, Plan, Reservation, is_of_equal_chunks};
use super::shortfall::Shortfall;
use super::site::Site;

/// On no more machines than these each search looks at the profiles of the machines: few jobs that wait there are alike, and
/// profiles are long. The model's machines are few, and both ways are compared with it.
const FEW_MACHINES: usize = if cfg!(debug_assertions) { 6 } else { 64 };

impl Plan {
    /// Releases what a job that finished before its estimate no longer needs.
    pub(super) fn release_early(&mut self, site: &Site, kind: &Kind, held: &Placements, now: u64, expected: u64) {
        self.forget(now);
        self.give(site, kind, held, now, expected);
        let (machines, chunks) = held.iter().fold((0, 0), |sum, (_, n)| (sum.0 + 1, sum.1 + u64::from(n)));
        self.log.push(&kind.chunk, machines, chunks, now, expected);
        for (_, chunks, chunk) in held.other_chunks(kind) {
            self.log.push(chunk, 1, chunks.into(), now, expected);
        }
        self.note_release(held);
    }

    /// Notes that capacity of the machines of a job was released.
    fn note_release(&mut self, held: &Placements) {
        self.releases += 1;
        held.machines().for_each(|machine| self.machines.note_release(machine, self.releases));
    }

    /// Notes that a job has moved to an earlier start: where it was and stays, it releases no more than the time after its
    /// new end.
    fn note_move(&mut self, kind: &Kind, old: &Reservation, new: &Reservation) {
        let mut stays = new.held.iter().peekable();
        let (mut left, mut kept) = ((0, 0), (0, 0));
        for (machine, chunks) in old.held.iter() {
            while stays.next_if(|(other, _)| *other < machine).is_some() {}
            let stay = stays.next_if(|(other, _)| *other == machine).map_or(0, |(_, n)| n.min(chunks));
            kept = (kept.0 + u32::from(stay > 0), kept.1 + u64::from(stay));
            left = (left.0 + u32::from(chunks > stay), left.1 + u64::from(chunks - stay));
        }
        self.log.push(&kind.chunk, left.0, left.1, old.start, old.end);
        self.log.push(&kind.chunk, kept.0, kept.1, old.start.max(new.end), old.end);
        for (_, chunks, chunk) in old.held.other_chunks(kind) {
            self.log.push(chunk, 1, chunks.into(), old.start, old.end);
        }
        self.note_release(&old.held);
    }

    /// Moves a job to an earlier start, if there is one.
    pub(super) fn move_earlier(&mut self, site: &Site, row: u32, kind: &Kind, estimate: u64, now: u64) {
        let Some(old) = self.reservations.get_mut(&row) else { return };
        let slowest = site.groups[usize::from(kind.slowest)].scale(estimate);
        let shortest = match kind.copies {
            1 => kind.groups.iter().map(|&g| site.groups[usize::from(g)].scale(estimate)).min().unwrap_or(0),
            _ => slowest,
        };
        if !kind.licences.is_empty() {
            return self.move_with_licences(site, row, kind, (estimate, shortest), now);
        }
        // For a job of several sizes of chunks nothing is inferred from the last search.
        if !kind.is_uneven() && !old.shortfall.consider(&self.log, kind, slowest, now) {
            return;
        }
        if is_of_equal_chunks(kind) {
            return self.move_together(site, row, kind, slowest, now);
        }
        let (from, before) = if kind.is_uneven() { (now, old.start) } else { old.shortfall.hull(slowest, now) };
        // From its start on the job has what it holds.
        let window = Window { from, before, length: shortest, until: old.start };
        let searched_at = old.searched_at;
        let from = self.totals.next_start(kind, window, &mut vec![0; self.width]);
        let mut released = self.machines.released_since(searched_at);
        let is_possible = kind.is_uneven() || released.any(|(_, group)| kind.groups.contains(&group));
        drop(released);
        let Some(from) = from.filter(|_| is_possible) else {
            if let Some(old) = self.reservations.get_mut(&row) {
                old.searched(self.releases, &self.log);
            }
            return;
        };
        if let Some((on, _)) = old.held.only().filter(|_| kind.copies == 1) {
            let earlier = Earlier { than: window.before, on, start: old.start, end: old.end, searched_at };
            let new = self.earliest_of_one(site, kind, estimate, from, Some(earlier));
            match (new, self.reservations.get_mut(&row)) {
                (None, Some(old)) => old.searched(self.releases, &self.log),
                (new, _) => {
                    let Some(old) = self.remove(site, row, kind) else { return };
                    self.replace(site, row, kind, old, new);
                }
            }
            return;
        }
        let Some(old) = self.remove(site, row, kind) else { return };
        let new = self.earliest_together(site, kind, Window { from, until: u64::MAX, ..window });
        self.replace(site, row, kind, old, new);
    }

    /// The same for a job that needs licences; `lengths`: its estimate, and the least time that it takes on any machine.
    ///
    /// Nothing is inferred from the last search: it may have found too few licences where enough was free on machines.
    fn move_with_licences(&mut self, site: &Site, row: u32, kind: &Kind, lengths: (u64, u64), now: u64) {
        let (estimate, shortest) = lengths;
        let Some(old) = self.reservations.get(&row) else { return };
        let (start, end) = (old.start, old.end);
        let mut from = now;
        if let Some(licences) = &mut self.licences {
            licences.give(start, end, &kind.licences, 1);
            let first = licences.earliest(now, shortest, &kind.licences, start);
            licences.take(start, end, &kind.licences, 1);
            from = first.unwrap_or(start);
        }
        // From its start on the job has what it holds.
        let window = Window { from, before: start, length: shortest, until: start };
        let Some(from) = self.totals.next_start(kind, window, &mut vec![0; self.width]) else { return };
        let Some(old) = self.remove(site, row, kind) else { return };
        let new = self.earliest_before(site, kind, estimate, from, start);
        self.replace(site, row, kind, old, new);
    }

    /// The same for a job of equal chunks, which takes so long.
    fn move_together(&mut self, site: &Site, row: u32, kind: &Kind, length: u64, now: u64) {
        let Some(old) = self.reservations.get(&row) else { return };
        let mut shortfall = Shortfall::new(&self.log);
        let (mut fitting, mut beside) = (std::mem::take(&mut self.fitting), None);
        let mut most_free = vec![0; self.width];
        let without = OnceCell::new();
        let wanted = u64::from(kind.full_chunks());
        let start = old.shortfall.search(length, now, &mut shortfall, |from, before, shortfall| {
            // From its start on the job has what it holds.
            let window = Window { from, before, length, until: old.start };
            if site.len() <= FEW_MACHINES {
                let without = || without.get_or_init(|| self.without(kind, old));
                return self.next_start_together(kind, window, without, shortfall);
            }
            let start = self.next_start_by_totals(kind, window, &mut most_free, shortfall)?;
            let beside = beside.get_or_insert_with(|| {
                let own = self.classes_of(&old.held);
                fitting.beside(kind, length, &self.machines, now, old.start, &own)
            });
            fitting.first(beside, start, before, wanted, shortfall)
        });
        self.fitting = fitting;
        let Some(start) = start else {
            if let Some(old) = self.reservations.get_mut(&row) {
                old.shortfall = shortfall;
            }
            return;
        };
        let Some(old) = self.remove(site, row, kind) else { return };
        let new = self.place(site, kind, start, length).map(|held| self.reservation(start, length, held, shortfall));
        self.replace(site, row, kind, old, new);
    }

    /// Inserts a new reservation, if there is one, in the place of one that has been removed.
    fn replace(&mut self, site: &Site, row: u32, kind: &Kind, mut old: Reservation, new: Option<Reservation>) {
        let Some(mut new) = new else {
            old.searched(self.releases, &self.log);
            return self.insert(site, row, kind, old);
        };
        self.note_move(kind, &old, &new);
        new.searched_at = self.releases;
        new.shortfall.skip_to_end(&self.log);
        self.insert(site, row, kind, new);
    }

    /// The profiles of the machines of a job without its reservation, by class and how many chunks it has on each; and on
    /// how many machines.
    fn without(&self, kind: &Kind, own: &Reservation) -> BTreeMap<(u32, u32), (Profile, u32)> {
        let mut without = BTreeMap::new();
        for (machine, chunks) in own.held.iter() {
            let class = self.machines.class_of(machine);
            let make = || {
                let mut profile = self.machines.profile_of(class).clone();
                profile.give(own.start, own.end, &kind.chunk, chunks);
                (profile, 0)
            };
            without.entry((class, chunks)).or_insert_with(make).1 += 1;
        }
        without
    }

    /// On how many machines of which class a job has how many equal chunks: class, chunks and machines.
    fn classes_of(&self, held: &Placements) -> Vec<(u32, u32, u32)> {
        let mut found: Vec<(u32, u32, u32)> = Vec::new();
        let same = |a: &(u32, u32, u32), b: &(u32, u32, u32)| (a.0, a.1) == (b.0, b.1);
        for (machine, chunks) in held.iter() {
            let next = (self.machines.class_of(machine), chunks, 1);
            match found.last_mut().filter(|last| same(last, &next)) {
                Some(last) => last.2 += 1,
                None => found.push(next),
            }
        }
        found.sort_unstable();
        found.dedup_by(|next, first| {
            let joins = same(first, next);
            first.2 += if joins { next.2 } else { 0 };
            joins
        });
        found
    }
}

impl Reservation {
    /// Notes a search without success through all starts at which there was a gain.
    fn searched(&mut self, releases: u64, log: &ReleaseLog) {
        self.searched_at = releases;
        self.shortfall = Shortfall::until(self.start, 1, log);
    }
}
