//! The classes of a group of machines that have machines, side by side in memory.

/// Not among the occupied classes.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What a search for a machine reads of each class, in arrays of its own: a search goes through all classes of a group,
/// of which real sites have thousands once memory is a resource.
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
}

impl OccupiedClasses {
    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    /// Adds a class without machines. Returns its place.
    pub(crate) fn push(&mut self, class: u32, score: u64, free: &[u64], shape: &[u64]) -> u32 {
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
        self.classes.swap_remove(at);
        self.machines.swap_remove(at);
        self.scores.swap_remove(at);
        for amounts in [&mut self.free, &mut self.shapes].into_iter().filter(|amounts| !amounts.is_empty()) {
            amounts.copy_within(last * width.., at * width);
            amounts.truncate(last * width);
        }
        self.classes.get(at).copied()
    }
}
