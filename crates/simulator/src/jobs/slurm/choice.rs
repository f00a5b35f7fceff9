//! On which of the nodes that can take some of it Slurm puts a job (eval_nodes of select/cons_tres).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::kind::Kind;
use super::super::machine_state::Placements;

/// A node on which some of a job may fit.
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
    first: u32,
    end: u32,
    chunks: u64,
    processors: u64,
    is_taken: bool,
}

/// Returns on which of the nodes, given in ascending order, a job is put; `None` if they do not suffice.
///
/// Nodes are taken from runs of consecutive candidates: of the sufficient runs the one with the fewest free
/// processors, or if none suffices the one with the most. In a run nodes are taken in their order, but the only or
/// last one is the node with the fewest free processors. `least_loaded`: nodes with the most free processors first.
///
/// O(n) for n nodes if one run suffices, else O(n + k log n) for k runs taken.
pub(super) fn choose(
    kind: &Kind,
    nodes: impl Iterator<Item = u32>,
    candidate: impl Fn(u32) -> Candidate,
    least_loaded: bool,
) -> Option<Placements> {
    let mut chosen = Chosen { held: Placements::default(), left: kind.copies };
    if least_loaded {
        let mut candidates: Vec<Candidate> = nodes.map(candidate).filter(|c| c.chunks > 0).collect();
        candidates.sort_by_key(|c| Reverse(c.processors));
        candidates.iter().for_each(|c| chosen.take(c));
        return (chosen.left == 0).then_some(chosen.held);
    }
    let mut runs = runs(nodes, &candidate);
    if runs.iter().map(|run| run.chunks).sum::<u64>() < u64::from(kind.copies) {
        return None;
    }
    if runs.iter().any(|run| run.weight != runs[0].weight) {
        runs.sort_by_key(|run| run.weight);
    }
    for equals in runs.chunk_by_mut(|a, b| a.weight == b.weight) {
        if let Some(run) = smallest_sufficient(equals, chosen.left) {
            chosen.take_of_run(kind, run, &candidate);
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
            chosen.take_of_run(kind, sufficient.unwrap_or(equals[at]), &candidate);
        }
        if chosen.left == 0 {
            break;
        }
    }
    chosen.held.merge();
    Some(chosen.held)
}

/// Of the runs that are not taken and have so many chunks the one with the fewest processors; of equal ones the first.
fn smallest_sufficient(runs: &[Run], chunks: u32) -> Option<Run> {
    let sufficient = runs.iter().filter(|run| !run.is_taken && run.chunks >= u64::from(chunks));
    sufficient.min_by_key(|run| (run.processors, run.first)).copied()
}

fn runs(nodes: impl Iterator<Item = u32>, candidate: impl Fn(u32) -> Candidate) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for Candidate { node, chunks, processors, weight } in nodes.map(candidate).filter(|c| c.chunks > 0) {
        match runs.last_mut() {
            Some(run) if run.end == node && run.weight == weight => {
                run.end = node + 1;
                run.chunks += u64::from(chunks);
                run.processors += processors;
            }
            _ => runs.push(Run {
                weight,
                first: node,
                end: node + 1,
                chunks: chunks.into(),
                processors,
                is_taken: false,
            }),
        }
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

    fn take_of_run(&mut self, kind: &Kind, run: Run, candidate: impl Fn(u32) -> Candidate) {
        for node in run.first..run.end {
            if self.left == 0 {
                return;
            }
            // Without a number of nodes Slurm looks for one node, and then for more processors.
            let is_last = if kind.is_by_nodes { self.left == 1 } else { self.left == kind.copies };
            let rest = || (node..run.end).map(&candidate).filter(|c| c.chunks >= self.left);
            let tightest = if is_last { rest().min_by_key(|c| c.processors) } else { None };
            self.take(&tightest.unwrap_or_else(|| candidate(node)));
        }
    }
}
