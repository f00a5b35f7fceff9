//! State of the machines: placing jobs, removing them, reserving capacity for the head of the queue.

use std::collections::BTreeSet;

use evenhand_model::Amount;

use super::free_machines::{FreeMachines, Limit};
use super::head_reservation::{HeadReservation, RunningJobs};
use super::kind::{Kind, fits};
use super::placement::Placement;
use super::placements::Placements;
use super::site::Site;

/// A job that runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    pub(crate) row: u32,
    pub(crate) kind: u32,
    pub(crate) start: u64,
    pub(crate) finish: u64,
    /// When it must have finished by its estimate.
    pub(crate) expected: u64,
    pub(crate) held: Placements,
    /// What its machines have, of each resource, if it has them as a whole.
    pub(crate) whole: Option<Box<[Amount]>>,
    /// Whether the head's reservation rests on it.
    pub(crate) in_reservation: bool,
}

/// The machines of a site and the jobs that run on them.
#[derive(Clone, Debug)]
pub(crate) struct MachineState<'a> {
    pub(crate) site: &'a Site,
    free: FreeMachines,
    free_total: Vec<u64>,
    running: Vec<Running>,
    unused: Vec<u32>,
    /// Running jobs by their expected finish, if reservations are asked for.
    expected: Option<BTreeSet<(u64, u32)>>,
    /// The reservation for the head of the queue, once one has been needed.
    reservation: Option<HeadReservation>,
    /// Machines on which the head starts and less is free later than now.
    contested: Vec<Contested>,
    /// Whether nothing has changed since `contested` was made.
    contested_is_current: bool,
}

/// Machines of one class now and of one class at the shadow time, beside the head.
#[derive(Clone, Copy, Debug)]
struct Contested {
    now: u32,
    later: u32,
    machines: u32,
}

/// How many chunks fit now and not later.
fn less_beside(kind: &Kind, now: &[u64], later: &[u64]) -> u128 {
    kind.chunks_on(now).saturating_sub(kind.chunks_on(later))
}

/// Decides where a candidate may use reserved capacity: on groups on which it finishes by the shadow time.
#[derive(Clone, Copy)]
struct Guard<'a> {
    kind: &'a Kind,
    now: u64,
    estimate: u64,
    shadow: u64,
}

impl Guard<'_> {
    /// A job of several chunks takes as long as on the slowest machine that it may use.
    fn finishes_in_time(&self, site: &Site, group: usize) -> bool {
        let group = if self.kind.copies > 1 { usize::from(self.kind.slowest) } else { group };
        self.now.saturating_add(site.groups[group].scale(self.estimate)) <= self.shadow
    }
}

impl<'a> MachineState<'a> {
    pub(crate) fn new(site: &'a Site, width: usize, rule: Placement, reserves: bool) -> MachineState<'a> {
        let mut free_total = vec![0u64; width];
        for group in &site.groups {
            for (sum, has) in free_total.iter_mut().zip(&group.has) {
                *sum = sum.saturating_add(has.saturating_mul(u64::from(group.count)));
            }
        }
        MachineState {
            site,
            free: FreeMachines::new(site, width, rule),
            free_total,
            running: Vec::new(),
            unused: Vec::new(),
            expected: reserves.then(BTreeSet::new),
            reservation: None,
            contested: Vec::new(),
            contested_is_current: false,
        }
    }

    pub(crate) fn running(&self, slot: u32) -> &Running {
        &self.running[slot as usize]
    }

    /// The slots of the jobs that run.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let mut idle = vec![false; self.running.len()];
        self.unused.iter().for_each(|s| idle[*s as usize] = true);
        (0..self.running.len() as u32).filter(move |s| !idle[*s as usize])
    }

    /// Takes the capacity of a reservation that is due.
    pub(crate) fn take_placements(&mut self, kind: &Kind, held: &Placements) {
        self.free.take_job(kind, held);
        self.take_of_total(kind);
    }

    /// Takes capacity for a job that starts now, placed by the placement rule.
    pub(crate) fn take(&mut self, kind: &Kind) -> Option<Placements> {
        self.contested_is_current = false;
        if !self.fits_together(kind) {
            return None;
        }
        let held = self.free.place(self.site, kind, &mut None)?;
        self.take_of_total(kind);
        Some(held)
    }

