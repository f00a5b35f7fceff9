//! On which of the nodes that can take some of it Slurm puts a job (eval_nodes of select/cons_tres).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use smallvec::SmallVec;

use super::super::kind::Kind;
use super::super::placements::Placements;
use super::nodes::Nodes;
use super::tasks_on_nodes::{Candidate, TasksOnNodes};

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
    pub(super) weight: u64,
}

impl Stretch {
    /// One node.
    pub(super) fn of(node: u32, chunks: u32, processors: u64, weight: u64) -> Stretch {
        Stretch { first: node, end: node + 1, chunks, processors, weight }
    }

    fn len(&self) -> u32 {
        self.end - self.first
    }
}

/// Consecutive nodes of equal weight on which some of a job fits.
#[derive(Clone, Debug)]
struct Run {
    weight: u64,
    first: u32,
    end: u32,
    chunks: u64,
    processors: u64,
    is_taken: bool,
    /// Which of the stretches are its nodes.
    stretches: Range<u32>,
}

impl Run {
    /// Its nodes, of all.
    fn of<'s>(&self, stretches: &'s [Stretch]) -> &'s [Stretch] {
        &stretches[self.stretches.start as usize..self.stretches.end as usize]
    }
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
    /// Nodes of a lower weight come first. With `least_loaded` those with the most free processors come first of them. Else a job that needs one node of a number of
    /// nodes for each chunk is put as [`Choice::choose_by_nodes`] says. Another one is put on the node with the fewest free
    /// processors that holds it, and if none does on the nodes of runs in their order: of the sufficient runs the one with the
    /// fewest free processors, or if none suffices the one with the most.
    ///
    /// O(n) for n stretches and chunks if one run suffices, else O(n + k log n) for k runs taken.
    pub(super) fn choose(mut self, kind: &Kind, nodes: &Nodes<'_>) -> Option<Placements> {
        if self.runs.iter().map(|run| run.chunks).sum::<u64>() < u64::from(kind.copies) {
            return None;
        }
        if let Some(machines) = kind.machines_of_tasks {
            return self.choose_for_tasks(kind, machines, nodes);
        }
        let mut chosen = Chosen { held: Placements::default(), left: kind.copies };
        if nodes.least_loaded {
            self.stretches.sort_by_key(|stretch| (stretch.weight, Reverse(stretch.processors)));
            self.stretches.iter().for_each(|all| (all.first..all.end).for_each(|node| chosen.take(node, all.chunks)));
            return Some(chosen.held);
        }
        if self.runs.iter().any(|run| run.weight != self.runs[0].weight) {
            self.runs.sort_by_key(|run| run.weight);
        }
        match kind.is_by_nodes {
            true => {
                let (of_chunk, whole) = (kind.chunk[nodes.processors], nodes.is_whole(kind));
                self.choose_by_nodes(&mut chosen, (of_chunk, nodes.one_processor()), whole)
            }
            false => self.choose_by_chunks(&mut chosen, kind),
        }
        chosen.held.merge();
        Some(chosen.held)
    }

    /// Puts the tasks of a job on so many nodes.
    fn choose_for_tasks(self, kind: &Kind, machines: u32, nodes: &Nodes<'_>) -> Option<Placements> {
        let of_task = i64::try_from(kind.chunk[nodes.processors]).unwrap_or(i64::MAX).max(1);
        let processors = |chunks: u32| i64::from(chunks).saturating_mul(of_task);
        let of = |stretch: &Stretch| {
            let (processors, weight) = (processors(stretch.chunks), stretch.weight);
            (stretch.first..stretch.end).map(move |node| Candidate { node, processors, weight })
        };
        let tasks = TasksOnNodes {
            tasks: kind.copies,
            of_task,
            one: nodes.one_processor(),
            nodes: machines as usize,
            whole: nodes.is_whole(kind),
            least_loaded: nodes.least_loaded,
        };
        tasks.choose(self.stretches.iter().flat_map(of).collect())
    }

    fn choose_by_chunks(mut self, chosen: &mut Chosen, kind: &Kind) {
        for equals in self.runs.chunk_by_mut(|a, b| a.weight == b.weight) {
            if let Some(run) = smallest_sufficient(equals, chosen.left) {
                chosen.take_of_run(kind, equals[run].of(&self.stretches));
                break;
            }
            let mut largest = Largest::new(equals);
            while chosen.left > 0
                && let Some(at) = largest.pop(equals)
            {
                let suffices = largest.has_run_of(equals, chosen.left);
                let sufficient = if suffices { smallest_sufficient(equals, chosen.left) } else { None };
                equals[at].is_taken = true;
                chosen.take_of_run(kind, equals[sufficient.unwrap_or(at)].of(&self.stretches));
            }
            if chosen.left == 0 {
                break;
            }
        }
    }

    /// Puts a job on as many nodes as it has chunks (`_eval_nodes` of select/cons_tres).
    ///
    /// Runs are compared in their order. One that suffices, in nodes and processors, takes the place of one that does not, or
    /// that has more processors; but one that does not suffice also takes the place of any, sufficient or not, that has fewer
    /// processors. Nodes of a run are taken in their order, only a job's last node, if it comes from another run, is the one
    /// with the fewest processors that suffice. Slurm counts the free processors of a node as used but for one for each other
    /// node, so that fewer are left to find than the job needs.
    fn choose_by_nodes(mut self, chosen: &mut Chosen, (of_chunk, one): (u64, i64), whole: bool) {
        let mut processors = of_chunk as i64 * i64::from(chosen.left);
        for equals in self.runs.chunk_by_mut(|a, b| a.weight == b.weight) {
            let mut largest: Option<Largest> = None;
            while chosen.left > 0 {
                let holds_all = |run: &Run| !run.is_taken && run.chunks >= u64::from(chosen.left);
                let some_suffice = match &mut largest {
                    Some(largest) => largest.has_run_of(equals, chosen.left),
                    None => equals.iter().any(holds_all),
                };
                let best = match some_suffice {
                    true => best_by_nodes(equals, chosen.left, processors),
                    false => largest.get_or_insert_with(|| Largest::new(equals)).pop(equals),
                };
                let Some(best) = best else { break };
                equals[best].is_taken = true;
                let stretches = equals[best].of(&self.stretches);
                if chosen.left == 1 {
                    let sufficient = stretches.iter().filter(|stretch| stretch.processors as i64 >= processors);
                    let tightest = sufficient.min_by_key(|stretch| stretch.processors).or(stretches.first());
                    tightest.into_iter().for_each(|stretch| chosen.take(stretch.first, 1));
                    return;
                }
                for stretch in stretches {
                    for node in stretch.first..stretch.end {
                        if chosen.left == 0 {
                            return;
                        }
                        let (free, others) = (stretch.processors as i64, one * i64::from(chosen.left - 1));
                        processors -=
                            if whole { free } else { processors_to_use(free, processors - others, of_chunk as i64) };
                        chosen.take(node, 1);
                    }
                }
            }
        }
    }
}

