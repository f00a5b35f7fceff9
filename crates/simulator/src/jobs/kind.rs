//! Kinds of jobs: what a scheduler knows of a job beside its user and its time.

use super::layout::LayoutRule;
use super::prepared_jobs::Rejection;

/// Properties shared by all jobs of one demand, number of nodes and licences in one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Amounts held by each chunk, in steps.
    pub(crate) chunk: Vec<u64>,
    /// How many chunks there are, with a smaller last one.
    pub(crate) copies: u32,
    /// Amounts held by the last chunk, if it is smaller than the others.
    ///
    /// With one smaller chunk no placement rule can fail where another would not, nor where less is free: if the last
    /// chunk fits on no machine, every machine is as full of the others as it can be, and more than they fit nowhere.
    /// (With each chunk on a machine of its own: every machine on which one fits has one.) With several, what fits would
    /// depend on the rule.
    pub(crate) last: Option<Vec<u64>>,
    /// Further sizes of chunks, largest first, and how many chunks are of each; there is no smaller last chunk then.
    pub(crate) sizes: Vec<(u32, Vec<u64>)>,
    /// The least amount of each resource in any chunk, where there are further sizes.
    pub(crate) least: Vec<u64>,
    /// The groups with machines on which a chunk fits.
    pub(crate) groups: Vec<u16>,
    /// The slowest of those, as an index of a group.
    pub(crate) slowest: u16,
    /// The index of its queue, if the site knows it; of several the first.
    pub(crate) queue: Option<u16>,
    /// The further queues on whose machines its jobs may run, in the order in which Slurm would try them.
    pub(crate) other_queues: Vec<u16>,
    /// Its place among the queues' priorities, 0 the highest.
    pub(crate) class: u8,
    /// How many it needs of each licence of the site; empty if it needs none.
    pub(crate) licences: Vec<u64>,
    pub(crate) rejection: Option<Rejection>,
    /// The rule that laid it out.
    pub(crate) rule: LayoutRule,
    /// Why it does not lie on machines as its source says.
    pub(crate) misfit: Option<Misfit>,
    /// Whether what its jobs require of machines is left out, as no machines on which they fit have it.
    pub(crate) drops_requirements: bool,
    /// Whether its chunks are nodes that the source states, or whole machines, and there are so many: each chunk is on a
    /// machine of its own.
    pub(crate) is_by_nodes: bool,
    /// On how many machines its chunks are, at least one on each, if its source states that of tasks of which a machine has as many
    /// as are free there.
    pub(crate) machines_of_tasks: Option<u32>,
}

/// Equal chunks: what each holds, and how many of them may be on one machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EqualChunks<'a> {
    pub(crate) holds: &'a [u64],
    pub(crate) most_on_one: u32,
}

impl EqualChunks<'_> {
    /// Returns how many may be on a machine with so much free, beside no others of the job.
    #[inline]
    pub(crate) fn on(self, free: &[u64]) -> u128 {
        match self.most_on_one {
            1 => u128::from(fits(self.holds, free)),
            most => copies(self.holds, free).min(u128::from(most)),
        }
    }
}

/// Why jobs do not lie on machines as their source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// No machine that they may use has so much as they need on one node.
    Node,
    /// Some machine has, but there are too few.
    Together,
}

impl Kind {
    /// How many chunks are of one size.
    #[inline]
    pub(crate) fn full_chunks(&self) -> u32 {
        let others: u32 = self.sizes.iter().map(|(chunks, _)| chunks).sum();
        self.copies - u32::from(self.last.is_some()) - others
    }

    /// Whether no machine may have two of its chunks.
    #[inline]
    pub(crate) fn is_spread(&self) -> bool {
        self.is_by_nodes && self.copies > 1
    }

    /// Whether its jobs have their machines for themselves, though those of other kinds may share one.
    #[inline]
    pub(crate) fn is_exclusive(&self) -> bool {
        self.rule == LayoutRule::Exclusive
    }

