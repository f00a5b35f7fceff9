//! The plan of conservative backfilling: a reservation for every waiting job, and the capacity that all of them leave free.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use evenhand_model::Time;

use super::availability_profile::Profile;
use super::best_machine::BestMachine;
use super::fitting_chunks::FittingChunks;
use super::free_totals::{FreeTotals, Window};
use super::kind::Kind;
use super::machine_profiles::MachineProfiles;
use super::placement::{Placement, Scores};
use super::placements::Placements;
use super::release_log::ReleaseLog;
use super::shortfall::Shortfall;
use super::site::{Group, Site};
use super::start_search::StartSearch;

/// A job's place in the plan.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) held: Placements,
    /// The plan's count of releases when it was last looked for an earlier one.
    pub(super) searched_at: u64,
    /// Why it has no earlier one.
    pub(super) shortfall: Shortfall,
}

/// All reservations and the capacity that they leave free.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Number of resources.
    pub(super) width: usize,
    pub(super) machines: MachineProfiles,
    pub(super) totals: FreeTotals,
    /// The licences that are free, which no machine has; `None` if no job needs any, or reservations are not of them.
    pub(super) licences: Option<Profile>,
    pub(super) reservations: HashMap<u32, Reservation>,
    by_start: BTreeSet<(u64, u32)>,
    pub(super) scores: Scores,
    /// Number of times capacity was released.
    pub(super) releases: u64,
    /// What was released.
    pub(super) log: ReleaseLog,
    /// What a job holds, by group and resource.
    amounts: Vec<u64>,
    /// By class of machines: what is free throughout the time that is looked at.
    pub(super) free: Vec<u64>,
    pub(super) fitting: FittingChunks,
}

/// What a new reservation for a job of one chunk that has one must improve on.
#[derive(Clone, Copy)]
pub(super) struct Earlier {
    /// What its start must precede.
    pub(super) than: u64,
    /// The machine, which is free of the job itself.
    pub(super) on: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) searched_at: u64,
}

impl Plan {
    /// An empty plan; `licences`: how many there are of each, if reservations are of licences as well.
    pub(super) fn new(site: &Site, width: usize, rule: Placement, licences: Option<&[u64]>) -> Plan {
        // The sum over all machines is the site's capacity, so it is below 2^64.
        let together = |g: &Group| g.has.iter().map(|has| has * u64::from(g.count)).collect::<Vec<u64>>();
        Plan {
            width,
            machines: MachineProfiles::new(site),
            totals: FreeTotals::new(site.groups.iter().flat_map(together).collect(), width),
            licences: licences.map(Profile::new),
            reservations: HashMap::new(),
            by_start: BTreeSet::new(),
            scores: Scores::new(rule, site, width),
            releases: 0,
            log: ReleaseLog::new(width),
            amounts: vec![0; site.groups.len() * width],
            free: Vec::new(),
            fitting: FittingChunks::default(),
        }
    }

    /// The next promised start.
    pub(super) fn next_start(&self) -> Option<Time> {
        self.by_start.first().map(|(start, _)| Time::from_nanos(*start))
    }

    /// The jobs whose promised start is an instant that is not past, in the workload's order.
    pub(super) fn due(&self, now: u64) -> Vec<u32> {
        self.by_start.iter().take_while(|(start, _)| *start == now).map(|(_, row)| *row).collect()
    }

    /// What a job holds from now on, if its promised start is now. Its capacity stays taken until it has finished.
    pub(super) fn start_if_due(&mut self, row: u32, now: u64) -> Option<Placements> {
        self.by_start.remove(&(now, row)).then(|| self.reservations.remove(&row).map(|found| found.held))?
    }

    /// Forgets what was before `now`.
    pub(super) fn forget(&mut self, now: u64) {
        self.machines.forget(now);
        self.totals.forget(now);
        if let Some(licences) = &mut self.licences {
            licences.forget(now);
        }
    }

    /// Adds up what a job holds in each group.
    fn add_up(&mut self, site: &Site, kind: &Kind, held: &Placements) {
        self.amounts.fill(0);
        for (machine, chunks, chunk) in held.chunks(kind) {
            let of_group = &mut self.amounts[site.group_of(machine) * self.width..];
            of_group.iter_mut().zip(chunk).for_each(|(sum, amount)| *sum += amount * u64::from(chunks));
        }
    }

