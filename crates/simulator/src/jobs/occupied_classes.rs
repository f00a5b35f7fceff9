//! Some of the classes of a group that have machines, side by side in memory.

use super::kind::fits;

/// What a search for a machine reads of each class, in arrays of its own: a search goes through all classes of a bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct OccupiedClasses {
    pub(crate) classes: Vec<u32>,
    /// How many machines each has.
    pub(crate) machines: Vec<u32>,
    /// Scores where the placement rule's score does not depend on the chunk.
    pub(crate) scores: Vec<u64>,
    /// Free amounts, class by class.
    pub(crate) free: Vec<u64>,
    /// Shapes of the free amounts, class by class, if the rule compares shapes.
    pub(crate) shapes: Vec<u64>,
    /// By resource: the most that is free in any class; empty if that is not kept.
    most: Vec<u64>,
}

impl OccupiedClasses {
    /// `keeps_most`: for so many resources the most that is free is kept. Then to remove a class that has it takes a step
    /// for each class.
    pub(crate) fn new(keeps_most: usize) -> OccupiedClasses {
        OccupiedClasses { most: vec![0; keeps_most], ..OccupiedClasses::default() }
    }

    /// Whether a chunk fits in the most that is free of each resource, else it fits in no class.
    pub(crate) fn may_hold(&self, chunk: &[u64]) -> bool {
        fits(chunk, &self.most)
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    /// Adds a class without machines. Returns its place.
    pub(crate) fn push(&mut self, class: u32, score: u64, free: &[u64], shape: &[u64]) -> u32 {
        self.most.iter_mut().zip(free).for_each(|(most, free)| *most = (*most).max(*free));
        self.classes.push(class);
        self.machines.push(0);
        self.scores.push(score);
        self.free.extend_from_slice(free);
        self.shapes.extend_from_slice(shape);
        self.classes.len() as u32 - 1
    }

    /// Removes the class at a place. Returns the class that is now there, if any.
    pub(crate) fn swap_remove(&mut self, place: u32, width: usize) -> Option<u32> {
        let (at, last) = (place as usize, self.len() - 1);
        let mut removed = self.most.iter().zip(&self.free[at * width..]);
        let had_most = removed.any(|(most, free)| *most > 0 && most == free);
        self.classes.swap_remove(at);
        self.machines.swap_remove(at);
        self.scores.swap_remove(at);
        for amounts in [&mut self.free, &mut self.shapes].into_iter().filter(|amounts| !amounts.is_empty()) {
            amounts.copy_within(last * width.., at * width);
            amounts.truncate(last * width);
        }
        if had_most {
            self.most.fill(0);
            for free in self.free.chunks_exact(width) {
                self.most.iter_mut().zip(free).for_each(|(most, free)| *most = (*most).max(*free));
            }
        }
        self.classes.get(at).copied()
    }
}
