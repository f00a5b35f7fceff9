//! Free capacity of all machines over future time, given the reservations: one profile for machines that have the same.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::availability_profile::Profile;
use super::machine_set::MachineSet;
use super::site::Site;

/// Profiles of more steps are not looked up: hardly two machines have the same, and to look at all of a long one costs more
/// than to change it.
const STEPS_LOOKED_UP: usize = 24;

/// Machines of one group with the same free amounts at every instant from now on.
#[derive(Clone, Debug)]
struct Class {
    group: u16,
    /// How many machines it has; the place of a class without any is used again.
    machines: u32,
    members: MachineSet,
    profile: Profile,
    /// Its hash, if it is found by that.
    key: Option<u64>,
    /// When capacity of one of its machines was last released, as [`MachineProfiles::released_at`] counts.
    released_at: u64,
}

/// The machines of a site by their profile.
///
/// Jobs of several machines hold the same on each, so real sites have far fewer profiles than machines: what is asked of
/// a machine, and what changes on it, costs a step for each profile. Two classes may have equal profiles, at the price of
/// time alone: nothing that is asked depends on how machines are divided into classes.
#[derive(Clone, Debug)]
pub(super) struct MachineProfiles {
    machines: u32,
    classes: Vec<Class>,
    /// The classes without machines.
    unused: Vec<u32>,
    class_of: Vec<u32>,
    /// Classes by a hash of group and profile.
    by_hash: HashMap<u64, u32, BuildHasherDefault<IsHash>>,
    /// When the second step of classes begins: the first is then past. Classes that have changed since are among them.
    next_steps: BinaryHeap<Reverse<(u64, u32)>>,
    /// By machine: the number of the last release of capacity of it; 0 if that never was.
    released_at: Vec<u64>,
    /// The classes with a machine of which capacity was ever released, by the last such number.
    by_release: BTreeSet<(u64, u32)>,
    /// By class: the last change to several machines that met it.
    targets: Vec<Target>,
    changes: u64,
    /// By class: the number of the last change to its machines, and of the last to their profile.
    changed_at: Vec<(u64, u64)>,
    class_changes: u64,
}

/// What a change to several machines does to those of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    /// The number of the change.
    change: u64,
    /// How many of the machines change.
    machines: u32,
    /// How many chunks change on the first of them.
    chunks: u32,
    /// Whether that holds for all.
    is_even: bool,
    /// The class of machines with so many chunks from then on, once it is known.
    to: Option<(u32, u32)>,
}

/// Numbers that are hashes already.
#[derive(Clone, Debug, Default)]
struct IsHash(u64);

impl Hasher for IsHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

fn hash(group: u16, profile: &Profile) -> u64 {
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    profile.parts().fold(mix(0, u64::from(group)), mix)
}

impl MachineProfiles {
    /// All machines empty.
    pub(super) fn new(site: &Site) -> MachineProfiles {
        let mut new = MachineProfiles {
            machines: site.len() as u32,
            classes: Vec::new(),
            unused: Vec::new(),
            class_of: vec![0; site.len()],
            by_hash: HashMap::default(),
            next_steps: BinaryHeap::new(),
            released_at: vec![0; site.len()],
            by_release: BTreeSet::new(),
            targets: Vec::new(),
            changes: 0,
            changed_at: Vec::new(),
            class_changes: 0,
        };
        for (g, group) in (0..).zip(&site.groups) {
            let class = new.class(g, Profile::new(&group.has));
            (group.first..group.first + group.count).for_each(|machine| new.join(class, machine));
        }
        new
    }