    /// Takes capacity for a job that delays no reservation: on every machine that it uses, it finishes by the
    /// shadow time or leaves the reserved amount free.
    pub(crate) fn place_beside_reservation(&mut self, kind: &Kind, now: u64, estimate: u64) -> Option<Placements> {
        self.contested_is_current = false;
        if !self.fits_together(kind) {
            return None;
        }
        let site = self.site;
        let reservation = self.reservation.as_mut()?;
        let guard = Guard { kind, now, estimate, shadow: reservation.shadow };
        let limits = |group: usize| !guard.finishes_in_time(site, group);
        let limit = Limit { later: &mut reservation.extra, limits: &limits };
        let held = self.free.place(site, kind, &mut Some(limit))?;
        self.take_of_total(kind);
        Some(held)
    }

    fn take_of_total(&mut self, kind: &Kind) {
        self.free_total.iter_mut().enumerate().for_each(|(r, f)| *f -= kind.total(r));
    }

    /// Whether the machines together have enough of each resource free.
    pub(crate) fn fits_together(&self, kind: &Kind) -> bool {
        self.free_total.iter().enumerate().all(|(r, f)| kind.total(r) <= *f)
    }

    /// How much of the first resource is free, on all machines together.
    pub(crate) fn free_of_first_resource(&self) -> u64 {
        self.free_total.first().copied().unwrap_or(u64::MAX)
    }

    /// Whether a chunk fits on a machine now.
    pub(crate) fn fits_on(&self, machine: u32, chunk: &[u64]) -> bool {
        self.free.fits_on(machine, chunk)
    }

    /// Returns whether the machines together have this much of each resource free.
    pub(crate) fn fits_in_total(&self, demand: &[u64]) -> bool {
        fits(demand, &self.free_total)
    }

    /// Whether a job could start now if nothing were reserved.
    pub(crate) fn fits_now(&self, kind: &Kind) -> bool {
        self.fits_together(kind) && self.free.fits(self.site, kind)
    }

    /// Returns whether [`place_beside_reservation`](MachineState::place_beside_reservation) would succeed for a job
    /// that fits now.
    ///
    /// Only where the head starts can less be free at the shadow time than now, so only those machines are looked at.
    pub(crate) fn fits_beside_reservation(&mut self, kind: &Kind, now: u64, estimate: u64) -> bool {
        let Some(reservation) = self.reservation.as_ref() else { return false };
        let guard = Guard { kind, now, estimate, shadow: reservation.shadow };
        if kind.copies == 1 {
            return kind.groups.iter().any(|&g| {
                let group = &self.site.groups[usize::from(g)];
                let in_time = guard.finishes_in_time(self.site, usize::from(g));
                let (mut from, to) = (group.first, group.first + group.count);
                if !in_time {
                    from = reservation.extra.next(from, to, &kind.chunk).unwrap_or(to);
                }
                while let Some(machine) = self.free.next(from, to, &kind.chunk) {
                    if in_time || fits(&kind.chunk, reservation.extra.of(machine)) {
                        return true;
                    }
                    from = reservation.extra.next(machine + 1, to, &kind.chunk).unwrap_or(to);
                }
                false
            });
        }
        if guard.finishes_in_time(self.site, usize::from(kind.slowest)) {
            return true;
        }
        if kind.last.is_some() {
            let (site, shadow) = (self.site, reservation.shadow);
            let Some(reservation) = self.reservation.as_mut() else { return false };
            let guard = Guard { kind, now, estimate, shadow };
            let limits = |group: usize| !guard.finishes_in_time(site, group);
            let limit = Limit { later: &mut reservation.extra, limits: &limits };
            return self.free.find(site, kind, &Some(limit)).is_some();
        }
        let wanted = u128::from(kind.copies);
        // No more can start than fit beside the head at the shadow time, when that is asked for the machines together.
        let is_possible = self.free.has_capacity(kind, wanted) && reservation.extra.has_capacity(kind, wanted);
        is_possible && {
            let withheld = self.withheld(kind);
            withheld == 0 || self.free.has_capacity(kind, wanted + withheld)
        }
    }