    fn take(&mut self, site: &Site, kind: &Kind, held: &Placements, from: u64, to: u64) {
        self.add_up(site, kind, held);
        self.totals.take(from, to, &self.amounts);
        self.machines.take(from, to, &kind.chunk, held.iter());
        for (machine, chunks, chunk) in held.other_chunks(kind) {
            self.machines.take(from, to, chunk, std::iter::once((machine, chunks)));
        }
        if let Some(licences) = self.licences.as_mut().filter(|_| !kind.licences.is_empty()) {
            licences.take(from, to, &kind.licences, 1);
        }
    }

    pub(super) fn give(&mut self, site: &Site, kind: &Kind, held: &Placements, from: u64, to: u64) {
        self.add_up(site, kind, held);
        self.totals.give(from, to, &self.amounts);
        self.machines.give(from, to, &kind.chunk, held.iter());
        for (machine, chunks, chunk) in held.other_chunks(kind) {
            self.machines.give(from, to, chunk, std::iter::once((machine, chunks)));
        }
        if let Some(licences) = self.licences.as_mut().filter(|_| !kind.licences.is_empty()) {
            licences.give(from, to, &kind.licences, 1);
        }
    }

    /// How many jobs have a reservation.
    pub(super) fn reservations(&self) -> usize {
        self.reservations.len()
    }

    /// The jobs with a reservation, by start.
    pub(super) fn reserved_rows(&self) -> Vec<u32> {
        self.by_start.iter().map(|(_, row)| *row).collect()
    }

    /// When a job starts by its reservation.
    pub(super) fn reserved_start(&self, row: u32) -> Option<u64> {
        self.reservations.get(&row).map(|reservation| reservation.start)
    }

    /// Notes a reservation, and keeps its capacity free if it `protects`.
    pub(super) fn reserve(&mut self, site: &Site, row: u32, kind: &Kind, reservation: Reservation, protects: bool) {
        if protects {
            return self.insert(site, row, kind, reservation);
        }
        self.by_start.insert((reservation.start, row));
        self.reservations.insert(row, reservation);
    }

    /// Forgets a reservation; `protects`: whether it kept capacity free.
    pub(super) fn unreserve(&mut self, site: &Site, row: u32, kind: &Kind, protects: bool) -> Option<Reservation> {
        if protects {
            return self.remove(site, row, kind);
        }
        let reservation = self.reservations.remove(&row)?;
        self.by_start.remove(&(reservation.start, row));
        Some(reservation)
    }

    /// Takes the capacity of a job that runs.
    pub(super) fn hold(&mut self, site: &Site, kind: &Kind, held: &Placements, from: u64, to: u64) {
        self.take(site, kind, held, from, to);
    }

    /// Releases capacity of a job that runs, of which no reservation can profit yet.
    pub(super) fn release(&mut self, site: &Site, kind: &Kind, held: &Placements, from: u64, to: u64) {
        self.give(site, kind, held, from, to);
    }

    pub(super) fn insert(&mut self, site: &Site, row: u32, kind: &Kind, reservation: Reservation) {
        self.take(site, kind, &reservation.held, reservation.start, reservation.end);
        self.by_start.insert((reservation.start, row));
        self.reservations.insert(row, reservation);
    }

    pub(super) fn remove(&mut self, site: &Site, row: u32, kind: &Kind) -> Option<Reservation> {
        let reservation = self.reservations.remove(&row)?;
        self.by_start.remove(&(reservation.start, row));
        self.give(site, kind, &reservation.held, reservation.start, reservation.end);
        Some(reservation)
    }

    /// The earliest start that breaks no promise, and where its rule puts the job then.
    pub(super) fn earliest(&mut self, site: &Site, kind: &Kind, estimate: u64, now: u64) -> Option<Reservation> {
        self.earliest_before(site, kind, estimate, now, u64::MAX)
    }

    /// The same for a start from `from` on that is before `before`.
    pub(super) fn earliest_before(
        &mut self,
        site: &Site,
        kind: &Kind,
        estimate: u64,
        from: u64,
        before: u64,
    ) -> Option<Reservation> {
        if kind.copies == 1 {
            let found = self.earliest_of_one(site, kind, estimate, from, None);
            return found.filter(|found| found.start < before);
        }
        let length = site.groups[usize::from(kind.slowest)].scale(estimate);
        let mut window = Window { from, before, length, until: u64::MAX };
        loop {
            window.from = self.next_with_licences(kind, window.from, length)?;
            let found = self.earliest_together(site, kind, window)?;
            window.from = self.next_with_licences(kind, found.start, length)?;
            if window.from == found.start {
                return Some(found);
            }
        }
    }

