//! What is free on the machines of a site, and where a chunk is put.

use super::free_capacity_tree::FreeCapacityTree;
use super::kind::{Kind, fits};
use super::machine_classes::MachineClasses;
use super::placement::{Placement, Scores};
use super::placements::{Placements, Run, runs_of};
use super::site::Site;
use super::uneven_chunks;

/// Free amounts by machine, with the structures that find machines in them.
#[derive(Clone, Debug)]
pub(crate) struct FreeMachines {
    tree: FreeCapacityTree,
    /// `None` on a single machine, on which there is nothing to choose.
    classes: Option<MachineClasses>,
    pub(crate) rule: Placement,
}

/// Where a job may use less of what is free: on machines of some groups only what is also free later.
pub(crate) struct Limit<'a> {
    /// What is free later; amounts taken of the limited machines are taken of it too.
    pub(crate) later: &'a mut FreeMachines,
    /// Whether it limits the machines of this group.
    pub(crate) limits: &'a dyn Fn(usize) -> bool,
}

impl FreeMachines {
    /// All machines empty.
    pub(crate) fn new(site: &Site, width: usize, rule: Placement) -> FreeMachines {
        let classes = (site.len() > 1).then(|| MachineClasses::new(site, width, rule));
        FreeMachines { tree: FreeCapacityTree::new(site, width), classes, rule }
    }

    /// What is free on a machine.
    #[inline]
    pub(crate) fn of(&self, machine: u32) -> &[u64] {
        self.tree.of(machine)
    }

    /// Takes `chunks` chunks of a machine.
    pub(crate) fn take(&mut self, machine: u32, chunk: &[u64], chunks: u32) {
        self.tree.take(machine, chunk, chunks);
        if let Some(classes) = &mut self.classes {
            classes.update(machine, self.tree.of(machine));
        }
    }

    /// Gives `chunks` chunks back to a machine.
    pub(crate) fn give(&mut self, machine: u32, chunk: &[u64], chunks: u32) {
        self.tree.give(machine, chunk, chunks);
        if let Some(classes) = &mut self.classes {
            classes.update(machine, self.tree.of(machine));
        }
    }

    /// Takes what a job holds.
    pub(crate) fn take_job(&mut self, kind: &Kind, held: &Placements) {
        match held.only() {
            Some((machine, chunks)) => self.take(machine, &kind.chunk, chunks),
            None => self.take_all(held.runs(), &kind.chunk),
        }
        if let Some((machine, chunk)) = held.last.zip(kind.last.as_deref()) {
            self.take(machine, chunk, 1);
        }
        held.of_sizes.iter().for_each(|&(size, machine, chunks)| self.take(machine, kind.of_size(size), chunks));
    }

    /// Gives back what a job holds.
    pub(crate) fn give_job(&mut self, kind: &Kind, held: &Placements) {
        match held.only() {
            Some((machine, chunks)) => self.give(machine, &kind.chunk, chunks),
            None => self.give_all(held.runs(), &kind.chunk),
        }
        if let Some((machine, chunk)) = held.last.zip(kind.last.as_deref()) {
            self.give(machine, chunk, 1);
        }
        held.of_sizes.iter().for_each(|&(size, machine, chunks)| self.give(machine, kind.of_size(size), chunks));
    }

    /// Takes as many chunks of each machine as `held` says.
    pub(crate) fn take_all(&mut self, held: impl Iterator<Item = Run> + Clone, chunk: &[u64]) {
        self.change_all(held, chunk, |free, amount| free - amount);
    }

    /// Gives as many chunks back to each machine as `held` says.
    pub(crate) fn give_all(&mut self, held: impl Iterator<Item = Run> + Clone, chunk: &[u64]) {
        self.change_all(held, chunk, |free, amount| free + amount);
    }

    fn change_all(&mut self, held: impl Iterator<Item = Run> + Clone, chunk: &[u64], change: impl Fn(u64, u64) -> u64) {
        self.tree.change_all(held.clone(), chunk, change);
        if let Some(classes) = &mut self.classes {
            classes.update_all(held, |machine| self.tree.of(machine));
        }
    }