    /// How many chunks of a kind fit now and not beside the reservation.
    fn withheld(&mut self, kind: &Kind) -> u128 {
        let Some(reservation) = &self.reservation else { return 0 };
        let (Some(now), Some(later)) = (self.free.classes(), reservation.extra.classes()) else {
            let machines = reservation.machines();
            let difference = |m| less_beside(kind, self.free.of(m), reservation.extra.of(m));
            return machines.map(difference).sum();
        };
        if !self.contested_is_current {
            self.contested_is_current = true;
            self.contested.clear();
            let contested = &mut self.contested;
            let mut add = |now: u32, later: u32| match contested.last_mut() {
                Some(last) if (last.now, last.later) == (now, later) => last.machines += 1,
                _ => contested.push(Contested { now, later, machines: 1 }),
            };
            match reservation.machines_of_equal_chunks() {
                Some(held) => held.runs().for_each(|run| {
                    now.of_run(run).iter().zip(later.of_run(run)).for_each(|(now, later)| add(*now, *later));
                }),
                None => reservation.machines().for_each(|machine| add(now.of(machine), later.of(machine))),
            }
            // Where no less is free later nothing is withheld.
            self.contested.retain(|c| !fits(now.free_of(c.now), later.free_of(c.later)));
            self.contested.sort_unstable_by_key(|c| (c.now, c.later));
            self.contested.dedup_by(|next, first| {
                let same = (first.now, first.later) == (next.now, next.later);
                first.machines += if same { next.machines } else { 0 };
                same
            });
        }
        let on = |c: &Contested| match kind.groups.contains(&now.group_of(c.now)) {
            true => less_beside(kind, now.free_of(c.now), later.free_of(c.later)) * u128::from(c.machines),
            false => 0,
        };
        self.contested.iter().map(on).sum()
    }

    /// The run time of a job on its machines: that of the slowest of them.
    pub(crate) fn scaled(&self, held: &Placements, span: u64) -> u64 {
        let scaled = |group: usize| self.site.groups[group].scale(span);
        let of_runs = held.runs().flat_map(|run| self.site.group_of(run.machine)..=self.site.group_of(run.end() - 1));
        let of_others = held.other_machines().map(|machine| self.site.group_of(machine));
        of_runs.chain(of_others).map(scaled).max().unwrap_or(span)
    }

    /// The expected run time of a job on its machines; a job of several chunks counts as on the
    /// slowest machine it might use.
    pub(crate) fn expected_duration(&self, kind: &Kind, held: &Placements, estimate: u64) -> u64 {
        match kind.copies {
            1 => self.scaled(held, estimate),
            _ => self.site.groups[usize::from(kind.slowest)].scale(estimate),
        }
    }

    /// Starts a job whose capacity has been taken, `beside` the head's reservation or not. Returns its slot.
    pub(crate) fn start(&mut self, mut job: Running, beside: bool) -> u32 {
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.running.push(Running::default());
            self.running.len() as u32 - 1
        });
        if let Some(expected) = &mut self.expected {
            expected.insert((job.expected, slot));
        }
        job.in_reservation = match &mut self.reservation {
            Some(reservation) if beside => {
                reservation.started_beside(job.expected);
                true
            }
            Some(reservation) => reservation.started(slot, job.row, job.expected),
            None => true,
        };
        self.running[slot as usize] = job;
        slot
    }

    /// Takes a job away; its slot may be used again.
    pub(crate) fn end(&mut self, slot: u32, kinds: &[Kind]) -> Running {
        self.contested_is_current = false;
        let job = std::mem::take(&mut self.running[slot as usize]);
        self.unused.push(slot);
        if let Some(expected) = &mut self.expected {
            expected.remove(&(job.expected, slot));
        }
        if let Some(reservation) = &mut self.reservation {
            reservation.finished(&job);
        }
        let kind = &kinds[job.kind as usize];
        self.free.give_job(kind, &job.held);
        self.free_total.iter_mut().enumerate().for_each(|(r, f)| *f += kind.total(r));
        job
    }

    /// Reserves capacity for a job of kind `head`, which does not fit now. Returns when it is expected to start at the
    /// latest.
    pub(crate) fn reserve(&mut self, head: u32, kinds: &[Kind]) -> u64 {
        self.contested_is_current = false;
        let Some(expected) = &self.expected else { return 0 };
        let running = &mut self.running;
        let reservation = match self.reservation.take() {
            // For a job of several sizes of chunks nothing is inferred from what was reserved before.
            Some(reservation) if !reservation.is_outdated(expected.len()) && !kinds[head as usize].is_uneven() => {
                reservation
            }
            _ => {
                running.iter_mut().for_each(|job| job.in_reservation = true);
                HeadReservation::new(&self.free)
            }
        };
        let reservation = self.reservation.insert(reservation);
        reservation.reserve(head, &mut RunningJobs { site: self.site, kinds, slots: running, expected });
        reservation.shadow
    }
}
