//! Classes of machines: those of one group that have the same amounts free.

use std::collections::HashSet;

use super::chunk_choice;
use super::class_buckets::{ClassBuckets, Place};
use super::kind::{Kind, fits};
use super::machine_set::MachineSet;
use super::occupied_classes::OccupiedClasses;
use super::placement::{Placement, Scores};
use super::placements::{Placements, Run};
use super::site::Site;

/// Marks an empty place of the table of classes.
const EMPTY: u32 = u32::MAX;

/// Classes without machines that are kept beyond as many as have machines, so that a class that comes and goes is
/// found and not made.
const IDLE_CLASSES: usize = 256;

/// A class: machines that no placement rule tells apart but by their number.
#[derive(Clone, Debug)]
struct Class {
    group: u16,
    /// Its place among its group's classes that have machines, if it has any.
    place: Option<Place>,
    /// Which machines it has, unless the rule is first fit.
    members: MachineSet,
}

/// The machines of a site by what is free on them.
///
/// Real machines have few different free amounts, so what holds of a machine is asked of a class: how many chunks fit
/// now costs a step for each class, not for each machine. A machine that changes is moved at the price of a look-up
/// in a hash table.
#[derive(Clone, Debug)]
pub(crate) struct MachineClasses {
    width: usize,
    machines: u32,
    classes: Vec<Class>,
    /// Free amounts, class by class.
    free: Vec<u64>,
    /// By group: its classes that have machines.
    occupied: Vec<ClassBuckets>,
    /// By machine: its class.
    class_of: Vec<u32>,
    /// Open addressing: classes by their hash.
    table: Vec<u32>,
    scores: Scores,
    shape: Vec<u64>,
}

impl MachineClasses {
    /// All machines empty.
    pub(crate) fn new(site: &Site, width: usize, rule: Placement) -> MachineClasses {
        let scores = Scores::new(rule, site, width);
        let mut new = MachineClasses {
            width,
            machines: site.len() as u32,
            classes: Vec::new(),
            free: Vec::new(),
            occupied: site.groups.iter().map(|g| ClassBuckets::new(scores.keys(&g.has), g.count, width)).collect(),
            class_of: vec![0; site.len()],
            table: vec![EMPTY; 64],
            scores,
            shape: Vec::new(),
        };
        for (g, group) in site.groups.iter().enumerate() {
            let class = new.class(g as u16, &group.has);
            (group.first..group.first + group.count).for_each(|machine| new.join(class, machine));
        }
        new
    }

    /// The class of a machine. Numbers of classes change whenever a machine does.
    pub(crate) fn of(&self, machine: u32) -> u32 {
        self.class_of[machine as usize]
    }

    /// The classes of the machines of a run.
    pub(crate) fn of_run(&self, run: Run) -> &[u32] {
        &self.class_of[run.machine as usize..run.end() as usize]
    }

    /// The group of the machines of a class.
    pub(crate) fn group_of(&self, class: u32) -> u16 {
        self.classes[class as usize].group
    }

    /// What is free on each machine of a class.
    #[inline]
    pub(crate) fn free_of(&self, class: u32) -> &[u64] {
        &self.free[class as usize * self.width..][..self.width]
    }

    fn hash(group: u16, free: &[u64]) -> u64 {
        let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        free.iter().fold(mix(0, u64::from(group)), |hash, part| mix(hash, *part))
    }

    #[inline]
    fn is(&self, class: u32, group: u16, free: &[u64]) -> bool {
        // Amounts one by one: there are one or two, and a call costs more.
        self.classes[class as usize].group == group && self.free_of(class).iter().zip(free).all(|(a, b)| a == b)
    }

    /// Finds the class of machines of a group with these amounts free; makes it if there is none.
    fn class(&mut self, group: u16, free: &[u64]) -> u32 {
        let mask = self.table.len() - 1;
        let mut at = Self::hash(group, free) as usize & mask;
        loop {
            match self.table[at] {
                EMPTY => break,
                class if self.is(class, group, free) => return class,
                _ => at = (at + 1) & mask,
            }
        }
        let class = self.classes.len() as u32;
        self.table[at] = class;
        self.classes.push(Class { group, place: None, members: MachineSet::default() });
        self.free.extend_from_slice(free);
        if self.classes.len() * 2 > self.table.len() {
            self.fill_table();
        }
        class
    }

