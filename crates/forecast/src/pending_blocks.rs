//! The waiting jobs of a replay in blocks, so that a pass over a long queue skips jobs that cannot start.

use crate::replay::Waiting;
use crate::size::Size;

/// How many jobs a block has: one bit each.
const BLOCK: usize = 64;

/// Jobs of a queue that wait, in the order of their indexes. Each block of 64 knows a size that is in no resource larger than any of its
/// jobs', and its shortest limit: where these do not fit, no job of the block does.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingBlocks {
    /// A bit for each index of the queue whose job waits.
    waits: Vec<u64>,
    /// Of each resource no more than any job of a block needs that waits; the smallest need of the first resource.
    smallest: Vec<Size>,
    /// The shortest limit among them; the largest number if none does.
    shortest: Vec<i64>,
    /// No job waits in the blocks before this one.
    first: usize,
}

impl PendingBlocks {
    pub(crate) fn clear(&mut self) {
        self.waits.clear();
        self.smallest.clear();
        self.shortest.clear();
        self.first = 0;
    }

    /// Adds a job by its index, which is larger than those before.
    pub(crate) fn push(&mut self, index: usize, job: &Waiting) {
        let block = index / BLOCK;
        if block >= self.waits.len() {
            self.waits.resize(block + 1, 0);
            self.smallest.resize(block + 1, Size::MAX);
            self.shortest.resize(block + 1, i64::MAX);
        }
        self.waits[block] |= 1 << (index % BLOCK);
        // The last block may have been left empty.
        self.first = self.first.min(block);
        self.smallest[block] = self.smallest[block].smaller(job.size);
        self.shortest[block] = self.shortest[block].min(job.limit);
    }

    /// Removes a job. O(block).
    pub(crate) fn remove(&mut self, index: usize, queue: &[Waiting]) {
        let block = index / BLOCK;
        self.waits[block] &= !(1 << (index % BLOCK));
        let removed = &queue[index];
        let is_empty = self.waits[block] == 0;
        if is_empty || removed.size.may_raise(self.smallest[block]) || removed.limit == self.shortest[block] {
            let left = || bits(self.waits[block]).map(|bit| &queue[block * BLOCK + bit]);
            self.smallest[block] = left().fold(Size::MAX, |smallest, job| smallest.smaller(job.size));
            self.shortest[block] = left().map(|job| job.limit).min().unwrap_or(i64::MAX);
        }
        while self.waits.get(self.first) == Some(&0) {
            self.first += 1;
        }
    }

    /// Returns the index of the first job.
    pub(crate) fn head(&self) -> Option<usize> {
        let ahead = self.waits.iter().enumerate().skip(self.first);
        ahead
            .filter(|(_, waits)| **waits != 0)
            .map(|(block, waits)| block * BLOCK + waits.trailing_zeros() as usize)
            .next()
    }

    /// Returns the first job from an index on that may satisfy `fits`, which is given a size and a limit and holds for
    /// smaller ones if it holds for larger ones.
    pub(crate) fn next_that(&self, from: usize, queue: &[Waiting], fits: impl Fn(Size, i64) -> bool) -> Option<usize> {
        let start = from / BLOCK;
        for block in start..self.waits.len() {
            if self.waits[block] == 0 || !fits(self.smallest[block], self.shortest[block]) {
                continue;
            }
            let seen = if block == start { (1 << (from % BLOCK)) - 1 } else { 0 };
            for bit in bits(self.waits[block] & !seen) {
                let index = block * BLOCK + bit;
                if fits(queue[index].size, queue[index].limit) {
                    return Some(index);
                }
            }
        }
        None
    }
}

/// Returns the places of the bits that are set, lowest first.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}