    /// The first instant, `from` or a later one, from which on the licences of a job are free for so long.
    fn next_with_licences(&self, kind: &Kind, from: u64, length: u64) -> Option<u64> {
        match self.licences_for(kind) {
            Some(licences) => licences.earliest(from, length, &kind.licences, u64::MAX),
            None => Some(from),
        }
    }

    /// The free licences, if a job needs some and reservations are of them.
    fn licences_for(&self, kind: &Kind) -> Option<&Profile> {
        self.licences.as_ref().filter(|_| !kind.licences.is_empty())
    }

    /// The same for a job of several chunks, with a start in the window.
    ///
    /// Chunks that fit at some time fit at the time before it at which the last of the jobs finished that hold capacity of
    /// their machines, or now; so those times are all that is looked at. With several sizes of chunks that is the rule.
    pub(super) fn earliest_together(&mut self, site: &Site, kind: &Kind, mut window: Window) -> Option<Reservation> {
        let (mut shortfall, without) = (Shortfall::new(&self.log), BTreeMap::new());
        loop {
            let start = match kind.is_uneven() {
                true => self.totals.next_start(kind, window, &mut vec![0; self.width]),
                false => self.next_start_together(kind, window, || &without, &mut shortfall),
            };
            let start = start?;
            let held = match kind.is_uneven() {
                true => self.place_uneven(site, kind, start, window.length),
                false => self.place(site, kind, start, window.length),
            };
            if let Some(held) = held {
                if !is_of_equal_chunks(kind) {
                    shortfall = Shortfall::until(start, 1, &self.log);
                }
                return Some(self.reservation(start, window.length, held, shortfall));
            }
            window.from = self.totals.next_finish(start)?;
        }
    }

    /// The first start in the window at which enough is free on all machines together; notes how many chunks are missing
    /// before. `most_free` is of no use to the caller.
    pub(super) fn next_start_by_totals(
        &self,
        kind: &Kind,
        window: Window,
        most_free: &mut [u64],
        shortfall: &mut Shortfall,
    ) -> Option<u64> {
        most_free.fill(0);
        let next = self.totals.next_start(kind, window, most_free);
        let start = next.unwrap_or(window.before);
        if start > window.from {
            let by_totals = most_free.iter().zip(&kind.chunk).filter(|(_, chunk)| **chunk > 0);
            let most = by_totals.map(|(free, chunk)| free / chunk).max().unwrap_or(0);
            shortfall.note(start, u64::from(kind.full_chunks()).saturating_sub(most));
        }
        next
    }

