//! Classes of machines: those of one group that have the same amounts free.

use std::collections::HashSet;

use super::chunk_choice;
use super::kind::{Kind, copies, fits};
use super::machine_set::MachineSet;
use super::occupied_classes::{NOWHERE, OccupiedClasses};
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
    /// Its place among its group's classes that have machines, or [`NOWHERE`].
    place: u32,
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
    /// By group: its classes that have machines, in no order.
    occupied: Vec<OccupiedClasses>,
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
        let mut new = MachineClasses {
            width,
            machines: site.len() as u32,
            classes: Vec::new(),
            free: Vec::new(),
            occupied: vec![OccupiedClasses::default(); site.groups.len()],
            class_of: vec![0; site.len()],
            table: vec![EMPTY; 64],
            scores: Scores::new(rule, site, width),
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
        self.classes.push(Class { group, place: NOWHERE, members: MachineSet::default() });
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
        if c.place == NOWHERE {
            let free = &self.free[class as usize * self.width..][..self.width];
            self.shape.clear();
            self.scores.push_shape(free, &mut self.shape);
            c.place = occupied.push(class, self.scores.of_free(free), free, &self.shape);
        }
        occupied.machines[c.place as usize] += machines;
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
        let occupied = &mut self.occupied[usize::from(c.group)];
        occupied.machines[c.place as usize] -= machines;
        if occupied.machines[c.place as usize] == 0 {
            c.members.clear();
            let place = std::mem::replace(&mut c.place, NOWHERE);
            if let Some(moved) = occupied.swap_remove(place, self.width) {
                self.classes[moved as usize].place = place;
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
        let occupied: usize = self.occupied.iter().map(OccupiedClasses::len).sum();
        if self.classes.len() <= 2 * occupied + IDLE_CLASSES {
            return;
        }
        let mut new_number = vec![EMPTY; self.classes.len()];
        let (mut kept, width) = (0, self.width);
        for (old, number) in new_number.iter_mut().enumerate() {
            if self.classes[old].place == NOWHERE {
                continue;
            }
            *number = kept as u32;
            self.classes.swap(kept, old);
            self.free.copy_within(old * width..(old + 1) * width, kept * width);
            kept += 1;
        }
        self.classes.truncate(kept);
        self.free.truncate(kept * width);
        let occupied = self.occupied.iter_mut().flat_map(|occupied| &mut occupied.classes);
        occupied.for_each(|class| *class = new_number[*class as usize]);
        self.class_of.iter_mut().for_each(|class| *class = new_number[*class as usize]);
        self.fill_table();
    }

    /// How many chunks of a kind of job fit.
    pub(crate) fn capacity(&self, kind: &Kind) -> u128 {
        let mut has_room_for_last = false;
        let mut full = 0u128;
        for occupied in kind.groups.iter().map(|g| &self.occupied[usize::from(*g)]) {
            for (free, &machines) in occupied.free.chunks_exact(self.width).zip(&occupied.machines) {
                let on_one = copies(&kind.chunk, free);
                has_room_for_last = has_room_for_last || kind.has_room_for_last(free, on_one);
                full += on_one * u128::from(machines);
            }
        }
        full + u128::from(has_room_for_last)
    }

    /// The machine that the rule chooses for a chunk of the kind among those that are not excluded, and its score; first
    /// fit is not asked here.
    pub(crate) fn choose(&mut self, kind: &Kind, chunk: &[u64], excluded: impl Fn(u32) -> bool) -> Option<(u64, u32)> {
        let mut best: Option<(u64, u32)> = None;
        self.scores.of_chunk(chunk);
        for occupied in kind.groups.iter().map(|g| &self.occupied[usize::from(*g)]) {
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
            let is_late = later(machine).is_some_and(|free| {
                kind.beside(free, chunks, &mut left);
                !fits(last, &left)
            });
            kind.beside(self.free_of(self.of(machine)), chunks, &mut left);
            if fits(last, &left) && !is_late {
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
        let mut fitting = Vec::new();
        self.scores.of_chunk(&kind.chunk);
        for occupied in kind.groups.iter().map(|g| &self.occupied[usize::from(*g)]) {
            for (at, free) in occupied.free.chunks_exact(width).enumerate() {
                if fits(&kind.chunk, free) {
                    let score = self.scores.of_class(occupied.scores[at], &occupied.shapes, at);
                    fitting.push((score, occupied.classes[at]));
                }
            }
        }
        let free_of = |class: u32| &self.free[class as usize * width..][..width];
        let members_of = |class: u32| &self.classes[class as usize].members;
        chunk_choice::choose_all(kind, &mut self.scores, fitting.into_iter(), free_of, members_of, later)
    }
}
