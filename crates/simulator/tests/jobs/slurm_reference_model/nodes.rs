//! Where jobs are put.

use super::{Runs, SlurmReferenceModel};

impl SlurmReferenceModel<'_> {
    pub(super) fn chunk(&self, job: usize) -> ([u64; 2], usize) {
        let j = &self.world.jobs[job];
        if let Some(n) = self.whole_nodes(job) {
            return (j.amounts.map(|a| a.div_ceil(n)), n as usize);
        }
        match j.nodes.or(j.tasks) {
            Some(n) => ([j.amounts[0] / n, j.amounts[1] / n], n as usize),
            None => (j.amounts, 1),
        }
    }

    /// How many whole nodes the job has that asks for such, or whose partition gives them: as many as the log states, or as
    /// suffice whichever they are; `None` if so many are not there.
    fn whole_nodes(&self, job: usize) -> Option<u64> {
        let j = &self.world.jobs[job];
        let in_partition = self.world.partitions[self.partition(job)].whole_machines && !self.world.options.whole_nodes;
        if !(j.is_exclusive || in_partition) {
            return None;
        }
        let nodes = self.nodes_of(job);
        let of_least = |n: usize, r: usize| {
            let mut each: Vec<u64> = nodes.iter().map(|&node| self.has[node][r]).collect();
            each.sort_unstable();
            each.iter().take(n).sum::<u64>()
        };
        let suffice = |n: &usize| (0..2).all(|r| of_least(*n, r) >= j.amounts[r]);
        let stated = j.nodes.or(j.task_nodes).or(j.tasks.map(|_| 2));
        let n = stated.or_else(|| (1..=nodes.len()).find(suffice).map(|n| n as u64))?;
        let has_part = |node: &&usize| (0..2).all(|r| j.amounts[r].div_ceil(n) <= self.has[**node][r]);
        (nodes.iter().filter(has_part).count() as u64 >= n).then_some(n)
    }

    /// On how many nodes its tasks are, if they are not on whole nodes.
    fn task_nodes(&self, job: usize) -> Option<u64> {
        self.world.jobs[job].task_nodes.filter(|_| self.whole_nodes(job).is_none())
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
        (self.world.jobs[job].nodes.is_some() || self.whole_nodes(job).is_some()) && self.has_nodes(job)
    }

    /// The smallest number of nodes on which the job is.
    pub(super) fn least_nodes(&self, job: usize) -> usize {
        let of_tasks = self.task_nodes(job).unwrap_or(1) as usize;
        if self.is_apart(job) { self.chunk(job).1 } else { of_tasks }
    }

    /// Whether these nodes hold the job when they are empty.
    pub(super) fn hold(&self, job: usize, nodes: &[usize]) -> bool {
        let (chunk, copies) = self.chunk(job);
        if self.task_nodes(job).is_some() {
            return self.choose(job, nodes, &[], false).is_some();
        }
        let most = if self.is_apart(job) { 1 } else { copies };
        let on = |n: &usize| (0..=most).rev().find(|&k| (0..2).all(|i| chunk[i] * k as u64 <= self.has[*n][i]));
        nodes.iter().filter_map(on).sum::<usize>() >= copies
    }

    /// Whether the job has whole nodes.
    pub(super) fn is_whole(&self, job: usize) -> bool {
        self.world.options.whole_nodes || self.whole_nodes(job).is_some()
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
        if let Some(wanted) = self.task_nodes(job) {
            // Chunks are counted beyond what the job needs, since Slurm compares nodes by all that is free.
            let all = |n: usize| {
                let free = self.free(n, running);
                (1..).take_while(|k| (0..2).all(|i| chunk[i] * k <= free[i])).last().unwrap_or(0)
            };
            let mut avail: Vec<(usize, i64)> = able.iter().map(|&n| (n, (all(n) * chunk[0]) as i64)).collect();
            let weight = |n: usize| (busy_first && !is_busy(n), self.weights[n]);
            return self.choose_nodes((copies as i64, chunk[0] as i64, wanted as usize), is_whole, &mut avail, &weight);
        }
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

    /// On which nodes Slurm puts tasks of so many processors each, on so many nodes (`choose_nodes` of select/cons_tres, line by line).
    fn choose_nodes(
        &self,
        (tasks, of_task, wanted): (i64, i64, usize),
        is_whole: bool,
        avail: &mut [(usize, i64)],
        weight: &dyn Fn(usize) -> (bool, u32),
    ) -> Option<Vec<usize>> {
        let mut map: Vec<bool> = vec![true; avail.len()];
        let asked = (tasks * of_task, of_task, wanted as i64);
        if avail.len() < wanted {
            return None;
        }
        let mut found = self.eval_nodes(asked, is_whole, avail, &map, weight);
        if found.is_none() && avail.len() <= wanted {
            found = self.eval_nodes(asked, is_whole, avail, &map, weight);
        } else if found.is_none() {
            let most = avail.iter().map(|(_, cpus)| *cpus).max().unwrap();
            let mut rem_nodes = avail.len();
            for count in 1..most {
                let mut nochange = true;
                for i in 0..avail.len() {
                    if map[i] && avail[i].1 <= count {
                        nochange = false;
                        map[i] = false;
                        rem_nodes -= 1;
                        if rem_nodes <= wanted {
                            break;
                        }
                    }
                }
                if nochange && count != 1 {
                    continue;
                }
                found = self.eval_nodes(asked, is_whole, avail, &map, weight);
                if found.is_some() || rem_nodes <= wanted {
                    break;
                }
            }
        }
        // `dist_tasks_compute_c_b`: a task on each node, then others in turn.
        let mut used = found?;
        used.sort_unstable();
        let mut on: Vec<usize> = used.iter().map(|(n, _)| *n).collect();
        while on.len() < tasks as usize {
            let before = on.len();
            for &(n, cpus) in &used {
                let has = on.iter().filter(|other| **other == n).count() as i64;
                if on.len() < tasks as usize && (has + 1) * of_task <= cpus {
                    on.push(n);
                }
            }
            assert!(on.len() > before);
        }
        Some(on)
    }

    /// `_eval_nodes`, and `_eval_nodes_lln` where the least loaded nodes are taken.
    fn eval_nodes(
        &self,
        (mut rem_cpus, of_task, mut rem_nodes): (i64, i64, i64),
        is_whole: bool,
        avail: &mut [(usize, i64)],
        map: &[bool],
        weight: &dyn Fn(usize) -> (bool, u32),
    ) -> Option<Vec<(usize, i64)>> {
        let mut used = Vec::new();
        let mut order: Vec<usize> = Vec::new();
        if self.world.options.least_loaded {
            order.extend((0..avail.len()).filter(|&i| map[i]));
            order.sort_by_key(|&i| (weight(avail[i].0), std::cmp::Reverse(avail[i].1), i));
            for i in order {
                if rem_nodes == 0 {
                    break;
                }
                let most = if is_whole { i64::MAX } else { (rem_cpus - (rem_nodes - 1)).max(of_task) };
                avail[i].1 = avail[i].1.min(most);
                used.push(avail[i]);
                rem_cpus -= avail[i].1;
                rem_nodes -= 1;
            }
            return (rem_cpus <= 0 && rem_nodes == 0).then_some(used);
        }
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for i in (0..avail.len()).filter(|&i| map[i]) {
            match sets.last_mut().filter(|set| {
                let last = avail[*set.last().unwrap()].0;
                last + 1 == avail[i].0 && weight(last) == weight(avail[i].0)
            }) {
                Some(set) => set.push(i),
                None => sets.push(vec![i]),
            }
        }
        let cpus: Vec<i64> = sets.iter().map(|set| set.iter().map(|&i| avail[i].1).sum()).collect();
        let mut is_taken = vec![false; sets.len()];
        while rem_nodes > 0 {
            let (mut best, mut best_sufficient): (Option<usize>, bool) = (None, false);
            for s in 0..sets.len() {
                if is_taken[s] {
                    continue;
                }
                let sufficient = cpus[s] >= rem_cpus && sets[s].len() as i64 >= rem_nodes;
                let of = |s: usize| weight(avail[sets[s][0]].0);
                let new_best = match best {
                    None => true,
                    Some(b) if of(s) != of(b) => of(s) < of(b),
                    Some(_) if sufficient && !best_sufficient => true,
                    Some(b) if sufficient => cpus[s] < cpus[b],
                    Some(b) => cpus[s] > cpus[b],
                };
                if new_best {
                    (best, best_sufficient) = (Some(s), sufficient);
                }
            }
            let best = best?;
            is_taken[best] = true;
            let mut best_fit: Option<usize> = None;
            if rem_nodes <= 1 {
                for &i in &sets[best] {
                    if avail[i].1 >= rem_cpus && best_fit.is_none_or(|b| avail[i].1 < avail[b].1) {
                        best_fit = Some(i);
                    }
                }
            }
            for &i in &sets[best] {
                if rem_nodes == 0 {
                    break;
                }
                if best_fit.is_some_and(|b| b != i) || (rem_nodes == 1 && avail[i].1 < rem_cpus) {
                    continue;
                }
                let most = if is_whole { i64::MAX } else { (rem_cpus - (rem_nodes - 1)).max(of_task) };
                avail[i].1 = avail[i].1.min(most);
                used.push(avail[i]);
                rem_cpus -= avail[i].1;
                rem_nodes -= 1;
            }
        }
        (rem_cpus <= 0).then_some(used)
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
