//! The reservation of EASY backfilling: when and where the head of the queue will start by the estimates.

use std::collections::BTreeSet;

use super::free_machines::FreeMachines;
use super::kind::Kind;
use super::machine_state::Running;
use super::placement::Placement;
use super::placements::AscendingRuns;
use super::site::Site;

/// How many changes, beside one for each running job, are remembered before the reservation is rather made anew.
const REMEMBERED_CHANGES: usize = 1024;

/// Capacity reserved for the job at the head of the queue (Lifka 1995: shadow time and extra nodes).
///
/// It is kept from one head to the next and from event to event. What it rests on is one state of the machines: what
/// is free once every job that is expected to finish by the shadow time is gone. A job that starts or finishes changes
/// that state only if it is expected to finish after the shadow time; the shadow time moves back only after a finish
/// not expected before it, and forth only if what is free then has become too little. So an event usually costs
/// a few steps, not a walk over all running jobs. Changes are noted and made when the reservation is next asked for.
#[derive(Clone, Debug)]
pub(crate) struct HeadReservation {
    /// When the head is expected to start at the latest.
    pub(crate) shadow: u64,
    /// What remains free at the shadow time once the head has started.
    pub(crate) extra: FreeMachines,
    /// The kind of the head.
    head: Option<u32>,
    /// Where the equal chunks of the head start.
    held: AscendingRuns,
    /// Where its last chunk starts, if it is smaller.
    last: Option<u32>,
    /// Where its chunks of further sizes start.
    of_sizes: Vec<(u16, u32, u32)>,
    /// At least how many chunks of the head lack a machine before the shadow time.
    lacking: u128,
    /// Slots and rows of jobs that have started and are not yet in `extra`.
    starts: Vec<(u32, u32)>,
    /// Jobs that have finished and are still in `extra`.
    finishes: Vec<Running>,
    /// Whether the rule may now put the head elsewhere.
    is_stale: bool,
}

/// The running jobs, as the machines know them.
pub(crate) struct RunningJobs<'a> {
    pub(crate) site: &'a Site,
    pub(crate) kinds: &'a [Kind],
    pub(crate) slots: &'a mut [Running],
    /// By expected finish.
    pub(crate) expected: &'a BTreeSet<(u64, u32)>,
}

impl RunningJobs<'_> {
    fn at(&self, time: u64) -> impl Iterator<Item = &Running> {
        self.expected.range((time, 0)..=(time, u32::MAX)).map(|(_, slot)| &self.slots[*slot as usize])
    }
}

impl HeadReservation {
    /// From what is free now.
    pub(crate) fn new(free: &FreeMachines) -> HeadReservation {
        HeadReservation {
            shadow: 0,
            extra: free.clone(),
            head: None,
            held: AscendingRuns::default(),
            last: None,
            of_sizes: Vec::new(),
            lacking: 0,
            starts: Vec::new(),
            finishes: Vec::new(),
            is_stale: false,
        }
    }

