//! What is free on the machines of a site, and where a chunk is put.

use super::free_capacity_tree::FreeCapacityTree;
use super::machine_classes::MachineClasses;
use super::machine_state::Placements;
use super::placement::Placement;
use super::site::{Kind, Site, copies, fits};

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

    /// How many chunks of a kind of job fit: a step for each class of machines.
    pub(crate) fn capacity(&self, kind: &Kind) -> u128 {
        match &self.classes {
            Some(classes) => classes.capacity(kind),
            None if kind.groups.is_empty() => 0,
            None => copies(&kind.chunk, self.tree.of(0)),
        }
    }

    /// Whether a job of this kind fits.
    pub(crate) fn fits(&self, site: &Site, kind: &Kind) -> bool {
        if kind.copies > 1 {
            return self.capacity(kind) >= u128::from(kind.copies);
        }
        kind.groups.iter().map(|&g| &site.groups[usize::from(g)]).any(|group| {
            let (from, to) = (group.first, group.first + group.count);
            self.tree.next(from, to, &kind.chunk).is_some()
        })
    }

    /// Takes capacity for all chunks of a job, each where the rule puts it. Where they do not fit nothing is taken.
    pub(crate) fn place(&mut self, site: &Site, kind: &Kind, limit: &mut Option<Limit<'_>>) -> Option<Placements> {
        // First fit and best fit put further chunks on the same machine while they fit; then none fits there, so that
        // first fit goes on behind it.
        let together = matches!(self.rule, Placement::FirstFit | Placement::BestFit);
        let mut held = Placements::default();
        let (mut left, mut from) = (kind.copies, 0);
        while left > 0 {
            let Some(machine) = self.choose(site, kind, from, limit) else {
                for (machine, chunks) in held.iter() {
                    self.give(machine, &kind.chunk, chunks);
                    if let Some(limit) = limit.as_mut().filter(|l| (l.limits)(site.group_of(machine))) {
                        limit.later.give(machine, &kind.chunk, chunks);
                    }
                }
                return None;
            };
            let limit = limit.as_mut().filter(|l| (l.limits)(site.group_of(machine)));
            let mut chunks = 1;
            if together && left > 1 {
                let mut most = copies(&kind.chunk, self.of(machine));
                if let Some(limit) = &limit {
                    most = most.min(copies(&kind.chunk, limit.later.of(machine)));
                }
                chunks = most.min(u128::from(left)) as u32;
            }
            self.take(machine, &kind.chunk, chunks);
            if let Some(limit) = limit {
                limit.later.take(machine, &kind.chunk, chunks);
            }
            held.add(machine, chunks);
            left -= chunks;
            from = machine + 1;
        }
        if !together && kind.copies > 1 {
            held.merge();
        }
        Some(held)
    }

    /// The machine for the next chunk; `from`: no machine below it holds one, if the rule is first fit.
    fn choose(&mut self, site: &Site, kind: &Kind, from: u32, limit: &Option<Limit<'_>>) -> Option<u32> {
        let excluded = |machine: u32| {
            let limit = limit.as_ref().filter(|l| !fits(&kind.chunk, l.later.of(machine)));
            limit.is_some_and(|l| (l.limits)(site.group_of(machine)))
        };
        if let Some(classes) = self.classes.as_mut().filter(|_| self.rule != Placement::FirstFit) {
            return classes.choose(kind, excluded);
        }
        for group in kind.groups.iter().map(|&g| &site.groups[usize::from(g)]) {
            // On a single machine every rule comes here, and may put chunk after chunk on it.
            let first = if self.rule == Placement::FirstFit { from } else { 0 };
            let (mut from, to) = (group.first.max(first), group.first + group.count);
            while let Some(machine) = self.tree.next(from, to, &kind.chunk) {
                if !excluded(machine) {
                    return Some(machine);
                }
                from = machine + 1;
            }
        }
        None
    }
}
