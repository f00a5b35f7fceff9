//! On which nodes Slurm puts the tasks of a job that named their number and the number of its nodes (`sbatch -n 10 -N 3`): as many on
//! each as are free there (`choose_nodes`, `_eval_nodes` and `dist_tasks_compute_c_b` of select/cons_tres).

use std::cmp::Reverse;
use std::ops::Range;

use super::super::placements::Placements;
use super::choice::{fits_better, processors_to_use};

/// A node on which at least one of the tasks fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) node: u32,
    /// How many processors, in steps, the job may have there.
    pub(super) processors: i64,
    /// Nodes of a lower weight are taken first.
    pub(super) weight: u64,
}

/// What a job asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct TasksOnNodes {
    pub(super) tasks: u32,
    /// The processors of each task, in steps, at least one.
    pub(super) of_task: i64,
    /// The steps of one processor.
    pub(super) one: i64,
    /// On how many nodes they are; not more than there are tasks.
    pub(super) nodes: usize,
    /// Whether the job has whole nodes.
    pub(super) whole: bool,
    /// Whether the nodes with the most free processors are taken first of those of equal weight.
    pub(super) least_loaded: bool,
}

/// Nodes side by side of equal weight, as places among the candidates.
struct Run {
    places: Range<usize>,
    processors: i64,
    weight: u64,
    is_taken: bool,
}

/// The nodes taken so far, as places among the candidates with the processors used there, and what the job still needs.
struct Taken {
    used: Vec<(usize, i64)>,
    processors: i64,
    nodes: usize,
}

impl TasksOnNodes {
    /// Returns how many tasks go on which nodes; `None` if Slurm finds no place. The candidates are in the order of their nodes.
    ///
    /// If the nodes that are taken first have too few processors, those with the fewest are left out, more and more of them, until the
    /// job fits or no more nodes are left than it needs. O(n) for n candidates if the job fits at once or never fits; else at most as
    /// often as a node has processors.
    pub(super) fn choose(self, mut candidates: Vec<Candidate>) -> Option<Placements> {
        if !self.may_fit(candidates.iter().map(|candidate| candidate.processors)) {
            return None;
        }
        if let Some(used) = self.try_on(&candidates) {
            return Some(self.distribute(&candidates, used));
        }
        let most = candidates.iter().map(|candidate| candidate.processors).max().unwrap_or(0);
        let once = candidates.len() <= self.nodes;
        for processors in 1..if once { 2 } else { most / self.one } {
            let mut surplus = candidates.len() - self.nodes;
            let before = candidates.len();
            candidates.retain(|candidate| {
                let stays = surplus == 0 || candidate.processors > processors * self.one;
                surplus -= usize::from(!stays);
                stays
            });
            if before == candidates.len() && processors > 1 {
                continue;
            }
            if let Some(used) = self.try_on(&candidates) {
                return Some(self.distribute(&candidates, used));
            }
            if candidates.len() <= self.nodes {
                break;
            }
        }
        None
    }

    /// Whether as many nodes as the job needs have enough processors, whatever the order in which they are taken.
    fn may_fit(self, processors: impl Iterator<Item = i64>) -> bool {
        let mut all: Vec<i64> = processors.collect();
        if all.len() < self.nodes {
            return false;
        }
        if self.nodes < all.len() {
            all.select_nth_unstable_by_key(self.nodes, |processors| Reverse(*processors));
        }
        all[..self.nodes].iter().sum::<i64>() >= self.of_task * i64::from(self.tasks)
    }

    /// The nodes that are taken, with the processors used on each, if they suffice (`_eval_nodes`, `_eval_nodes_lln`).
    fn try_on(self, candidates: &[Candidate]) -> Option<Vec<(usize, i64)>> {
        let mut taken = Taken { used: Vec::new(), processors: self.of_task * i64::from(self.tasks), nodes: self.nodes };
        if self.least_loaded {
            let mut order: Vec<usize> = (0..candidates.len()).collect();
            order.sort_by_key(|place| (candidates[*place].weight, Reverse(candidates[*place].processors)));
            order.into_iter().take(self.nodes).for_each(|place| self.take(&mut taken, candidates, place));
            return taken.suffices();
        }
        let mut runs = runs_of(candidates);
        while taken.nodes > 0
            && let Some(best) = self.best(&runs, &taken)
        {
            runs[best].is_taken = true;
            self.take_of_run(&mut taken, candidates, runs[best].places.clone());
        }
        taken.suffices()
    }

    /// The run that is taken next. One that does not suffice takes the place of any that has fewer processors.
    fn best(self, runs: &[Run], taken: &Taken) -> Option<usize> {
        let mut best: Option<(usize, bool)> = None;
        for (at, run) in runs.iter().enumerate().filter(|(_, run)| !run.is_taken) {
            let suffices = run.processors >= taken.processors && run.places.len() >= taken.nodes;
            let is_better = |(best, best_suffices): (usize, bool)| {
                let other = &runs[best];
                let fits_better = || fits_better((suffices, run.processors), (best_suffices, other.processors));
                run.weight < other.weight || (run.weight == other.weight && fits_better())
            };
            if best.is_none_or(is_better) {
                best = Some((at, suffices));
            }
        }
        best.map(|(at, _)| at)
    }