    /// The machines on which the head starts, each once.
    pub(crate) fn machines(&self) -> impl Iterator<Item = u32> + '_ {
        let is_new = |machine: &u32| !self.held.has(*machine);
        let of_sizes = self.of_sizes.iter().enumerate().filter(move |(at, (_, machine, _))| {
            is_new(machine) && self.of_sizes[..*at].iter().all(|(_, before, _)| before != machine)
        });
        let of_sizes = of_sizes.map(|(_, (_, machine, _))| *machine);
        self.held.machines().chain(self.last.filter(is_new)).chain(of_sizes)
    }

    /// The machines with equal chunks of the head, ascending, if it has no others.
    pub(crate) fn machines_of_equal_chunks(&self) -> Option<&AscendingRuns> {
        (self.last.is_none() && self.of_sizes.is_empty()).then_some(&self.held)
    }

    /// Notes a start. Returns whether it is in `extra` already, as one that ends by the shadow time is.
    pub(crate) fn started(&mut self, slot: u32, row: u32, expected: u64) -> bool {
        let there = expected <= self.shadow;
        if !there {
            self.starts.push((slot, row));
        }
        there
    }

    /// Notes that a job has started on the extra.
    pub(crate) fn started_beside(&mut self, expected: u64) {
        // First fit still puts the head where it is: the machines before its last hold no more chunks than before,
        // and its own as many as it has there. Other rules compare what is free.
        let is_first_fit = self.extra.rule == Placement::FirstFit;
        self.is_stale |= expected > self.shadow && !is_first_fit;
    }

    /// Notes a finish.
    pub(crate) fn finished(&mut self, job: &Running) {
        if job.in_reservation && job.expected >= self.shadow {
            self.finishes.push(job.clone());
        }
    }

    /// Whether so many changes are noted that a new reservation costs less.
    pub(crate) fn is_outdated(&self, running: usize) -> bool {
        self.starts.len() + self.finishes.len() > running + REMEMBERED_CHANGES
    }

    /// Reserves capacity for a job that does not fit now: at the earliest expected finish after which the
    /// placement rule finds capacity for it, with every job expected to have finished by then gone.
    pub(crate) fn reserve(&mut self, head: u32, jobs: &mut RunningJobs<'_>) {
        let is_same = self.head == Some(head);
        if is_same && !self.is_stale && self.starts.is_empty() && self.finishes.is_empty() {
            return;
        }
        let kinds = jobs.kinds;
        let kind = &kinds[head as usize];
        if is_same && !self.is_stale && self.keeps_shadow(kind, jobs) {
            return;
        }
        if let Some(old) = self.head.take() {
            let old = &kinds[old as usize];
            self.extra.give_all(std::mem::take(&mut self.held).runs(), &old.chunk);
            if let Some((machine, chunk)) = self.last.take().zip(old.last.as_deref()) {
                self.extra.give(machine, chunk, 1);
            }
            for (size, machine, chunks) in std::mem::take(&mut self.of_sizes) {
                self.extra.give(machine, old.of_size(size), chunks);
            }
        }
        self.is_stale = false;
        let may_be_earlier = !is_same || self.lacking == 0 || !self.finishes.is_empty();
        self.make_changes(jobs);
        let wanted = u128::from(kind.copies);
        let capacity = if kind.is_uneven() { self.step_forth(kind, jobs) } else { self.extra.capacity(kind) };
        if kind.is_uneven() {
            self.lacking = wanted.saturating_sub(capacity);
        } else if capacity >= wanted {
            if may_be_earlier {
                self.move_back(kind, wanted, capacity, jobs);
            }
        } else {
            self.move_forth(kind, wanted, capacity, jobs);
        }
        // Where the head does not fit on empty machines it would have been refused.
        let held = self.extra.place(jobs.site, kind, &mut None).unwrap_or_default();
        self.held = AscendingRuns::from(&held);
        self.last = held.last;
        self.of_sizes = held.of_sizes;
        self.head = Some(head);
    }

    /// Makes the changes of finished jobs where that is known to leave the shadow time as it is. Returns whether it did
    /// so, else nothing has been changed.
    ///
    /// Under first fit and with equal chunks only, where the choice of machines is easily mended: a chunk that fits on an
    /// earlier machine than the head's last moves there.
    fn keeps_shadow(&mut self, head: &Kind, jobs: &RunningJobs<'_>) -> bool {
        self.starts.retain(|(slot, row)| {
            let job = &jobs.slots[*slot as usize];
            job.row == *row && !job.in_reservation
        });
        if self.extra.rule != Placement::FirstFit || !self.starts.is_empty() || head.last.is_some() {
            return false;
        }
        let mut gain = 0;
        for job in &self.finishes {
            let on = |machine: u32| head.chunks_on(&jobs.site.groups[jobs.site.group_of(machine)].has);
            gain += job.held.machines().map(on).sum::<u128>();
        }
        if gain >= self.lacking {
            return false;
        }
        self.lacking -= gain;
        let shadow = self.shadow;
        for job in std::mem::take(&mut self.finishes).into_iter().filter(|job| job.expected > shadow) {
            for (machine, chunks, chunk) in job.held.chunks(&jobs.kinds[job.kind as usize]) {
                self.extra.give(machine, chunk, chunks);
                self.fill_from_last(machine, head, jobs);
            }
        }
        true
    }

    /// Moves the head's last chunks to a machine before them on which they now fit.
    fn fill_from_last(&mut self, machine: u32, head: &Kind, jobs: &RunningJobs<'_>) {
        while let Some((last, chunks)) = self.held.last().filter(|(last, _)| *last > machine) {
            let counts = self.extra.fits_on(machine, &head.chunk) && may_use(head, machine, jobs.site);
            if !counts {
                return;
            }
            if head.is_spread() && self.held.has(machine) {
                return;
            }
            let moved = head.chunks_on(self.extra.of(machine)).min(u128::from(chunks)) as u32;
            self.extra.give(last, &head.chunk, moved);
            self.extra.take(machine, &head.chunk, moved);
            self.held.remove_from_last(moved);
            self.held.add(machine, moved);
        }
    }

    fn make_changes(&mut self, jobs: &mut RunningJobs<'_>) {
        for job in std::mem::take(&mut self.finishes) {
            if job.expected > self.shadow {
                self.extra.give_job(&jobs.kinds[job.kind as usize], &job.held);
            }
        }
        for (slot, row) in self.starts.drain(..) {
            let job = &mut jobs.slots[slot as usize];
            // It may have finished, and the slot have another job.
            if job.row != row || job.in_reservation {
                continue;
            }
            job.in_reservation = true;
            if job.expected > self.shadow {
                self.extra.take_job(&jobs.kinds[job.kind as usize], &job.held);
            }
        }
    }

    /// Moves the shadow time back to the earliest expected finish after which the head fits.
    fn move_back(&mut self, kind: &Kind, wanted: u128, mut capacity: u128, jobs: &RunningJobs<'_>) {
        while let Some(&(time, _)) = jobs.expected.range(..=(self.shadow, u32::MAX)).next_back() {
            self.shadow = time;
            if let Some(lost) = self.lost_with_one(time, kind, jobs).filter(|lost| capacity - lost < wanted) {
                self.lacking = wanted - (capacity - lost);
                return;
            }
            let mut lost = 0;
            for job in jobs.at(time) {
                lost += self.change(job, kind, jobs, false);
            }
            if capacity - lost < wanted {
                for job in jobs.at(time) {
                    self.change(job, kind, jobs, true);
                }
                self.lacking = wanted - (capacity - lost);
                return;
            }
            capacity -= lost;
            self.shadow = time - 1;
        }
        self.lacking = 0;
    }

    /// How many chunks of the head would not fit if the only job expected to finish at `time` still ran; `None` if it
    /// is not the only one.
    fn lost_with_one(&self, time: u64, head: &Kind, jobs: &RunningJobs<'_>) -> Option<u128> {
        let mut at = jobs.at(time);
        let job = at.next()?;
        let is_even = head.last.is_none() && job.held.last.is_none() && job.held.of_sizes.is_empty();
        if at.next().is_some() || !is_even {
            return None;
        }
        let chunk = &jobs.kinds[job.kind as usize].chunk;
        let mut left = vec![0; chunk.len()];
        let counts = |machine: u32| may_use(head, machine, jobs.site);
        // Machines side by side mostly have equally much free.
        let mut last: Option<(&[u64], u32, u128)> = None;
        let lost = job.held.iter().filter(|(machine, _)| counts(*machine)).map(|(machine, chunks)| {
            let free = self.extra.of(machine);
            if let Some((_, _, lost)) = last.filter(|last| last.1 == chunks && last.0.iter().eq(free)) {
                return lost;
            }
            left.iter_mut().zip(free.iter().zip(chunk)).for_each(|(l, (f, c))| *l = f - c * u64::from(chunks));
            let lost = head.chunks_on(free) - head.chunks_on(&left);
            last = Some((free, chunks, lost));
            lost
        });
        Some(lost.sum())
    }

    /// Moves the shadow time on, from now, until a head whose chunks are of several sizes fits. Returns how many of its
    /// chunks then do: all of them, if it ever fits.
    fn step_forth(&mut self, kind: &Kind, jobs: &RunningJobs<'_>) -> u128 {
        while self.extra.find(jobs.site, kind, &None).is_none() {
            let next = jobs.expected.range((self.shadow.saturating_add(1), 0)..).next();
            let Some(&(time, _)) = next else { return 0 };
            self.shadow = time;
            for job in jobs.at(time) {
                self.extra.give_job(&jobs.kinds[job.kind as usize], &job.held);
            }
        }
        u128::from(kind.copies)
    }

    /// Moves the shadow time on until the head fits.
    fn move_forth(&mut self, kind: &Kind, wanted: u128, mut capacity: u128, jobs: &RunningJobs<'_>) {
        while capacity < wanted {
            let next = jobs.expected.range((self.shadow.saturating_add(1), 0)..).next();
            let Some(&(time, _)) = next else { return };
            self.shadow = time;
            self.lacking = wanted - capacity;
            for job in jobs.at(time) {
                capacity += self.change(job, kind, jobs, true);
            }
        }
    }

    /// Gives a job's machines back or takes them; returns by how many chunks of the head that changes what fits.
    fn change(&mut self, job: &Running, head: &Kind, jobs: &RunningJobs<'_>, gives: bool) -> u128 {
        let kind = &jobs.kinds[job.kind as usize];
        let before = self.chunks_on_machines_of(job, head, jobs);
        if gives {
            self.extra.give_job(kind, &job.held);
        } else {
            self.extra.take_job(kind, &job.held);
        }
        self.chunks_on_machines_of(job, head, jobs).abs_diff(before)
    }

    /// How many chunks of the head fit on the machines of a job; on all machines, if its last chunk is smaller.
    fn chunks_on_machines_of(&self, job: &Running, head: &Kind, jobs: &RunningJobs<'_>) -> u128 {
        if head.last.is_some() {
            return self.extra.capacity(head);
        }
        let machines = job.held.machines().filter(|&m| may_use(head, m, jobs.site));
        machines.map(|machine| head.chunks_on(self.extra.of(machine))).sum()
    }
}

/// Whether a job of this kind may use a machine.
pub(crate) fn may_use(kind: &Kind, machine: u32, site: &Site) -> bool {
    kind.groups.len() == site.groups.len() || kind.groups.contains(&(site.group_of(machine) as u16))
}
