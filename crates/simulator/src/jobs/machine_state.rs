//! State of the machines: placing jobs, removing them, reserving capacity for the head of the queue.

use std::collections::BTreeSet;

use super::free_capacity_tree::FreeCapacityTree;
use super::placement::{Placement, Scores};
use super::site::{Kind, Site, copies, fits};

/// Which machines hold how many chunks of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placements {
    first: (u32, u32),
    more: Vec<(u32, u32)>,
}

impl Placements {
    pub(crate) fn add(&mut self, machine: u32, chunks: u32) {
        match (&mut self.first, self.more.last_mut()) {
            (first, _) if first.1 == 0 => *first = (machine, chunks),
            (first, None) if first.0 == machine => first.1 += chunks,
            (_, Some(last)) if last.0 == machine => last.1 += chunks,
            _ => self.more.push((machine, chunks)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        std::iter::once(self.first).filter(|f| f.1 > 0).chain(self.more.iter().copied())
    }
}

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
}

/// Capacity reserved for the job at the head of the queue (Lifka 1995: shadow time and extra nodes).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservation {
    /// When the head is expected to start at the latest.
    pub(crate) shadow: u64,
    /// By machine and resource: what remains free at the shadow time once the head has started.
    extra: Vec<u64>,
}

/// The machines of a site and the jobs that run on them.
#[derive(Clone, Debug)]
pub(crate) struct MachineState<'a> {
    pub(crate) site: &'a Site,
    width: usize,
    free: FreeCapacityTree,
    free_total: Vec<u64>,
    scores: Scores,
    running: Vec<Running>,
    unused: Vec<u32>,
    /// Running jobs by their expected finish, if reservations are asked for.
    expected: Option<BTreeSet<(u64, u32)>>,
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
            width,
            free: FreeCapacityTree::new(site, width),
            free_total,
            scores: Scores::new(rule, site, width),
            running: Vec::new(),
            unused: Vec::new(),
            expected: reserves.then(BTreeSet::new),
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
        held.iter().for_each(|(machine, chunks)| self.free.take(machine, &kind.chunk, chunks));
        let all = u64::from(kind.copies);
        self.free_total.iter_mut().zip(&kind.chunk).for_each(|(f, c)| *f -= c * all);
    }

    /// Takes capacity for a job that starts now, placed by the placement rule.
    pub(crate) fn take(&mut self, kind: &Kind) -> Option<Placements> {
        self.place_guarded(kind, None)
    }

    /// Takes capacity for a job that delays no reservation: on every machine that it uses, it finishes by the
    /// shadow time or leaves the reserved amount free.
    pub(crate) fn place_beside_reservation(
        &mut self,
        kind: &Kind,
        now: u64,
        estimate: u64,
        reservation: &mut Reservation,
    ) -> Option<Placements> {
        let guard = Guard { kind, now, estimate, shadow: reservation.shadow };
        self.place_guarded(kind, Some((guard, &mut reservation.extra)))
    }

    /// How much of the first resource is free, on all machines together.
    pub(crate) fn free_of_first_resource(&self) -> u64 {
        self.free_total.first().copied().unwrap_or(u64::MAX)
    }

    /// Whether a chunk fits on a machine now.
    pub(crate) fn fits_on(&self, machine: u32, chunk: &[u64]) -> bool {
        fits(chunk, self.free.of(machine))
    }

    /// Returns whether the machines together have this much of each resource free.
    pub(crate) fn fits_in_total(&self, demand: &[u64]) -> bool {
        fits(demand, &self.free_total)
    }

    /// Whether a job could start now if nothing were reserved.
    pub(crate) fn fits_now(&self, kind: &Kind) -> bool {
        let wanted = u64::from(kind.copies);
        if kind.chunk.iter().zip(&self.free_total).any(|(c, f)| c.saturating_mul(wanted) > *f) {
            return false;
        }
        self.has_capacity(kind, |machine| match kind.copies {
            1 => 1,
            _ => copies(&kind.chunk, self.free.of(machine)),
        })
    }

    /// Returns whether [`place_beside_reservation`](MachineState::place_beside_reservation) would succeed.
    pub(crate) fn fits_beside_reservation(
        &self,
        kind: &Kind,
        now: u64,
        estimate: u64,
        reservation: &Reservation,
    ) -> bool {
        let guard = Guard { kind, now, estimate, shadow: reservation.shadow };
        self.has_capacity(kind, |machine| {
            let finishes_in_time = guard.finishes_in_time(self.site, self.site.group_of(machine));
            let extra = self.row(&reservation.extra, machine);
            match kind.copies {
                1 => u128::from(finishes_in_time || fits(&kind.chunk, extra)),
                _ if finishes_in_time => copies(&kind.chunk, self.free.of(machine)),
                _ => copies(&kind.chunk, self.free.of(machine)).min(copies(&kind.chunk, extra)),
            }
        })
    }

    /// Returns whether the machines hold all chunks of a job; `on` gives how many each machine takes.
    fn has_capacity(&self, kind: &Kind, on: impl Fn(u32) -> u128) -> bool {
        let mut left = u128::from(kind.copies);
        for &g in &kind.groups {
            let group = &self.site.groups[usize::from(g)];
            let (mut from, to) = (group.first, group.first + group.count);
            while let Some(machine) = self.free.next(from, to, &kind.chunk) {
                left = left.saturating_sub(on(machine));
                if left == 0 {
                    return true;
                }
                from = machine + 1;
            }
        }
        false
    }

    fn place_guarded(&mut self, kind: &Kind, mut guard: Option<(Guard<'_>, &mut Vec<u64>)>) -> Option<Placements> {
        let wanted = u64::from(kind.copies);
        if kind.chunk.iter().zip(&self.free_total).any(|(c, f)| c.saturating_mul(wanted) > *f) {
            return None;
        }
        let mut held = Placements::default();
        let mut left = kind.copies;
        self.scores.of_chunk(&kind.chunk);
        while left > 0 {
            let Some(machine) = self.choose_machine(kind, &guard) else {
                held.iter().for_each(|(machine, chunks)| self.free.give(machine, &kind.chunk, chunks));
                self.undo_guarded(kind, &held, &mut guard);
                return None;
            };
            // First fit and best fit put further chunks on the same machine while they fit.
            let together = matches!(self.scores.rule, Placement::FirstFit | Placement::BestFit);
            let mut chunks = 1;
            if together && left > 1 {
                let mut limit = copies(&kind.chunk, self.free.of(machine));
                if let Some((guard, extra)) = &guard
                    && !guard.finishes_in_time(self.site, self.site.group_of(machine))
                {
                    limit = limit.min(copies(&kind.chunk, self.row(extra, machine)));
                }
                chunks = limit.min(u128::from(left)) as u32;
            }
            self.free.take(machine, &kind.chunk, chunks);
            if let Some((guard, extra)) = &mut guard
                && !guard.finishes_in_time(self.site, self.site.group_of(machine))
            {
                let at = machine as usize * self.width;
                extra[at..at + self.width].iter_mut().zip(&kind.chunk).for_each(|(e, c)| *e -= c * u64::from(chunks));
            }
            held.add(machine, chunks);
            left -= chunks;
        }
        self.free_total.iter_mut().zip(&kind.chunk).for_each(|(f, c)| *f -= c * wanted);
        Some(held)
    }

    fn undo_guarded(&self, kind: &Kind, held: &Placements, guard: &mut Option<(Guard<'_>, &mut Vec<u64>)>) {
        let Some((guard, extra)) = guard else { return };
        for (machine, chunks) in held.iter() {
            if !guard.finishes_in_time(self.site, self.site.group_of(machine)) {
                let at = machine as usize * self.width;
                extra[at..at + self.width].iter_mut().zip(&kind.chunk).for_each(|(e, c)| *e += c * u64::from(chunks));
            }
        }
    }

    fn row<'b>(&self, amounts: &'b [u64], machine: u32) -> &'b [u64] {
        &amounts[machine as usize * self.width..][..self.width]
    }

    /// The machine for the next chunk.
    fn choose_machine(&mut self, kind: &Kind, guard: &Option<(Guard<'_>, &mut Vec<u64>)>) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        for &g in &kind.groups {
            let group = &self.site.groups[usize::from(g)];
            let held_back = guard.as_ref().filter(|(guard, _)| !guard.finishes_in_time(self.site, usize::from(g)));
            let (mut from, to) = (group.first, group.first + group.count);
            while let Some(machine) = self.free.next(from, to, &kind.chunk) {
                from = machine + 1;
                if held_back.is_some_and(|(_, extra)| !fits(&kind.chunk, self.row(extra, machine))) {
                    continue;
                }
                if self.scores.rule == Placement::FirstFit {
                    return Some(machine);
                }
                let score = self.scores.score(self.free.of(machine));
                if best.is_none_or(|b| (score, machine) < b) {
                    best = Some((score, machine));
                }
            }
        }
        best.map(|b| b.1)
    }

    /// The run time of a job on its machines: that of the slowest of them.
    pub(crate) fn scaled(&self, held: &Placements, span: u64) -> u64 {
        held.iter().map(|(m, _)| self.site.groups[self.site.group_of(m)].scale(span)).max().unwrap_or(span)
    }

    /// The expected run time of a job on its machines; a job of several chunks counts as on the
    /// slowest machine it might use.
    pub(crate) fn expected_duration(&self, kind: &Kind, held: &Placements, estimate: u64) -> u64 {
        match kind.copies {
            1 => self.scaled(held, estimate),
            _ => self.site.groups[usize::from(kind.slowest)].scale(estimate),
        }
    }

    /// Starts a job whose capacity has been taken. Returns its slot.
    pub(crate) fn start(&mut self, job: Running) -> u32 {
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.running.push(Running::default());
            self.running.len() as u32 - 1
        });
        if let Some(expected) = &mut self.expected {
            expected.insert((job.expected, slot));
        }
        self.running[slot as usize] = job;
        slot
    }

    /// Takes a job away; its slot may be used again.
    pub(crate) fn end(&mut self, slot: u32, kinds: &[Kind]) -> Running {
        let job = std::mem::take(&mut self.running[slot as usize]);
        self.unused.push(slot);
        if let Some(expected) = &mut self.expected {
            expected.remove(&(job.expected, slot));
        }
        let kind = &kinds[job.kind as usize];
        job.held.iter().for_each(|(machine, chunks)| self.free.give(machine, &kind.chunk, chunks));
        let all = u64::from(kind.copies);
        self.free_total.iter_mut().zip(&kind.chunk).for_each(|(f, c)| *f += c * all);
        job
    }

    /// Reserves capacity for a job that does not fit now: at the earliest expected finish after which the
    /// placement rule finds capacity for it, with every job expected to have finished by then gone.
    pub(crate) fn reserve(&mut self, head: &Kind, kinds: &[Kind], reservation: &mut Reservation) {
        let width = self.width;
        let later = &mut reservation.extra;
        later.clear();
        later.extend_from_slice(self.free.all());
        let allowed = |machine: u32| head.groups.iter().any(|&g| usize::from(g) == self.site.group_of(machine));
        let mut has_capacity: u128 = if head.copies == 1 {
            0
        } else {
            let groups = head.groups.iter().map(|&g| &self.site.groups[usize::from(g)]);
            let machines = groups.flat_map(|g| g.first..g.first + g.count);
            machines.map(|m| copies(&head.chunk, &later[m as usize * width..][..width])).sum()
        };
        reservation.shadow = 0;
        for &(expected, slot) in self.expected.iter().flatten() {
            if has_capacity >= u128::from(head.copies) && expected > reservation.shadow {
                break;
            }
            reservation.shadow = expected;
            let job = &self.running[slot as usize];
            let kind = &kinds[job.kind as usize];
            for (machine, chunks) in job.held.iter() {
                let at = machine as usize * width;
                let row = &mut later[at..at + width];
                if head.copies == 1 {
                    row.iter_mut().zip(&kind.chunk).for_each(|(l, c)| *l += c * u64::from(chunks));
                    if has_capacity == 0 && fits(&head.chunk, row) && allowed(machine) {
                        has_capacity = 1;
                    }
                    continue;
                }
                let counts = allowed(machine);
                let before = if counts { copies(&head.chunk, row) } else { 0 };
                row.iter_mut().zip(&kind.chunk).for_each(|(l, c)| *l += c * u64::from(chunks));
                if counts {
                    has_capacity += copies(&head.chunk, row) - before;
                }
            }
        }
        let mut left = head.copies;
        while left > 0 {
            let mut best: Option<(u64, u32)> = None;
            self.scores.of_chunk(&head.chunk);
            'machines: for &g in &head.groups {
                let group = &self.site.groups[usize::from(g)];
                for machine in group.first..group.first + group.count {
                    let row = &later[machine as usize * width..][..width];
                    if !fits(&head.chunk, row) {
                        continue;
                    }
                    let score = self.scores.score(row);
                    if best.is_none_or(|b| (score, machine) < b) {
                        best = Some((score, machine));
                        if self.scores.rule == Placement::FirstFit {
                            break 'machines;
                        }
                    }
                }
            }
            let Some((_, machine)) = best else { break };
            let row = &mut later[machine as usize * width..][..width];
            let chunks = match self.scores.rule {
                Placement::FirstFit | Placement::BestFit => copies(&head.chunk, row).min(u128::from(left)) as u32,
                Placement::WorstFit | Placement::Dominant => 1,
            };
            row.iter_mut().zip(&head.chunk).for_each(|(l, c)| *l -= c * u64::from(chunks));
            left -= chunks;
        }
    }
}
