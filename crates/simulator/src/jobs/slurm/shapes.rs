//! Jobs that differ in nothing that decides whether they can start now.

use std::collections::HashMap;

use super::super::pending_jobs::NO_ROW;

/// The numbers of shapes: jobs of one kind, one time limit, one reservation and one QOS have the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    /// By row.
    of: Vec<u32>,
    /// By shape: a row of it.
    examples: Vec<u32>,
    /// By shape: zeros, for counts.
    counts: Vec<u32>,
}

impl Shapes {
    /// The shapes of rows, each given with its kind, its limit and the numbers of its reservation and of its QOS.
    pub(super) fn new(rows: impl Iterator<Item = (u32, u64, Option<u32>, Option<u16>)>) -> Shapes {
        let mut shapes = Shapes::default();
        let mut numbers: HashMap<(u32, u64, Option<u32>, Option<u16>), u32> = HashMap::new();
        for (row, key) in rows.enumerate() {
            let shape = *numbers.entry(key).or_insert_with(|| {
                shapes.examples.push(row as u32);
                shapes.examples.len() as u32 - 1
            });
            shapes.of.push(shape);
        }
        shapes.counts = vec![0; shapes.examples.len()];
        shapes
    }

    pub(super) fn of(&self, row: u32) -> u32 {
        self.of[row as usize]
    }

    /// A row of a shape.
    pub(super) fn example(&self, shape: u32) -> u32 {
        self.examples[shape as usize]
    }

    /// Returns how many of the rows are of each shape, and the shapes that are among them. The counts are to be
    /// [given back](Shapes::give_back).
    pub(super) fn count(&mut self, rows: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>) {
        let mut counts = std::mem::take(&mut self.counts);
        let mut found = Vec::new();
        for row in rows.filter(|row| *row != NO_ROW) {
            let shape = self.of(row);
            counts[shape as usize] += 1;
            if counts[shape as usize] == 1 {
                found.push(shape);
            }
        }
        (counts, found)
    }

    pub(super) fn give_back(&mut self, mut counts: Vec<u32>) {
        counts.fill(0);
        self.counts = counts;
    }
}