/// Whether Slurm takes a run before another of equal weight, given whether each suffices and its processors: one that does not
/// suffice is taken before any that has fewer.
pub(super) fn fits_better((suffices, processors): (bool, i64), (other_suffices, of_other): (bool, i64)) -> bool {
    if suffices { !other_suffices || processors < of_other } else { processors > of_other }
}

/// How many of the free processors of a node Slurm counts as used (`_cpus_to_use`): at most those that are missing beside one for
/// each other node, and at least those that the job needs on a node, if they are free.
pub(super) fn processors_to_use(free: i64, missing: i64, least: i64) -> i64 {
    free.min(missing.max(least))
}

/// The run that Slurm takes next, of those that are not taken.
fn best_by_nodes(runs: &[Run], nodes: u32, processors: i64) -> Option<usize> {
    let mut best: Option<(usize, bool)> = None;
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| !run.is_taken) {
        let suffices = run.processors as i64 >= processors && run.chunks >= u64::from(nodes);
        let is_better = |(best, best_suffices): (usize, bool)| {
            fits_better((suffices, run.processors as i64), (best_suffices, runs[best].processors as i64))
        };
        if best.is_none_or(is_better) {
            best = Some((at, suffices));
        }
    }
    best.map(|(at, _)| at)
}

/// Runs by their size: heaps instead of an order of all, since few of the runs are taken.
struct Largest {
    /// By processors; of equal ones the first comes first.
    by_processors: BinaryHeap<(u64, Reverse<usize>)>,
    by_chunks: BinaryHeap<(u64, usize)>,
}

impl Largest {
    fn new(runs: &[Run]) -> Largest {
        let all = || runs.iter().enumerate();
        Largest {
            by_processors: all().map(|(at, run)| (run.processors, Reverse(at))).collect(),
            by_chunks: all().map(|(at, run)| (run.chunks, at)).collect(),
        }
    }

    /// The run with the most processors of those that are not taken.
    fn pop(&mut self, runs: &[Run]) -> Option<usize> {
        while let Some((_, Reverse(at))) = self.by_processors.pop() {
            if !runs[at].is_taken {
                return Some(at);
            }
        }
        None
    }

    /// Whether a run that is not taken has so many chunks.
    fn has_run_of(&mut self, runs: &[Run], chunks: u32) -> bool {
        while self.by_chunks.peek().is_some_and(|(_, at)| runs[*at].is_taken) {
            self.by_chunks.pop();
        }
        self.by_chunks.peek().is_some_and(|(most, _)| *most >= u64::from(chunks))
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
                // Slurm looks for one node, and then for more processors.
                let is_last = self.left == kind.copies;
                let rest = || stretches[at..].iter().filter(|other| other.chunks >= self.left);
                let tightest = if is_last { rest().min_by_key(|other| other.processors) } else { None };
                let (node, chunks) = tightest.map_or((node, stretch.chunks), |t| (t.first.max(node), t.chunks));
                self.take(node, chunks);
            }
        }
    }
}