    /// Its equal chunks.
    #[inline]
    pub(crate) fn equal_chunks(&self) -> EqualChunks<'_> {
        EqualChunks { holds: &self.chunk, most_on_one: if self.is_spread() { 1 } else { u32::MAX } }
    }

    /// How many of its equal chunks may be on a machine with so much free.
    #[inline]
    pub(crate) fn chunks_on(&self, free: &[u64]) -> u128 {
        self.equal_chunks().on(free)
    }

    /// Whether its chunks are of several sizes that the source states.
    #[inline]
    pub(crate) fn is_uneven(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// The sizes of its chunks by number, without a smaller last one: how many chunks, and what each holds.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u16, u32, &[u64])> {
        let others = self.sizes.iter().map(|(chunks, chunk)| (*chunks, chunk.as_slice()));
        let all = std::iter::once((self.full_chunks(), self.chunk.as_slice())).chain(others);
        all.zip(0..).map(|((chunks, chunk), size)| (size, chunks, chunk))
    }

    /// What a chunk of a size holds; a smaller last chunk has size 1.
    pub(crate) fn of_size(&self, size: u16) -> &[u64] {
        match (usize::from(size).checked_sub(1), &self.last) {
            (None, _) => &self.chunk,
            (Some(_), Some(last)) => last,
            (Some(at), None) => self.sizes.get(at).map_or(&self.chunk, |(_, chunk)| chunk),
        }
    }

    /// The amount of a resource in all chunks.
    #[inline]
    pub(crate) fn total(&self, resource: usize) -> u64 {
        let full = self.chunk[resource].saturating_mul(u64::from(self.full_chunks()));
        let others = self.sizes.iter().map(|(chunks, chunk)| chunk[resource].saturating_mul(u64::from(*chunks)));
        let last = self.last.as_ref().map_or(0, |last| last[resource]);
        others.fold(full.saturating_add(last), u64::saturating_add)
    }

    /// Amounts held by the smallest chunk; of several sizes the least of each.
    pub(crate) fn smallest_chunk(&self) -> &[u64] {
        if self.is_uneven() {
            return &self.least;
        }
        self.last.as_deref().unwrap_or(&self.chunk)
    }

    /// Writes to `left` what `chunks` equal chunks, which fit, leave of what is free. Returns whether a smaller last chunk may
    /// be there too.
    pub(crate) fn last_fits_beside(&self, free: &[u64], chunks: u32, left: &mut [u64]) -> bool {
        let amounts = free.iter().zip(&self.chunk);
        left.iter_mut().zip(amounts).for_each(|(left, (free, chunk))| *left = free - chunk * u64::from(chunks));
        let may = chunks == 0 || !self.is_spread();
        may && self.last.as_ref().is_some_and(|last| fits(last, left))
    }

    /// Whether there is a smaller last chunk and it may be beside `chunks` of the others.
    #[inline]
    pub(crate) fn last_fits_beside_chunks(&self, free: &[u64], chunks: u128) -> bool {
        let Some(last) = self.last.as_ref().filter(|_| chunks == 0 || !self.is_spread()) else { return false };
        let mut amounts = last.iter().zip(free.iter().zip(&self.chunk));
        amounts.all(|(last, (free, chunk))| u128::from(*chunk) * chunks + u128::from(*last) <= u128::from(*free))
    }
}

/// Returns whether a chunk fits in the free amounts.
#[inline]
pub(crate) fn fits(chunk: &[u64], free: &[u64]) -> bool {
    chunk.iter().zip(free).all(|(c, f)| c <= f)
}

/// Returns how many chunks fit in the free amounts; `u32::MAX` for an empty chunk.
#[inline]
pub(crate) fn copies(chunk: &[u64], free: &[u64]) -> u128 {
    let mut least = None;
    for (c, f) in chunk.iter().zip(free).filter(|(c, _)| **c > 0) {
        // Very often none or one fits, which needs no division.
        let each = match f.checked_sub(*c) {
            None => return 0,
            Some(rest) if rest < *c => 1,
            Some(_) => f / c,
        };
        least = Some(least.map_or(each, |l: u64| l.min(each)));
    }
    least.map_or(u128::from(u32::MAX), u128::from)
}
