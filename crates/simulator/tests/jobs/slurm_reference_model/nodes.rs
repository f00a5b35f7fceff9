//! Where jobs are put.

use super::{Runs, SlurmReferenceModel};

impl SlurmReferenceModel<'_> {
    pub(super) fn chunk(&self, job: usize) -> ([u64; 2], usize) {
        let j = &self.world.jobs[job];
        match j.nodes.or(j.tasks) {
            Some(n) => ([j.amounts[0] / n, j.amounts[1] / n], n as usize),
            None => (j.amounts, 1),
        }
    }

    pub(super) fn fits_empty(&self, job: usize, node: usize) -> bool {
        let chunk = self.chunk(job).0;
        chunk[0] <= self.has[node][0] && chunk[1] <= self.has[node][1]
    }

    /// Whether there are as many nodes as the job has chunks.
    fn has_nodes(&self, job: usize) -> bool {
        self.nodes_of(job).into_iter().filter(|&n| self.fits_empty(job, n)).count() >= self.chunk(job).1
    }

    /// Whether the job's chunks are on nodes of their own, because there are so many.
    pub(super) fn is_apart(&self, job: usize) -> bool {
        let j = &self.world.jobs[job];
        (j.nodes.is_some() || j.is_exclusive) && self.has_nodes(job)
    }

    /// Whether the job has whole nodes.
    pub(super) fn is_whole(&self, job: usize) -> bool {
        self.world.options.whole_nodes || (self.world.jobs[job].is_exclusive && self.has_nodes(job))
    }

    /// Whether a node has a job beside which there is no place for this one.
    pub(super) fn is_closed_to(&self, job: usize, node: usize) -> bool {
        self.running.iter().any(|r| r.on.contains(&node) && (self.is_whole(job) || self.is_whole(r.job)))
    }

    /// What is free on a node beside these jobs.
    fn free(&self, node: usize, running: &[Runs]) -> [u64; 2] {
        let mut all = [0, 0];
        for r in running.iter().filter(|r| r.on.contains(&node)) {
            let chunks = r.on.iter().filter(|n| **n == node).count() as u64;
            let chunk = self.chunk(r.job).0.map(|c| c * chunks);
            let held = if self.is_whole(r.job) { self.has[node] } else { chunk };
            let counts = |i: usize| if i == 0 && r.is_lent { 0 } else { held[i] };
            (0..2).for_each(|i| all[i] += counts(i));
        }
        // Jobs may use processors of suspended ones.
        [self.has[node][0].saturating_sub(all[0]), self.has[node][1].saturating_sub(all[1])]
    }

    /// On which of these nodes Slurm puts a job.
    pub(super) fn choose(&self, job: usize, nodes: &[usize], running: &[Runs], busy_first: bool) -> Option<Vec<usize>> {
        let (chunk, copies) = self.chunk(job);
        let of_partition = self.nodes_of(job);
        let is_busy = |n: usize| running.iter().any(|r| r.on.contains(&n));
        let (apart, is_whole) = (self.is_apart(job), self.is_whole(job));
        let chunks = |n: usize| {
            let free = self.free(n, running);
            let most = if apart { 1 } else { copies };
            (0..=most).rev().find(|&k| (0..2).all(|i| chunk[i] * k as u64 <= free[i])).unwrap_or(0)
        };
        let able: Vec<usize> = (0..self.has.len())
            .filter(|n| nodes.contains(n) && of_partition.contains(n))
            .filter(|&n| !(is_whole && is_busy(n)))
            .filter(|&n| chunks(n) > 0)
            .collect();
        if able.iter().map(|&n| chunks(n)).sum::<usize>() < copies {
            return None;
        }
        let cpus = |n: usize| self.free(n, running)[0];
        if self.world.options.least_loaded {
            let mut able = able;
            able.sort_by_key(|&n| (busy_first && !is_busy(n), self.weights[n], std::cmp::Reverse(cpus(n)), n));
            let mut on: Vec<usize> = able.into_iter().flat_map(|n| vec![n; chunks(n)]).collect();
            on.truncate(copies);
            return Some(on);
        }
        let weight = |n: usize| (busy_first && !is_busy(n), self.weights[n]);
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for n in able {
            match runs.last_mut().filter(|run| {
                let last = *run.last().unwrap();
                last + 1 == n && weight(last) == weight(n)
            }) {
                Some(run) => run.push(n),
                None => runs.push(vec![n]),
            }
        }
        if apart {
            return self.choose_apart((chunk[0], copies, is_whole), runs, &cpus, &weight);
        }
        let mut on = Vec::new();
        while on.len() < copies {
            let left = copies - on.len();
            let all = |run: &Vec<usize>| run.iter().map(|&n| cpus(n)).sum::<u64>();
            let lightest = runs.iter().map(|run| weight(run[0])).min()?;
            let light = || runs.iter().enumerate().filter(|(_, run)| weight(run[0]) == lightest);
            let sufficient = light()
                .filter(|(_, run)| run.iter().map(|&n| chunks(n)).sum::<usize>() >= left)
                .min_by_key(|(at, run)| (all(run), *at));
            let largest = || light().min_by_key(|(at, run)| (std::cmp::Reverse(all(run)), *at));
            let at = sufficient.or_else(largest)?.0;
            let mut run = runs.remove(at);
            while on.len() < copies && !run.is_empty() {
                let left = copies - on.len();
                let sufficient = (0..run.len()).filter(|&p| on.is_empty() && chunks(run[p]) >= left);
                let place = sufficient.min_by_key(|&p| (cpus(run[p]), run[p])).unwrap_or(0);
                let node = run.remove(place);
                on.extend(vec![node; chunks(node).min(left)]);
            }
        }
        Some(on)
    }

    /// On which nodes of these runs Slurm puts so many chunks, each on a node of its own (`_eval_nodes` of select/cons_tres,
    /// line by line).
    fn choose_apart(
        &self,
        (of_chunk, copies, is_whole): (u64, usize, bool),
        mut runs: Vec<Vec<usize>>,
        cpus: &dyn Fn(usize) -> u64,
        weight: &dyn Fn(usize) -> (bool, u32),
    ) -> Option<Vec<usize>> {
        let mut on = Vec::new();
        let (mut rem_cpus, mut rem_nodes) = (of_chunk as i64 * copies as i64, copies as i64);
        while rem_nodes > 0 {
            let mut best: Option<(usize, i64, bool, (bool, u32))> = None;
            for (at, run) in runs.iter().enumerate() {
                let all = run.iter().map(|&n| cpus(n)).sum::<u64>() as i64;
                let sufficient = all >= rem_cpus && run.len() as i64 >= rem_nodes;
                let is_better = best.is_none_or(|(_, best_all, best_sufficient, best_weight)| {
                    let fits_better = match sufficient {
                        true => !best_sufficient || all < best_all,
                        false => all > best_all,
                    };
                    weight(run[0]) < best_weight || (weight(run[0]) == best_weight && fits_better)
                });
                if is_better {
                    best = Some((at, all, sufficient, weight(run[0])));
                }
            }
            let mut run = runs.remove(best?.0);
            if rem_nodes == 1 {
                run = run
                    .into_iter()
                    .filter(|&n| cpus(n) as i64 >= rem_cpus)
                    .min_by_key(|&n| (cpus(n), n))
                    .into_iter()
                    .collect();
            }
            for node in run {
                if rem_nodes == 0 {
                    break;
                }
                // `_cpus_to_use`: all but one for each of the other nodes, and what the job needs on this one at least.
                let most = (rem_cpus - (rem_nodes - 1)).max(of_chunk as i64);
                let used = if is_whole { cpus(node) as i64 } else { most.min(cpus(node) as i64) };
                on.push(node);
                rem_cpus -= used;
                rem_nodes -= 1;
            }
        }
        Some(on)
    }
}