    /// The first start in the window at which the equal chunks of a job fit; notes how many are missing before.
    ///
    /// `without`: the profiles of the job's machines without its reservation, as [`Plan::without`] has them.
    pub(super) fn next_start_together<'p>(
        &'p self,
        kind: &'p Kind,
        mut window: Window,
        without: impl Fn() -> &'p BTreeMap<(u32, u32), (Profile, u32)>,
        shortfall: &mut Shortfall,
    ) -> Option<u64> {
        let wanted = u128::from(kind.full_chunks());
        let missing = |most: u128| u64::try_from(wanted.saturating_sub(most)).unwrap_or(u64::MAX);
        let mut most_free = vec![0; self.width];
        let mut search: Option<StartSearch<'_>> = None;
        loop {
            let start = self.next_start_by_totals(kind, window, &mut most_free, shortfall)?;
            let search = match &mut search {
                Some(search) => {
                    search.advance(start);
                    search
                }
                None => {
                    let profiles = self.profiles(kind, without());
                    search.insert(StartSearch::new(start, window.before, window.length, kind.equal_chunks(), profiles))
                }
            };
            if search.chunks() >= wanted {
                return Some(start);
            }
            // Where the totals leave no later start, it is not found out when more chunks fit.
            let mut next = self.totals.next_finish(start);
            let later = Window { from: next.unwrap_or(u64::MAX), ..window };
            if self.totals.next_start(kind, later, &mut most_free).is_some() {
                next = self.totals.next_finish(search.next_change() - 1);
            }
            window.from = next.unwrap_or(u64::MAX).min(window.before);
            shortfall.note(window.from, missing(search.chunks()));
            if window.from == window.before {
                return None;
            }
        }
    }

    /// The profiles of the machines that a kind may use, with these instead of those of their class, and how many machines
    /// have each.
    fn profiles<'p>(
        &'p self,
        kind: &'p Kind,
        without: &'p BTreeMap<(u32, u32), (Profile, u32)>,
    ) -> impl Iterator<Item = (&'p Profile, u32)> {
        let classes = self.machines.classes().filter(|(_, group, _)| kind.groups.contains(group));
        let mut own = without.iter().map(|((class, _), (_, count))| (*class, *count)).peekable();
        let others = classes.filter_map(move |(class, _, mut count)| {
            // Both are in the order of the classes.
            while let Some((_, own)) = own.next_if(|(other, _)| *other == class) {
                count -= own;
            }
            (count > 0).then(|| (self.machines.profile_of(class), count))
        });
        others.chain(without.values().map(|(profile, count)| (profile, *count)))
    }

    /// The earliest start of a job of one chunk. With `earlier` only a start that is, on a machine of which capacity was
    /// released since the last search: no other machine can have become free earlier.
    pub(super) fn earliest_of_one(
        &mut self,
        site: &Site,
        kind: &Kind,
        estimate: u64,
        now: u64,
        earlier: Option<Earlier>,
    ) -> Option<Reservation> {
        if let Some(group) = only_machine(site, kind).filter(|_| self.licences_for(kind).is_none()) {
            let (before, until) = earlier.map_or((u64::MAX, u64::MAX), |earlier| (earlier.than, earlier.start));
            let window = Window { from: now, before, length: group.scale(estimate), until };
            let start = self.totals.next_start(kind, window, &mut vec![0; self.width])?;
            return Some(self.reservation_of_one((start, window.length, Placements::one(group.first))));
        }
        let Plan { machines, scores, licences, .. } = self;
        let licences = licences.as_ref().filter(|_| !kind.licences.is_empty());
        let free = vec![0; self.width];
        let mut best = BestMachine { site, kind, estimate, now, scores, free, licences, found: None };
        best.scores.of_chunk(&kind.chunk);
        let Some(earlier) = earlier else {
            for (class, group, _) in machines.classes().filter(|(_, group, _)| kind.groups.contains(group)) {
                if let Some(machine) = machines.members_of(class).next(0) {
                    best.consider(group, machines.profile_of(class), machine, u64::MAX);
                }
            }
            let found = best.placed();
            return found.map(|found| self.reservation_of_one(found));
        };
        let latest = earlier.than - 1;
        for (class, group) in machines.released_since(earlier.searched_at) {
            let members = machines.members_of(class);
            let first = members.next(0).filter(|machine| *machine != earlier.on);
            let machine = first.or_else(|| members.next(earlier.on + 1));
            if let Some(machine) = machine.filter(|_| kind.groups.contains(&group)) {
                best.consider(group, machines.profile_of(class), machine, latest);
            }
        }
        if machines.is_released_since(earlier.on, earlier.searched_at) {
            let mut profile = machines.profile_of(machines.class_of(earlier.on)).clone();
            profile.give(earlier.start, earlier.end, &kind.chunk, 1);
            best.consider(site.group_of(earlier.on) as u16, &profile, earlier.on, latest);
        }
        let found = best.placed();
        found.map(|found| self.reservation_of_one(found))
    }

    pub(super) fn reservation(&self, start: u64, length: u64, held: Placements, shortfall: Shortfall) -> Reservation {
        Reservation { start, end: start.saturating_add(length), held, searched_at: self.releases, shortfall }
    }

    /// The same for a job of one chunk: it is missing at every earlier start.
    fn reservation_of_one(&self, (start, length, held): (u64, u64, Placements)) -> Reservation {
        self.reservation(start, length, held, Shortfall::until(start, 1, &self.log))
    }
}

/// The group of the only machine that a kind may use, if there is one: what is free in the group is free on it.
fn only_machine<'s>(site: &'s Site, kind: &Kind) -> Option<&'s Group> {
    let [group] = kind.groups[..] else { return None };
    Some(&site.groups[usize::from(group)]).filter(|group| group.count == 1)
}

/// Whether all chunks of a kind of job, of which there are several, are of one size.
pub(super) fn is_of_equal_chunks(kind: &Kind) -> bool {
    kind.copies > 1 && kind.last.is_none() && !kind.is_uneven()
}
