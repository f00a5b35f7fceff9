//! On which of the nodes that can take some of it Slurm puts a job (eval_nodes of select/cons_tres).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use smallvec::SmallVec;

use super::super::kind::Kind;
use super::super::placements::Placements;

/// Consecutive nodes on each of which equally much of a job may fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) first: u32,
    pub(super) end: u32,
    /// How many chunks fit on each.
    pub(super) chunks: u32,
    /// The free processors of each.
    pub(super) processors: u64,
    /// Nodes of a lower weight are taken first.
    pub(super) weight: u8,
}

impl Stretch {
    /// One node.
    pub(super) fn of(node: u32, chunks: u32, processors: u64, weight: u8) -> Stretch {
        Stretch { first: node, end: node + 1, chunks, processors, weight }
    }

    fn len(&self) -> u32 {
        self.end - self.first
    }
}

/// Consecutive nodes of equal weight on which some of a job fits.
#[derive(Clone, Debug)]
struct Run {
    weight: u8,
    first: u32,
    end: u32,
    chunks: u64,
    processors: u64,
    is_taken: bool,
    /// Which of the stretches are its nodes.
    stretches: Range<u32>,
}

/// The nodes on which a job may be put.
#[derive(Debug, Default)]
pub(super) struct Choice {
    stretches: SmallVec<[Stretch; 16]>,
    runs: SmallVec<[Run; 8]>,
}

impl Choice {
    /// Adds nodes behind those that it has.
    #[inline]
    pub(super) fn add(&mut self, stretch: Stretch) {
        if stretch.chunks == 0 {
            return;
        }
        let at = self.stretches.len() as u32;
        let chunks = u64::from(stretch.chunks) * u64::from(stretch.len());
        let processors = stretch.processors * u64::from(stretch.len());
        match self.runs.last_mut() {
            Some(run) if run.end == stretch.first && run.weight == stretch.weight => {
                run.end = stretch.end;
                run.chunks += chunks;
                run.processors += processors;
                run.stretches.end = at + 1;
            }
            _ => self.runs.push(Run {
                weight: stretch.weight,
                first: stretch.first,
                end: stretch.end,
                chunks,
                processors,
                is_taken: false,
                stretches: at..at + 1,
            }),
        }
        self.stretches.push(stretch);
    }

    /// Returns on which of the nodes a job is put; `None` if they do not suffice.
    ///
    /// Nodes are taken from runs of consecutive ones: of the sufficient runs the one with the fewest free processors, or
    /// if none suffices the one with the most. In a run nodes are taken in their order, but the only or last one is the
    /// node with the fewest free processors. `least_loaded`: nodes with the most free processors first.
    ///
    /// O(n) for n stretches and chunks if one run suffices, else O(n + k log n) for k runs taken.
    pub(super) fn choose(mut self, kind: &Kind, least_loaded: bool) -> Option<Placements> {
        let mut chosen = Chosen { held: Placements::default(), left: kind.copies };
        if self.runs.iter().map(|run| run.chunks).sum::<u64>() < u64::from(kind.copies) {
            return None;
        }
        if least_loaded {
            self.stretches.sort_by_key(|stretch| Reverse(stretch.processors));
            self.stretches.iter().for_each(|all| (all.first..all.end).for_each(|node| chosen.take(node, all.chunks)));
            return Some(chosen.held);
        }
        let Choice { stretches, mut runs } = self;
        if runs.iter().any(|run| run.weight != runs[0].weight) {
            runs.sort_by_key(|run| run.weight);
        }
        let of = |run: &Run| &stretches[run.stretches.start as usize..run.stretches.end as usize];
        for equals in runs.chunk_by_mut(|a, b| a.weight == b.weight) {
            if let Some(run) = smallest_sufficient(equals, chosen.left) {
                chosen.take_of_run(kind, of(&equals[run]));
                break;
            }
            // Heaps instead of an order of all, since few of the runs are taken.
            let by_size = |(at, run): (usize, &Run)| (run.processors, Reverse(run.first), at);
            let mut largest: BinaryHeap<_> = equals.iter().enumerate().map(by_size).collect();
            let mut most_chunks: BinaryHeap<_> = equals.iter().enumerate().map(|(at, run)| (run.chunks, at)).collect();
            while chosen.left > 0
                && let Some((.., at)) = largest.pop()
            {
                while most_chunks.peek().is_some_and(|(_, at)| equals[*at].is_taken) {
                    most_chunks.pop();
                }
                let suffices = most_chunks.peek().is_some_and(|(chunks, _)| *chunks >= u64::from(chosen.left));
                let sufficient = if suffices { smallest_sufficient(equals, chosen.left) } else { None };
                equals[at].is_taken = true;
                chosen.take_of_run(kind, of(&equals[sufficient.unwrap_or(at)]));
            }
            if chosen.left == 0 {
                break;
            }
        }
        chosen.held.merge();
        Some(chosen.held)
    }
}

/// Of the runs that are not taken and have so many chunks the one with the fewest processors; of equal ones the first.
fn smallest_sufficient(runs: &[Run], chunks: u32) -> Option<usize> {
    let all = runs.iter().enumerate();
    let sufficient = all.filter(|(_, run)| !run.is_taken && run.chunks >= u64::from(chunks));
    sufficient.min_by_key(|(_, run)| (run.processors, run.first)).map(|(at, _)| at)
}

/// The nodes chosen so far.
struct Chosen {
    held: Placements,
    /// How many chunks have none.
    left: u32,
}

impl Chosen {
    fn take(&mut self, node: u32, chunks: u32) {
        let chunks = chunks.min(self.left);
        if chunks > 0 {
            self.held.add(node, chunks);
            self.left -= chunks;
        }
    }

    /// Takes nodes of a run, given by its stretches.
    fn take_of_run(&mut self, kind: &Kind, stretches: &[Stretch]) {
        for (at, stretch) in stretches.iter().enumerate() {
            for node in stretch.first..stretch.end {
                if self.left == 0 {
                    return;
                }
                // Without a number of nodes Slurm looks for one node, and then for more processors.
                let is_last = if kind.is_by_nodes { self.left == 1 } else { self.left == kind.copies };
                let rest = || stretches[at..].iter().filter(|other| other.chunks >= self.left);
                let tightest = if is_last { rest().min_by_key(|other| other.processors) } else { None };
                let (node, chunks) = tightest.map_or((node, stretch.chunks), |t| (t.first.max(node), t.chunks));
                self.take(node, chunks);
            }
        }
    }
}