    /// The classes that have machines, with their group and how many machines they have.
    pub(super) fn classes(&self) -> impl Iterator<Item = (u32, u16, u32)> + '_ {
        let all = (0..).zip(&self.classes).map(|(number, class)| (number, class.group, class.machines));
        all.filter(|(_, _, machines)| *machines > 0)
    }

    /// The classes with a machine of which capacity was released after that number, with their group.
    pub(super) fn released_since(&self, number: u64) -> impl Iterator<Item = (u32, u16)> + '_ {
        let released = self.by_release.range((number + 1, 0)..);
        released.map(|(_, class)| (*class, self.classes[*class as usize].group))
    }

    /// The number of the last change to a class.
    pub(super) fn class_changes(&self) -> u64 {
        self.class_changes
    }

    /// How many classes there are, those without machines among them.
    pub(super) fn places(&self) -> usize {
        self.classes.len()
    }

    /// The classes that have changed after that number: each with its group, how many machines it has, and whether it has
    /// another profile, but for what is past.
    pub(super) fn changed_since(&self, number: u64) -> impl Iterator<Item = (u32, u16, u32, bool)> + '_ {
        let changed = (0..).zip(&self.changed_at).filter(move |(_, changed)| changed.0 > number);
        changed.map(move |(number_of_class, &(_, profile))| {
            let class: &Class = &self.classes[number_of_class as usize];
            (number_of_class, class.group, class.machines, profile > number)
        })
    }

    fn note_change(&mut self, class: u32, has_new_profile: bool) {
        self.class_changes += 1;
        let changed = &mut self.changed_at[class as usize];
        changed.0 = self.class_changes;
        if has_new_profile {
            changed.1 = self.class_changes;
        }
    }

    /// Whether capacity of a machine was released after that number.
    pub(super) fn is_released_since(&self, machine: u32, number: u64) -> bool {
        self.released_at[machine as usize] > number
    }

    pub(super) fn class_of(&self, machine: u32) -> u32 {
        self.class_of[machine as usize]
    }

    pub(super) fn profile_of(&self, class: u32) -> &Profile {
        &self.classes[class as usize].profile
    }

    pub(super) fn members_of(&self, class: u32) -> &MachineSet {
        &self.classes[class as usize].members
    }

    /// The hash by which machines of a group with a profile are looked up, if they are, and the class that is found.
    fn look_up(&self, group: u16, profile: &Profile) -> (Option<u64>, Option<u32>) {
        if profile.steps() > STEPS_LOOKED_UP {
            return (None, None);
        }
        let hash = hash(group, profile);
        let Some(found) = self.by_hash.get(&hash).copied() else { return (Some(hash), None) };
        let class = &self.classes[found as usize];
        // Of two profiles with one hash the first keeps its place.
        (None, (class.group == group && class.profile == *profile).then_some(found))
    }

    /// Finds the class of machines of a group with a profile; makes it if there is none.
    fn class(&mut self, group: u16, profile: Profile) -> u32 {
        let (key, found) = self.look_up(group, &profile);
        if let Some(found) = found {
            return found;
        }
        let next_step = profile.second_step();
        let new = Class { group, machines: 0, members: MachineSet::default(), profile, key, released_at: 0 };
        let number = match self.unused.pop() {
            Some(number) => {
                self.classes[number as usize] = new;
                number
            }
            None => {
                self.classes.push(new);
                self.targets.push(Target::default());
                self.changed_at.push((0, 0));
                self.classes.len() as u32 - 1
            }
        };
        self.note_change(number, true);
        self.by_hash.extend(key.map(|key| (key, number)));
        self.next_steps.extend(next_step.map(|time| Reverse((time, number))));
        number
    }

    /// Changes the profile of all machines of a class. Returns the class of those with the new profile, if there is another.
    fn change_class(&mut self, class: u32, change: impl FnOnce(&mut Profile)) -> Option<u32> {
        let changed = &mut self.classes[class as usize];
        if let Some(key) = changed.key.take() {
            self.by_hash.remove(&key);
        }
        let last_step = changed.profile.second_step();
        change(&mut changed.profile);
        let next_step = changed.profile.second_step().filter(|next| Some(*next) != last_step);
        self.next_steps.extend(next_step.map(|time| Reverse((time, class))));
        let changed = &self.classes[class as usize];
        let (key, found) = self.look_up(changed.group, &changed.profile);
        self.by_hash.extend(key.map(|key| (key, class)));
        self.classes[class as usize].key = key;
        found
    }

    fn join(&mut self, class: u32, machine: u32) {
        self.class_of[machine as usize] = class;
        let joined = &mut self.classes[class as usize];
        joined.machines += 1;
        joined.members.insert(machine, self.machines);
        self.note_change(class, false);
        self.raise_release(class, self.released_at[machine as usize]);
    }

    /// Notes that a machine of a class was released at a number.
    fn raise_release(&mut self, class: u32, number: u64) {
        let of_class = &mut self.classes[class as usize].released_at;
        if number > *of_class {
            let last = std::mem::replace(of_class, number);
            self.by_release.remove(&(last, class));
            self.by_release.insert((number, class));
        }
    }

    fn leave(&mut self, class: u32, machine: u32) {
        self.note_change(class, false);
        let left = &mut self.classes[class as usize];
        left.machines -= 1;
        left.members.remove(machine);
        if left.machines > 0 {
            return;
        }
        left.members.clear();
        if let Some(key) = left.key.take() {
            self.by_hash.remove(&key);
        }
        if left.released_at > 0 {
            self.by_release.remove(&(left.released_at, class));
        }
        self.unused.push(class);
    }

    /// Changes the free amounts of machines by chunks of one size; `held`: machines, each once, and how many chunks on each.
    ///
    /// A class whose machines all change alike changes as one, so machines move only where a job parts them from others.
    fn change(&mut self, held: impl Iterator<Item = (u32, u32)> + Clone, new: impl Fn(&mut Profile, u32)) {
        self.changes += 1;
        for (machine, chunks) in held.clone() {
            let target = &mut self.targets[self.class_of[machine as usize] as usize];
            if target.change != self.changes {
                *target = Target { change: self.changes, machines: 0, chunks, is_even: true, to: None };
            }
            target.machines += 1;
            target.is_even &= target.chunks == chunks;
        }
        for (machine, chunks) in held {
            let old = self.class_of(machine);
            let target = self.targets[old as usize];
            let to = match target.to.filter(|to| to.0 == chunks) {
                Some((_, to)) => to,
                None => {
                    let class = &self.classes[old as usize];
                    let to = if target.is_even && target.machines == class.machines {
                        self.note_change(old, true);
                        self.change_class(old, |profile| new(profile, chunks)).unwrap_or(old)
                    } else {
                        let (group, mut profile) = (class.group, class.profile.clone());
                        new(&mut profile, chunks);
                        self.class(group, profile)
                    };
                    self.targets[old as usize].to = Some((chunks, to));
                    to
                }
            };
            if to != old {
                self.join(to, machine);
                self.leave(old, machine);
            }
        }
    }

    /// Takes chunks from `from` until `to`.
    pub(super) fn take(&mut self, from: u64, to: u64, chunk: &[u64], held: impl Iterator<Item = (u32, u32)> + Clone) {
        self.change(held, |profile, chunks| profile.take(from, to, chunk, chunks));
    }

    /// Gives chunks back from `from` until `to`.
    pub(super) fn give(&mut self, from: u64, to: u64, chunk: &[u64], held: impl Iterator<Item = (u32, u32)> + Clone) {
        self.change(held, |profile, chunks| profile.give(from, to, chunk, chunks));
    }

    /// Notes that capacity of a machine was released, with a number that never falls.
    pub(super) fn note_release(&mut self, machine: u32, number: u64) {
        self.released_at[machine as usize] = number;
        self.raise_release(self.class_of(machine), number);
    }

    /// Forgets what was before `now`, so that machines that differ in that alone are of one class.
    pub(super) fn forget(&mut self, now: u64) {
        while let Some(&Reverse((time, class))) = self.next_steps.peek().filter(|next| next.0.0 <= now) {
            self.next_steps.pop();
            let old = &self.classes[class as usize];
            if old.machines == 0 || old.profile.second_step() != Some(time) {
                continue;
            }
            let Some(to) = self.change_class(class, |profile| profile.forget(now)) else { continue };
            let mut next = self.classes[class as usize].members.next(0);
            while let Some(machine) = next {
                next = self.classes[class as usize].members.next(machine + 1);
                self.join(to, machine);
                self.leave(class, machine);
            }
        }
    }
}