    /// Whether a chunk fits on a machine.
    pub(crate) fn fits_on(&self, machine: u32, chunk: &[u64]) -> bool {
        fits(chunk, self.of(machine))
    }

    /// The class of a machine and what is free on machines of a class; `None` on a single machine.
    pub(crate) fn classes(&self) -> Option<&MachineClasses> {
        self.classes.as_ref()
    }

    /// The first machine from `from` on and below `to` on which a chunk fits.
    pub(crate) fn next(&self, from: u32, to: u32, chunk: &[u64]) -> Option<u32> {
        self.tree.next(from, to, chunk)
    }

    /// How many chunks of a kind of job fit: a step for each class of machines. A smaller last chunk counts as one more
    /// if it fits beside as many of the others as fit: all chunks of the job fit if and only if this is their number.
    pub(crate) fn capacity(&self, kind: &Kind) -> u128 {
        self.capacity_up_to(kind, u128::MAX)
    }

    /// Whether at least so many chunks of a kind of job fit, counted in the same way.
    pub(crate) fn has_capacity(&self, kind: &Kind, chunks: u128) -> bool {
        self.capacity_up_to(kind, chunks) >= chunks
    }

    /// The capacity, or less than that but at least `enough`.
    fn capacity_up_to(&self, kind: &Kind, enough: u128) -> u128 {
        match &self.classes {
            Some(classes) => classes.capacity(kind, enough),
            None if kind.groups.is_empty() => 0,
            None => {
                let most = kind.chunks_on(self.tree.of(0));
                most + u128::from(kind.last_fits_beside_chunks(self.tree.of(0), most))
            }
        }
    }

    /// Whether a job of this kind fits.
    pub(crate) fn fits(&self, site: &Site, kind: &Kind) -> bool {
        if kind.copies > 1 {
            return self.has_capacity(kind, u128::from(kind.copies));
        }
        kind.groups.iter().map(|&g| &site.groups[usize::from(g)]).any(|group| {
            let (from, to) = (group.first, group.first + group.count);
            self.tree.next(from, to, &kind.chunk).is_some()
        })
    }

    /// Takes capacity for all chunks of a job, each where the rule puts it. Where they do not fit nothing is taken.
    pub(crate) fn place(&mut self, site: &Site, kind: &Kind, limit: &mut Option<Limit<'_>>) -> Option<Placements> {
        let held = self.find(site, kind, limit)?;
        self.take_job(kind, &held);
        if let Some(limit) = limit.as_mut().filter(|limit| kind.groups.iter().any(|g| (limit.limits)(usize::from(*g))))
        {
            let limited = |machine: u32| (limit.limits)(site.group_of(machine));
            match kind.groups.iter().all(|group| (limit.limits)(usize::from(*group))) {
                true => limit.later.take_all(held.runs(), &kind.chunk),
                false => {
                    limit.later.take_all(runs_of(held.iter().filter(|(machine, _)| limited(*machine))), &kind.chunk)
                }
            }
            if let Some((machine, chunk)) = held.last.filter(|last| limited(*last)).zip(kind.last.as_deref()) {
                limit.later.take(machine, chunk, 1);
            }
            for &(size, machine, chunks) in held.of_sizes.iter().filter(|(_, machine, _)| limited(*machine)) {
                limit.later.take(machine, kind.of_size(size), chunks);
            }
        }
        Some(held)
    }