    fn take_of_run(self, taken: &mut Taken, candidates: &[Candidate], places: Range<usize>) {
        if taken.nodes == 1 {
            let sufficient = places.clone().filter(|place| candidates[*place].processors >= taken.processors);
            let tightest = sufficient.min_by_key(|place| candidates[*place].processors);
            if let Some(place) = tightest {
                self.take(taken, candidates, place);
            }
            return;
        }
        for place in places {
            if taken.nodes == 0 {
                break;
            }
            // A last node has to have all that is missing.
            if taken.nodes > 1 || candidates[place].processors >= taken.processors {
                self.take(taken, candidates, place);
            }
        }
    }

    /// Takes a node: with all that is missing but one processor for each other node, and what a task needs at least
    /// (`_cpus_to_use`). Slurm keeps that number for the tries that follow, but there are none: where a node is not used as a whole,
    /// each other node has what is left for it.
    fn take(self, taken: &mut Taken, candidates: &[Candidate], place: usize) {
        let others = self.one * (taken.nodes as i64 - 1);
        let free = candidates[place].processors;
        let used = if self.whole { free } else { processors_to_use(free, taken.processors - others, self.of_task) };
        taken.used.push((place, used));
        taken.processors -= used;
        taken.nodes -= 1;
    }

    /// A task on each node, and then one after the other on the nodes in turn that have processors left.
    fn distribute(self, candidates: &[Candidate], mut used: Vec<(usize, i64)>) -> Placements {
        used.sort_unstable();
        let capacity = |processors: i64| u32::try_from(processors / self.of_task).unwrap_or(u32::MAX).max(1);
        let mut on = vec![1; used.len()];
        let mut left = (self.tasks as usize).saturating_sub(on.len());
        while left > 0 {
            let before = left;
            for ((_, processors), tasks) in used.iter().zip(&mut on) {
                if left > 0 && *tasks < capacity(*processors) {
                    *tasks += 1;
                    left -= 1;
                }
            }
            if left == before {
                break;
            }
        }
        let mut held = Placements::default();
        used.iter().zip(on).for_each(|((place, _), tasks)| held.add(candidates[*place].node, tasks));
        held.merge();
        held
    }
}

impl Taken {
    fn suffices(self) -> Option<Vec<(usize, i64)>> {
        (self.nodes == 0 && self.processors <= 0).then_some(self.used)
    }
}

fn runs_of(candidates: &[Candidate]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (place, candidate) in candidates.iter().enumerate() {
        let continues =
            |run: &&mut Run| run.weight == candidate.weight && candidates[place - 1].node + 1 == candidate.node;
        match runs.last_mut().filter(continues) {
            Some(run) => {
                run.places.end = place + 1;
                run.processors += candidate.processors;
            }
            None => runs.push(Run {
                places: place..place + 1,
                processors: candidate.processors,
                weight: candidate.weight,
                is_taken: false,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes of a job with their tasks, given the free processors of nodes 0, 1, …
    fn chosen(tasks: u32, of_task: i64, nodes: usize, free: &[i64]) -> Vec<(u32, u32)> {
        let job = TasksOnNodes { tasks, of_task, one: 1, nodes, whole: false, least_loaded: false };
        let candidates = (0..).zip(free).filter(|(_, processors)| **processors > 0);
        let candidates = candidates.map(|(node, &processors)| Candidate { node, processors, weight: 1 });
        job.choose(candidates.collect()).map_or_else(Vec::new, |held| held.iter().collect())
    }

    /// What a real Slurm 22.05.8 did on nodes of 8 processors.
    #[test]
    fn as_many_as_are_free_but_one_for_each_other_node() {
        assert_eq!(chosen(12, 1, 3, &[8, 8, 8, 8]), [(0, 8), (1, 3), (2, 1)]);
        assert_eq!(chosen(10, 1, 3, &[8, 8, 8, 8]), [(0, 8), (1, 1), (2, 1)]);
        assert_eq!(chosen(10, 1, 3, &[0, 7, 7, 8, 8]), [(1, 7), (2, 2), (3, 1)]);
        assert_eq!(chosen(9, 2, 3, &[8, 8, 8]), [(0, 4), (1, 4), (2, 1)]);
        assert_eq!(chosen(9, 2, 3, &[0, 0, 6, 8, 8]), [(2, 3), (3, 4), (4, 2)]);
    }

    #[test]
    fn nodes_with_few_free_processors_are_left_out_where_the_job_would_not_fit() {
        assert_eq!(chosen(12, 1, 2, &[3, 8, 8]), [(1, 8), (2, 4)]);
        assert_eq!(chosen(16, 1, 2, &[8, 1, 2, 3, 8]), [(0, 8), (4, 8)]);
        // No two of the nodes have 17, and there are not four.
        assert_eq!(chosen(17, 1, 2, &[8, 8, 8]), []);
        assert_eq!(chosen(4, 1, 4, &[8, 8, 8]), []);
    }

    #[test]
    fn the_last_node_has_all_that_is_missing() {
        // Within the run that is taken first.
        assert_eq!(chosen(10, 1, 2, &[7, 0, 6, 3, 4]), [(2, 6), (4, 4)]);
        // Of the run with the fewest that suffice.
        assert_eq!(chosen(10, 1, 2, &[7, 0, 6, 0, 5, 3]), [(2, 5), (4, 5)]);
    }
}
