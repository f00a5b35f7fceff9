//! On which of the nodes that can take some of it Slurm puts a job (eval_nodes of select/cons_tres).

use std::cmp::Reverse;

use super::super::kind::Kind;
use super::super::machine_state::Placements;

/// A node on which some of a job fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) node: u32,
    /// How many chunks fit.
    pub(super) chunks: u32,
    /// Its free processors.
    pub(super) processors: u64,
    /// Nodes of a lower weight are taken first.
    pub(super) weight: u8,
}

/// Consecutive candidates of equal weight.
#[derive(Clone, Copy, Debug)]
struct Run {
    weight: u8,
    from: usize,
    to: usize,
    chunks: u64,
    processors: u64,
}

/// Returns on which candidates, given in the order of nodes, a job is put; `None` if they do not suffice.
///
/// Nodes are taken from runs of consecutive candidates: of the sufficient runs the one with the fewest free
/// processors, or if none suffices the one with the most. In a run nodes are taken in their order, but the only or
/// last one is the node with the fewest free processors. `least_loaded`: nodes with the most free processors first.
///
/// O(n log n) for n candidates.
pub(super) fn choose(kind: &Kind, mut candidates: Vec<Candidate>, least_loaded: bool) -> Option<Placements> {
    let all: u64 = candidates.iter().map(|c| u64::from(c.chunks)).sum();
    if all < u64::from(kind.copies) {
        return None;
    }
    let mut chosen = Chosen { held: Placements::default(), left: kind.copies };
    if least_loaded {
        candidates.sort_by_key(|c| Reverse(c.processors));
        chosen.take_all(&candidates);
        return Some(chosen.held);
    }
    let mut runs = runs(&candidates);
    // Ties go to the run of the smallest numbers: the sort is stable.
    runs.sort_by_key(|run| (run.weight, Reverse(run.processors)));
    for equals in runs.chunk_by(|a, b| a.weight == b.weight) {
        // By place: the most chunks of any run from it on.
        let mut largest: Vec<u64> = equals.iter().map(|run| run.chunks).collect();
        for at in (1..largest.len()).rev() {
            largest[at - 1] = largest[at - 1].max(largest[at]);
        }
        for (at, largest_run) in equals.iter().enumerate() {
            let left = u64::from(chosen.left);
            if left == 0 {
                break;
            }
            if largest[at] >= left {
                let sufficient = equals[at..].iter().filter(|run| run.chunks >= left);
                let run = sufficient.min_by_key(|run| (run.processors, run.from))?;
                chosen.take_of_run(kind, &candidates[run.from..run.to]);
            } else {
                chosen.take_of_run(kind, &candidates[largest_run.from..largest_run.to]);
            }
        }
    }
    chosen.held.merge();
    Some(chosen.held)
}

fn runs(candidates: &[Candidate]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut from = 0;
    for run in candidates.chunk_by(|a, b| a.node + 1 == b.node && a.weight == b.weight) {
        runs.push(Run {
            weight: run[0].weight,
            from,
            to: from + run.len(),
            chunks: run.iter().map(|c| u64::from(c.chunks)).sum(),
            processors: run.iter().map(|c| c.processors).sum(),
        });
        from += run.len();
    }
    runs
}

/// The nodes chosen so far.
struct Chosen {
    held: Placements,
    /// How many chunks have none.
    left: u32,
}

impl Chosen {
    fn take(&mut self, candidate: &Candidate) {
        let chunks = candidate.chunks.min(self.left);
        if chunks > 0 {
            self.held.add(candidate.node, chunks);
            self.left -= chunks;
        }
    }

    fn take_all(&mut self, candidates: &[Candidate]) {
        candidates.iter().for_each(|c| self.take(c));
    }

    fn take_of_run(&mut self, kind: &Kind, run: &[Candidate]) {
        for (at, node) in run.iter().enumerate() {
            if self.left == 0 {
                return;
            }
            // Without a number of nodes Slurm looks for one node, and then for more processors.
            let is_last = if kind.is_by_nodes { self.left == 1 } else { self.left == kind.copies };
            let tightest = || run[at..].iter().filter(|c| c.chunks >= self.left).min_by_key(|c| c.processors);
            let tightest = if is_last { tightest() } else { None };
            self.take(tightest.unwrap_or(node));
        }
    }
}