    fn fill_table(&mut self) {
        let size = (self.classes.len() * 4).next_power_of_two().max(64);
        self.table.clear();
        self.table.resize(size, EMPTY);
        for class in 0..self.classes.len() as u32 {
            let mut at = Self::hash(self.classes[class as usize].group, self.free_of(class)) as usize & (size - 1);
            while self.table[at] != EMPTY {
                at = (at + 1) & (size - 1);
            }
            self.table[at] = class;
        }
    }

    fn join(&mut self, class: u32, machine: u32) {
        self.class_of[machine as usize] = class;
        self.count_in(class, 1);
        if self.scores.rule != Placement::FirstFit {
            self.classes[class as usize].members.insert(machine, self.machines);
        }
    }

    /// Counts machines that are now of a class.
    fn count_in(&mut self, class: u32, machines: u32) {
        let c = &mut self.classes[class as usize];
        let occupied = &mut self.occupied[usize::from(c.group)];
        let place = *c.place.get_or_insert_with(|| {
            let free = &self.free[class as usize * self.width..][..self.width];
            self.shape.clear();
            self.scores.push_shape(free, &mut self.shape);
            let score = self.scores.of_free(free);
            occupied.push(self.scores.key(score, &self.shape), class, score, free, &self.shape)
        });
        *occupied.machines_at(place) += machines;
    }

    fn leave(&mut self, class: u32, machine: u32) {
        if self.scores.rule != Placement::FirstFit {
            self.classes[class as usize].members.remove(machine);
        }
        self.count_out(class, 1);
    }

    /// Counts machines that are no longer of a class.
    fn count_out(&mut self, class: u32, machines: u32) {
        let c = &mut self.classes[class as usize];
        let Some(place) = c.place else { return };
        let occupied = &mut self.occupied[usize::from(c.group)];
        let left = occupied.machines_at(place);
        *left -= machines;
        if *left == 0 {
            c.members.clear();
            c.place = None;
            if let Some(moved) = occupied.swap_remove(place, self.width) {
                self.classes[moved as usize].place = Some(place);
            }
        }
    }

    /// Notes that a machine now has these amounts free.
    pub(crate) fn update(&mut self, machine: u32, free: &[u64]) {
        let old = self.class_of[machine as usize];
        let new = self.class(self.classes[old as usize].group, free);
        if new != old {
            self.leave(old, machine);
            self.join(new, machine);
            self.drop_idle();
        }
    }

