//! Stranded capacity: amounts of one resource that stay idle while jobs wait because another resource is exhausted.
//!
//! Let a machine have T_a and T_b, of which f_a and f_b are free. At the machine's own ratio, f_b T_a / T_b of a
//! pairs with the free amount of b. The free amount of a beyond that,
//!
//! max(0, f_a - f_b T_a / T_b),
//!
//! is of no use to a job shaped like the machine: b is gone first. It is counted only while something
//! waits. A machine without b is not short of it and adds nothing to that pair.
//!
//! Measured afterwards, from when and where each task ran, so that a simulation pays nothing for it: machine
//! by machine, in order of time, looking again only at the machine that something started or ended on. Machines of a
//! single resource strand nothing; what is idle there is all they have less what each task held, in any order.

use evenhand_model::{NO_TIME, Rational, Span, Time, UBig, Workload};

use crate::exact_sum::Sum;
use crate::{Jobs, Simulated, Site};

/// Idle and stranded amounts while tasks waited. Amounts times time are in steps times nanoseconds, exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleWhileWaiting {
    /// How long something waited: accepted, submitted and not started.
    pub queued: Span,
    /// By resource: its free amount in that time, whatever else was free.
    pub idle: Vec<Rational>,
    /// By resource a, then by resource b: the free amount of a beyond the amount that pairs with the free b.
    pub stranded: Vec<Vec<Rational>>,
}

impl IdleWhileWaiting {
    /// Measures a run on a site; without `jobs` every task is one chunk on the site's first machine, as
    /// in the simulation of a pool.
    ///
    /// # Panics
    /// If jobs were put in 2^32 places or more.
    pub fn measure(workload: &Workload, site: &Site, jobs: Option<&Jobs>, run: &Simulated) -> IdleWhileWaiting {
        let width = workload.resources().len();
        let queue = WaitingPeriods::of(workload, run);
        let places = HeldCapacity { workload, site, jobs, run };
        let mut waste = IdleWhileWaiting {
            queued: Span::from_nanos(queue.total),
            idle: vec![Rational::ZERO; width],
            stranded: vec![vec![Rational::ZERO; width]; width],
        };
        let has_single = |g: &usize| is_single(site.whole_machine(*g as u16));
        if (0..site.groups.len()).any(|g| has_single(&g)) {
            add_idle_of_single_resources(&mut waste, site, &places, &queue);
        }
        if (0..site.groups.len()).all(|g| has_single(&g)) {
            return waste;
        }
        let events = Events::of(&places, site.len());
        let mut sweep = Sweep::new(width);
        for (g, group) in site.groups.iter().enumerate().filter(|(g, _)| !has_single(g)) {
            sweep.begin(site.whole_machine(g as u16));
            for machine in group.first..group.first + group.count {
                sweep.machine(machine, &places, &events, &queue);
            }
            sweep.add_to(&mut waste);
        }
        waste
    }
}

/// How many amounts held are summed up before they are added to a number of any length.
const SUMMED_AT_ONCE: usize = 1 << 20;

/// Whether machines have one resource at most, so that none strands another.
fn is_single(has: &[u64]) -> bool {
    has.iter().filter(|amount| **amount > 0).count() <= 1
}