    /// Where the rule puts the chunks of a job, if they fit.
    pub(crate) fn find(&mut self, site: &Site, kind: &Kind, limit: &Option<Limit<'_>>) -> Option<Placements> {
        let later = |machine: u32| {
            let limit = limit.as_ref().filter(|l| (l.limits)(site.group_of(machine)));
            limit.map(|l| l.later.of(machine))
        };
        if kind.is_uneven() {
            let free = uneven_chunks::Free { now: &|machine| self.tree.of(machine), later: &later };
            return uneven_chunks::place(site, kind, &free, &mut Scores::new(self.rule, site, kind.chunk.len()));
        }
        let mut held = Placements::default();
        let Some(classes) = self.classes.as_mut().filter(|_| self.rule != Placement::FirstFit) else {
            held = self.find_first(site, kind, limit)?;
            if let Some(last) = &kind.last {
                held.last = Some(self.find_first_for_last(site, kind, last, &held, later)?);
            }
            return Some(held);
        };
        if kind.full_chunks() == 1 {
            let excluded = |machine: u32| later(machine).is_some_and(|free| !fits(&kind.chunk, free));
            held.add(classes.choose(kind, &kind.chunk, excluded)?.1, 1);
        } else {
            let (mut chunks, rule) = (classes.choose_all(kind, later)?, self.rule);
            if rule != Placement::BestFit {
                chunks.sort_unstable();
            }
            chunks.into_iter().for_each(|(machine, chunks)| held.add(machine, chunks));
        }
        if let Some(last) = &kind.last {
            held.last = Some(classes.choose_for_last(kind, last, &held, later)?);
        }
        Some(held)
    }

    /// The first machine on which the smaller last chunk of a job fits beside the others.
    fn find_first_for_last<'l>(
        &self,
        site: &Site,
        kind: &Kind,
        last: &[u64],
        held: &Placements,
        later: impl Fn(u32) -> Option<&'l [u64]>,
    ) -> Option<u32> {
        let mut left = vec![0; last.len()];
        let mut others = held.iter().peekable();
        for group in kind.groups.iter().map(|&g| &site.groups[usize::from(g)]) {
            let (mut from, to) = (group.first, group.first + group.count);
            while let Some(machine) = self.tree.next(from, to, last) {
                from = machine + 1;
                while others.next_if(|(other, _)| *other < machine).is_some() {}
                let chunks = others.peek().filter(|(other, _)| *other == machine).map_or(0, |(_, chunks)| *chunks);
                let mut last_fits = |free: &[u64]| kind.last_fits_beside(free, chunks, &mut left);
                if last_fits(self.of(machine)) && later(machine).is_none_or(last_fits) {
                    return Some(machine);
                }
            }
        }
        None
    }

    /// Where first fit puts the chunks of a job: as many as fit on one machine after another. On a single machine every
    /// rule does.
    fn find_first(&self, site: &Site, kind: &Kind, limit: &Option<Limit<'_>>) -> Option<Placements> {
        let (mut held, mut left) = (Placements::default(), kind.full_chunks());
        for &number in &kind.groups {
            let group = &site.groups[usize::from(number)];
            let later = limit.as_ref().filter(|limit| (limit.limits)(usize::from(number))).map(|limit| &*limit.later);
            let (mut from, to) = (group.first, group.first + group.count);
            while let Some(machine) = self.tree.next(from, to, &kind.chunk) {
                from = machine + 1;
                let free = self.of(machine);
                let free_later = later.map(|later| later.of(machine));
                if free_later.is_some_and(|free| !fits(&kind.chunk, free)) {
                    let next = later.and_then(|later| later.next(from, to, &kind.chunk));
                    from = next.unwrap_or(to);
                    continue;
                }
                let now = if left == 1 { 1 } else { kind.chunks_on(free) };
                let fitting = match free_later.filter(|later| left > 1 && !is_same(later, free)) {
                    Some(free) => kind.chunks_on(free).min(now),
                    None => now,
                };
                let chunks = fitting.min(u128::from(left)) as u32;
                // Machines side by side mostly have equally much free.
                let is_alike = |m: &u32| {
                    let later = later.zip(free_later);
                    is_same(self.of(*m), free) && later.is_none_or(|(later, free)| is_same(later.of(*m), free))
                };
                let more = (from..to).take((left / chunks) as usize - 1).take_while(is_alike).count() as u32;
                from += more;
                held.add_run(Run { machine, machines: 1 + more, chunks });
                left -= chunks * (1 + more);
                if left == 0 {
                    return Some(held);
                }
            }
        }
        None
    }
}

/// Amounts one by one: there are one or two, and a call costs more.
fn is_same(a: &[u64], b: &[u64]) -> bool {
    a.iter().eq(b)
}