    /// Notes what is now free on several machines, of each of which as many chunks as `held` says have been taken, or
    /// given back. Machines of one class of which equally much is taken remain of one class, which is looked up once.
    pub(crate) fn update_all<'a>(&mut self, held: impl Iterator<Item = Run>, free: impl Fn(u32) -> &'a [u64]) {
        let is_first_fit = self.scores.rule == Placement::FirstFit;
        // Machines that move alike, and their classes before and after.
        let (mut moved, mut old, mut new, mut alike) = (0, EMPTY, EMPTY, 0);
        for run in held {
            let mut from = run.machine;
            while from < run.end() {
                let class = self.class_of[from as usize];
                if (class, run.chunks) != (old, alike) || moved == 0 {
                    self.move_machines(old, new, moved);
                    (moved, old, alike) = (0, class, run.chunks);
                    new = self.class(self.classes[old as usize].group, free(from));
                }
                let of_run = &mut self.class_of[from as usize..run.end() as usize];
                let of_class = of_run.iter().position(|other| *other != class).unwrap_or(of_run.len());
                of_run[..of_class].fill(new);
                let of_class = of_class as u32;
                if !is_first_fit && new != old {
                    for machine in from..from + of_class {
                        self.classes[old as usize].members.remove(machine);
                        self.classes[new as usize].members.insert(machine, self.machines);
                    }
                }
                moved += of_class;
                from += of_class;
            }
        }
        self.move_machines(old, new, moved);
        self.drop_idle();
    }

    /// Counts machines that have moved from one class to another.
    fn move_machines(&mut self, old: u32, new: u32, machines: u32) {
        if machines > 0 && old != new {
            self.count_out(old, machines);
            self.count_in(new, machines);
        }
    }

    /// Drops the classes without machines once they are many.
    fn drop_idle(&mut self) {
        if self.classes.len() <= IDLE_CLASSES {
            return;
        }
        let occupied: usize = self.occupied.iter().map(ClassBuckets::len).sum();
        if self.classes.len() <= 2 * occupied + IDLE_CLASSES {
            return;
        }
        let mut new_number = vec![EMPTY; self.classes.len()];
        let (mut kept, width) = (0, self.width);
        for (old, number) in new_number.iter_mut().enumerate() {
            if self.classes[old].place.is_none() {
                continue;
            }
            *number = kept as u32;
            self.classes.swap(kept, old);
            self.free.copy_within(old * width..(old + 1) * width, kept * width);
            kept += 1;
        }
        self.classes.truncate(kept);
        self.free.truncate(kept * width);
        self.occupied.iter_mut().for_each(|occupied| occupied.renumber(&new_number));
        self.class_of.iter_mut().for_each(|class| *class = new_number[*class as usize]);
        self.fill_table();
    }

    /// How many chunks of a kind of job fit; where they are at least `enough`, at least so many.
    pub(crate) fn capacity(&self, kind: &Kind, enough: u128) -> u128 {
        let smallest = kind.smallest_chunk();
        let keys = self.scores.keys_that_fit(smallest);
        let mut last_fits = false;
        let mut full = 0u128;
        let groups = kind.groups.iter().map(|g| &self.occupied[usize::from(*g)]);
        let buckets = groups.flat_map(|group| group.nearest(0, keys.clone()));
        for (_, occupied) in buckets.filter(|(_, occupied)| occupied.may_hold(smallest)) {
            for (free, &machines) in occupied.free.chunks_exact(self.width).zip(&occupied.machines) {
                let on_one = kind.chunks_on(free);
                last_fits = last_fits || kind.last_fits_beside_chunks(free, on_one);
                full += on_one * u128::from(machines);
                if full >= enough {
                    return full;
                }
            }
        }
        full + u128::from(last_fits)
    }

    /// The machine that the rule chooses for a chunk of the kind among those that are not excluded, and its score; first
    /// fit is not asked here.
    pub(crate) fn choose(&mut self, kind: &Kind, chunk: &[u64], excluded: impl Fn(u32) -> bool) -> Option<(u64, u32)> {
        let mut best: Option<(u64, u32)> = None;
        self.scores.of_chunk(chunk);
        let (key, keys) = (self.scores.key_of_chunk(), self.scores.keys_that_fit(chunk));
        for group in kind.groups.iter().map(|g| &self.occupied[usize::from(*g)]) {
            for (least, occupied) in group.nearest(key, keys.clone()) {
                if best.is_some_and(|b| least > b.0) {
                    break;
                }
                if occupied.may_hold(chunk) {
                    best = self.choose_in(occupied, chunk, &excluded, best);
                }
            }
        }
        best
    }

    /// The better of a choice and the machines of some classes.
    fn choose_in(
        &self,
        occupied: &OccupiedClasses,
        chunk: &[u64],
        excluded: &impl Fn(u32) -> bool,
        mut best: Option<(u64, u32)>,
    ) -> Option<(u64, u32)> {
        for (at, free) in occupied.free.chunks_exact(self.width).enumerate() {
            let of_free = occupied.scores[at];
            if best.is_some_and(|b| of_free > b.0) || !fits(chunk, free) {
                continue;
            }
            let score = self.scores.of_class(of_free, &occupied.shapes, at);
            if best.is_some_and(|b| score > b.0) {
                continue;
            }
            let members = &self.classes[occupied.classes[at] as usize].members;
            let mut next = members.next(0);
            while let Some(machine) = next.filter(|m| best.is_none_or(|b| (score, *m) < b)) {
                if !excluded(machine) {
                    best = Some((score, machine));
                    break;
                }
                next = members.next(machine + 1);
            }
        }
        best
    }

    /// The machine that the rule chooses for the smaller last chunk of a kind, whose others are `held`.
    pub(crate) fn choose_for_last<'l>(
        &mut self,
        kind: &Kind,
        last: &[u64],
        held: &Placements,
        later: impl Fn(u32) -> Option<&'l [u64]>,
    ) -> Option<u32> {
        let others: HashSet<u32> = held.iter().map(|(machine, _)| machine).collect();
        let excluded = |machine: u32| others.contains(&machine) || later(machine).is_some_and(|free| !fits(last, free));
        let mut best = self.choose(kind, last, excluded);
        let mut left = vec![0; self.width];
        for (machine, chunks) in held.iter() {
            let is_late = later(machine).is_some_and(|free| !kind.last_fits_beside(free, chunks, &mut left));
            if kind.last_fits_beside(self.free_of(self.of(machine)), chunks, &mut left) && !is_late {
                let choice = (self.scores.score(&left), machine);
                best = Some(best.map_or(choice, |best| best.min(choice)));
            }
        }
        best.map(|(_, machine)| machine)
    }

    /// The machines that the rule [chooses for all chunks](chunk_choice::choose_all) of a kind; first fit is not asked here.
    pub(crate) fn choose_all<'l>(
        &mut self,
        kind: &Kind,
        later: impl Fn(u32) -> Option<&'l [u64]>,
    ) -> Option<Vec<(u32, u32)>> {
        let width = self.width;
        self.scores.of_chunk(&kind.chunk);
        let (key, keys) = (self.scores.key_of_chunk(), self.scores.keys_that_fit(&kind.chunk));
        let groups = kind.groups.iter().map(|g| &self.occupied[usize::from(*g)]);
        let buckets = groups.flat_map(|group| group.nearest(key, keys.clone()));
        let mut batches: Vec<(u64, &OccupiedClasses)> =
            buckets.filter(|(_, occupied)| occupied.may_hold(&kind.chunk)).collect();
        batches.sort_by_key(|(least, _)| *least);
        let fitting_of = |scores: &Scores, occupied: &OccupiedClasses| -> Vec<(u64, u32)> {
            let free = occupied.free.chunks_exact(width).enumerate();
            let fitting = free.filter(|(_, free)| fits(&kind.chunk, free)).map(|(at, _)| at);
            let score_of = |at: usize| scores.of_class(occupied.scores[at], &occupied.shapes, at);
            fitting.map(|at| (score_of(at), occupied.classes[at])).collect()
        };
        let free_of = |class: u32| &self.free[class as usize * width..][..width];
        let members_of = |class: u32| &self.classes[class as usize].members;
        let batches = batches.into_iter();
        chunk_choice::choose_all(kind, &mut self.scores, batches, fitting_of, free_of, members_of, later)
    }
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Cluster, MachineGroup, Rational, Resource, ResourceQuantity};
    use proptest::prelude::*;

    use super::super::layout::LayoutRule;
    use super::super::placement::PLACEMENTS;
    use super::*;

    const HAS: [[u64; 3]; 2] = [[8, 16, 0], [16, 32, 4]];

    fn site(counts: [u32; 2]) -> Site {
        let resources = ["cpu", "mem", "gpu"];
        let group = |(has, count): ([u64; 3], u32)| MachineGroup {
            hosts: Vec::new(),
            name: format!("g{has:?}"),
            count,
            capacity: has.iter().map(|amount| ResourceQuantity::parse(&amount.to_string()).unwrap()).collect(),
            speed: Rational::ONE,
            weight: 1,
            properties: Vec::new(),
        };
        let cluster = Cluster {
            resources: resources.map(String::from).to_vec(),
            groups: HAS.into_iter().zip(counts).map(group).collect(),
            queues: Vec::new(),
            ..Cluster::default()
        };
        Site::machines(&cluster, &resources.map(|name| Resource::new(name, ""))).unwrap()
    }

    fn kind(chunk: Vec<u64>, copies: u32, groups: Vec<u16>) -> Kind {
        Kind {
            chunk,
            copies,
            last: None,
            sizes: Vec::new(),
            least: Vec::new(),
            groups,
            slowest: 0,
            queue: None,
            other_queues: Vec::new(),
            class: 0,
            licences: Vec::new(),
            rejection: None,
            rule: LayoutRule::Packed,
            misfit: None,
            drops_requirements: false,
            is_by_nodes: false,
            machines_of_tasks: None,
        }
    }

    /// One chunk after another on the machine with the least score on which it fits, now and later.
    fn choose_one_by_one(
        kind: &Kind,
        site: &Site,
        scores: &mut Scores,
        free: &[Vec<u64>],
        later: &[Vec<u64>],
    ) -> Option<Vec<(u32, u32)>> {
        let (mut free, mut later, mut chosen) = (free.to_vec(), later.to_vec(), vec![0; free.len()]);
        scores.of_chunk(&kind.chunk);
        for _ in 0..kind.copies {
            let fitting = (0..free.len()).filter(|&m| {
                let may = kind.groups.contains(&(site.group_of(m as u32) as u16));
                may && fits(&kind.chunk, &free[m]) && fits(&kind.chunk, &later[m])
            });
            let machine = fitting.min_by_key(|&m| (scores.score(&free[m]), m))?;
            for amounts in [&mut free[machine], &mut later[machine]] {
                amounts.iter_mut().zip(&kind.chunk).for_each(|(a, c)| *a -= c);
            }
            chosen[machine] += 1;
        }
        Some((0..).zip(chosen).filter(|(_, chunks)| *chunks > 0).collect())
    }

    proptest! {
        /// Against looking at each machine.
        #[test]
        fn the_machines_chosen_are_those_of_a_search_of_all(
            counts in [1u32..40, 1u32..20],
            changes in prop::collection::vec((any::<u32>(), [0u64..=8, 0u64..=8, 0u64..=2]), 0..150),
            less_later in prop::collection::vec((any::<u32>(), 0u64..8), 0..10),
            asks in prop::collection::vec(([1u64..8, 0u64..8, 0u64..2], 1u32..30, 1u16..4), 1..20),
            (_, rule) in prop::sample::select(PLACEMENTS[1..].to_vec()),
        ) {
            let site = site(counts);
            // In the site's own steps.
            let unit: Vec<u64> = (0..3).map(|r| site.groups[1].has[r] / HAS[1][r]).collect();
            let mut classes = MachineClasses::new(&site, 3, rule);
            let has = |machine: usize| site.groups[site.group_of(machine as u32)].has.clone();
            let mut free: Vec<Vec<u64>> = (0..site.len()).map(has).collect();
            for (machine, eighths) in changes {
                let machine = machine % site.len() as u32;
                let of = &mut free[machine as usize];
                let now = has(machine as usize);
                *of = (0..3).map(|r| (now[r] / unit[r] * eighths[r].min(8) / 8) * unit[r]).collect();
                classes.update(machine, of);
            }
            let mut later = free.clone();
            for (machine, cpus) in less_later {
                let of = &mut later[machine as usize % site.len()][0];
                *of = (*of).min(cpus * unit[0]);
            }
            let mut scores = Scores::new(rule, &site, 3);
            for (amounts, copies, groups) in asks {
                let chunk: Vec<u64> = (0..3).map(|r| amounts[r] * unit[r]).collect();
                let groups = (0..2).filter(|g| groups & (1 << g) != 0).collect();
                let kind = kind(chunk, copies, groups);
                let later_of = |machine: u32| Some(later[machine as usize].as_slice());
                let fitting = (0..).zip(&free).filter(|(m, _)| kind.groups.contains(&(site.group_of(*m) as u16)));
                let capacity: u128 = fitting.map(|(_, free)| kind.chunks_on(free)).sum();
                prop_assert_eq!(classes.capacity(&kind, u128::MAX), capacity);
                let wanted = u128::from(copies);
                prop_assert_eq!(classes.capacity(&kind, wanted) >= wanted, capacity >= wanted);
                let mut chosen = classes.choose_all(&kind, later_of);
                chosen.iter_mut().for_each(|chosen| chosen.sort_unstable());
                prop_assert_eq!(chosen, choose_one_by_one(&kind, &site, &mut scores, &free, &later));
                let excluded = |machine: u32| !fits(&kind.chunk, &later[machine as usize]);
                let one = classes.choose(&kind, &kind.chunk, excluded).map(|(_, machine)| vec![(machine, 1)]);
                let single = Kind { copies: 1, ..kind };
                prop_assert_eq!(one, choose_one_by_one(&single, &site, &mut scores, &free, &later));
            }
        }
    }
}