/// Adds what is idle on the machines of a single resource: all that they have while something waits, less what each
/// task held then.
fn add_idle_of_single_resources(
    waste: &mut IdleWhileWaiting,
    site: &Site,
    places: &HeldCapacity<'_>,
    queue: &WaitingPeriods,
) {
    let mut had = vec![UBig::ZERO; waste.idle.len()];
    let has_single = |g: usize| is_single(site.whole_machine(g as u16));
    for (g, group) in site.groups.iter().enumerate().filter(|(g, _)| has_single(*g)) {
        for (had, has) in had.iter_mut().zip(site.whole_machine(g as u16)) {
            *had += UBig::from(*has) * UBig::from(group.count) * UBig::from(queue.total);
        }
    }
    let mut held = vec![UBig::ZERO; waste.idle.len()];
    let mut sums = vec![Sum::default(); waste.idle.len()];
    // The parts of a job lie side by side, and what starts earlier lies before.
    let (mut last, mut waited, mut at) = (None, 0, 0);
    for part in (0..places.len()).step_by(SUMMED_AT_ONCE) {
        for place in part as u32..(part + SUMMED_AT_ONCE).min(places.len()) as u32 {
            let Some((start, finish, machine)) = places.held(place) else { continue };
            if !has_single(site.group_of(machine)) {
                continue;
            }
            if last != Some((start, finish)) {
                last = Some((start, finish));
                waited = queue.until(finish, &mut 0) - queue.until_any(start, &mut at);
            }
            for (sum, amount) in sums.iter_mut().zip(places.amounts(place)) {
                sum.add(u128::from(amount), waited);
            }
        }
        sums.iter_mut().zip(&mut held).for_each(|(sum, held)| *held += std::mem::take(sum).whole());
    }
    for (idle, (had, held)) in waste.idle.iter_mut().zip(had.into_iter().zip(held)) {
        // Nothing holds more than there is.
        *idle += Rational::from(had - held);
    }
}

/// The times at which something waits.
struct WaitingPeriods {
    /// From, to, and how long something waited before.
    stretches: Vec<(u64, u64, u64)>,
    total: u64,
}

impl WaitingPeriods {
    fn of(workload: &Workload, run: &Simulated) -> WaitingPeriods {
        let columns = workload.columns();
        let end = run.end.nanos();
        let mut stretches: Vec<(u64, u64, u64)> = Vec::new();
        // In order of submission, so that a wait either prolongs the last stretch or begins another.
        for (row, submit) in columns.submit.iter().map(|t| t.nanos()).enumerate() {
            if submit > end {
                break;
            }
            let until = run.starts[row].min(end);
            if until <= submit || run.is_rejected(row) {
                continue;
            }
            match stretches.last_mut() {
                Some((_, to, _)) if submit <= *to => *to = until.max(*to),
                _ => stretches.push((submit, until, 0)),
            }
        }
        let mut total = 0;
        for (from, to, before) in &mut stretches {
            *before = total;
            total += *to - *from;
        }
        WaitingPeriods { stretches, total }
    }

    /// As [`WaitingPeriods::until`], where `t` may also be before that of the last answer.
    fn until_any(&self, t: u64, at: &mut usize) -> u64 {
        if at.checked_sub(1).is_some_and(|before| t <= self.stretches[before].1) {
            *at = 0;
        }
        self.until(t, at)
    }

    /// How long something has waited until `t`. `at` is where the last answer was found; `t` never falls.
    fn until(&self, t: u64, at: &mut usize) -> u64 {
        // The next few are near; the rest are searched.
        for _ in 0..4 {
            match self.stretches.get(*at) {
                Some((_, to, _)) if *to < t => *at += 1,
                _ => break,
            }
        }
        *at += self.stretches[*at..].partition_point(|(_, to, _)| *to < t);
        match self.stretches.get(*at) {
            Some((from, _, before)) => before + t.saturating_sub(*from),
            None => self.total,
        }
    }
}

/// Which capacity each task or job part held.
struct HeldCapacity<'a> {
    workload: &'a Workload,
    site: &'a Site,
    jobs: Option<&'a Jobs>,
    run: &'a Simulated,
}

impl<'a> HeldCapacity<'a> {
    fn len(&self) -> usize {
        match &self.run.machines {
            Some(on) => on.placed.len(),
            None => self.run.starts.len(),
        }
    }

    fn row(&self, place: u32) -> usize {
        match &self.run.machines {
            Some(on) => on.placed[place as usize].row as usize,
            None => place as usize,
        }
    }

    /// Returns start, finish and machine; `None` if it never started.
    fn held(&self, place: u32) -> Option<(u64, u64, u32)> {
        let row = self.row(place);
        let start = self.run.starts[row];
        let machine = self.run.machines.as_ref().map_or(0, |on| on.placed[place as usize].machine);
        let finish =
            || (Time::from_nanos(start) + self.run.run_time(row, self.workload.columns().duration[row])).nanos();
        (start != NO_TIME).then(|| (start, finish(), machine))
    }

    /// Each amount it holds, with its resource.
    fn amounts(&self, place: u32) -> impl Iterator<Item = u64> + 'a {
        let row = self.row(place);
        let part = self.run.machines.as_ref().map(|on| on.placed[place as usize]);
        let chunks = part.map_or(1, |part| u64::from(part.chunks));
        let (whole, chunk): (&[_], &[u64]) = match self.jobs.map(|jobs| &jobs.kinds[jobs.kind[row] as usize]) {
            // All of the machine.
            Some(_) if self.site.are_whole => {
                let machine = part.map_or(0, |part| part.machine);
                (&[], self.site.whole_machine(self.site.group_of(machine) as u16))
            }
            Some(kind) => (&[], kind.of_size(part.map_or(0, |part| part.size))),
            None => (self.workload.amounts(row), &[]),
        };
        whole.iter().map(|a: &evenhand_model::Amount| a.0).chain(chunk.iter().copied()).map(move |a| a * chunks)
    }
}

/// Start and finish events by machine and, within a machine, by intervals of equal length; each interval
/// holds few enough events to sort quickly.
struct Events {
    origin: u64,
    width: u64,
    per_machine: usize,
    /// By machine and interval: index of the first event, starts and finishes apart.
    offsets: [Vec<usize>; 2],
    places: [Vec<u32>; 2],
}

/// Target number of events per interval: few enough to sort within the first-level cache.
const EVENTS_PER_INTERVAL: usize = 512;

impl Events {
    fn of(places: &HeldCapacity<'_>, machines: usize) -> Events {
        let count = places.len();
        assert!(u32::try_from(count).is_ok(), "fewer than 2^32 places");
        let origin = places.workload.columns().submit.first().map_or(0, |t| t.nanos());
        let span = places.run.end.nanos() - origin;
        let per_machine = (2 * count / EVENTS_PER_INTERVAL / machines.max(1)).max(1);
        let width = (span / per_machine as u64).max(1);
        let empty = || vec![0usize; machines * per_machine + 1];
        let mut events =
            Events { origin, width, per_machine, offsets: [empty(), empty()], places: [Vec::new(), Vec::new()] };
        let all = || (0..count as u32).filter_map(|place| Some((place, places.held(place)?)));
        for (_, (start, finish, machine)) in all() {
            for (which, t) in [start, finish].into_iter().enumerate() {
                let at = events.at(machine, t);
                events.offsets[which][at + 1] += 1;
            }
        }
        for which in 0..2 {
            let offsets = &mut events.offsets[which];
            (1..offsets.len()).for_each(|i| offsets[i] += offsets[i - 1]);
            events.places[which] = vec![0; *offsets.last().unwrap_or(&0)];
        }
        let mut next = events.offsets.clone();
        for (place, (start, finish, machine)) in all() {
            for (which, t) in [start, finish].into_iter().enumerate() {
                let to = &mut next[which][events.at(machine, t)];
                events.places[which][*to] = place;
                *to += 1;
            }
        }
        events
    }

    fn at(&self, machine: u32, t: u64) -> usize {
        let stretch = ((t - self.origin) / self.width).min(self.per_machine as u64 - 1);
        machine as usize * self.per_machine + stretch as usize
    }

    fn of_stretch(&self, which: usize, at: usize) -> &[u32] {
        &self.places[which][self.offsets[which][at]..self.offsets[which][at + 1]]
    }
}

/// The machines of a group, one after another.
struct Sweep {
    has: Vec<u64>,
    free: Vec<u64>,
    /// By resource: free amount times waiting time.
    idle: Vec<Sum>,
    /// By pair: f_a T_b - f_b T_a, if above 0, times the same.
    beyond: Vec<Sum>,
    group_idle: Vec<UBig>,
    group_beyond: Vec<UBig>,
    sorted: Vec<(u64, u32, bool)>,
}

impl Sweep {
    fn new(width: usize) -> Sweep {
        Sweep {
            has: Vec::new(),
            free: Vec::new(),
            idle: vec![Sum::default(); width],
            beyond: vec![Sum::default(); width * width],
            group_idle: Vec::new(),
            group_beyond: Vec::new(),
            sorted: Vec::new(),
        }
    }

    fn begin(&mut self, has: &[u64]) {
        self.has = has.to_vec();
        self.group_idle = vec![UBig::ZERO; has.len()];
        self.group_beyond = vec![UBig::ZERO; has.len() * has.len()];
    }

    fn machine(&mut self, machine: u32, places: &HeldCapacity<'_>, events: &Events, queue: &WaitingPeriods) {
        self.free.clone_from(&self.has);
        let (mut at, mut queued) = (0, 0);
        let first = machine as usize * events.per_machine;
        for stretch in first..first + events.per_machine {
            let mut sorted = std::mem::take(&mut self.sorted);
            sorted.clear();
            for (which, gives) in [(0, false), (1, true)] {
                sorted.extend(events.of_stretch(which, stretch).iter().filter_map(|&place| {
                    let (start, finish, _) = places.held(place)?;
                    Some((if gives { finish } else { start }, place, gives))
                }));
            }
            sorted.sort_unstable_by_key(|event| event.0);
            for &(t, place, gives) in &sorted {
                let until = queue.until(t, &mut at);
                self.count(until - queued);
                queued = until;
                // The order within an instant does not matter: free amounts are read only after it.
                for (free, amount) in self.free.iter_mut().zip(places.amounts(place)) {
                    *free = if gives { free.wrapping_add(amount) } else { free.wrapping_sub(amount) };
                }
            }
            self.sorted = sorted;
        }
        self.count(queue.total - queued);
        let flush = |sums: &mut [Sum], into: &mut [UBig]| {
            sums.iter_mut().zip(into).for_each(|(sum, all)| *all += std::mem::take(sum).whole());
        };
        flush(&mut self.idle, &mut self.group_idle);
        flush(&mut self.beyond, &mut self.group_beyond);
    }

    /// Adds the current free amounts for the waiting time since the last event.
    fn count(&mut self, waited: u64) {
        if waited == 0 {
            return;
        }
        let width = self.has.len();
        for a in 0..width {
            self.idle[a].add(u128::from(self.free[a]), waited);
            for b in a + 1..width {
                let of_a = u128::from(self.free[a]) * u128::from(self.has[b]);
                let of_b = u128::from(self.free[b]) * u128::from(self.has[a]);
                if of_a > of_b {
                    self.beyond[a * width + b].add(of_a - of_b, waited);
                } else if of_b > of_a {
                    self.beyond[b * width + a].add(of_b - of_a, waited);
                }
            }
        }
    }

    fn add_to(&self, waste: &mut IdleWhileWaiting) {
        let width = self.has.len();
        for a in 0..width {
            waste.idle[a] += Rational::from(self.group_idle[a].clone());
            for b in (0..width).filter(|&b| self.has[b] > 0) {
                waste.stranded[a][b] +=
                    Rational::from_parts(self.group_beyond[a * width + b].clone().into(), self.has[b].into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against looking through all stretches for each instant.
        #[test]
        fn queued_time_is_what_was_waited_before(
            lengths in prop::collection::vec((1u64..5, 1u64..5), 0..30),
            mut times in prop::collection::vec(0u64..200, 0..20),
        ) {
            let mut queue = WaitingPeriods { stretches: Vec::new(), total: 0 };
            let mut t = 0;
            for (idle, waits) in lengths {
                queue.stretches.push((t + idle, t + idle + waits, queue.total));
                queue.total += waits;
                t += idle + waits;
            }
            times.sort_unstable();
            let mut at = 0;
            for t in times {
                let waits = |i: &u64| queue.stretches.iter().any(|(from, to, _)| from <= i && i < to);
                prop_assert_eq!(queue.until(t, &mut at), (0..t).filter(waits).count() as u64);
            }
        }
    }
}
