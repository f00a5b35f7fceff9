//! Running jobs that make way for others.

use std::cmp::Reverse;

use evenhand_model::PreemptMode;
use evenhand_simulator::PreemptType;

use super::{OrderBy, Preempted, Runs, SlurmReferenceModel, secs};

impl SlurmReferenceModel<'_> {
    /// The rules by which a job is preempted, of its partition or its QOS.
    fn preempted_rules(&self, job: usize) -> Preempted {
        match self.world.options.preempt_type {
            Some(PreemptType::Partition) => self.world.partitions[self.attempts(job)[0]].preempted,
            _ => self.world.jobs[job].qos.map_or(Preempted::default(), |qos| self.world.preempted[qos]),
        }
    }

    pub(super) fn preempt_mode(&self, job: usize) -> PreemptMode {
        let o = self.world.options;
        match self.preempted_rules(job).mode.unwrap_or(o.preempt_mode) {
            PreemptMode::Suspend if !o.preempt_gang => PreemptMode::Off,
            mode => mode,
        }
    }

    /// Whether a job that is tried in a partition may preempt another one.
    pub(super) fn may_preempt(&self, (job, partition): (usize, usize), other: usize) -> bool {
        let (o, world) = (self.world.options, self.world);
        if o.preempt_mode == PreemptMode::Off {
            return false;
        }
        let tier = |p: usize| world.partitions[p].tier;
        let has_priority = world.order == OrderBy::Priorities && self.priority[job] > self.priority[other];
        let (qos, of_other) = (world.jobs[job].qos, world.jobs[other].qos);
        match o.preempt_type {
            None => false,
            Some(PreemptType::Partition) => {
                tier(partition) > tier(self.attempts(other)[0]) && (has_priority || !o.preempt_priority)
            }
            Some(PreemptType::Qos) if qos.is_some() && qos == of_other => {
                (o.preempt_within || qos.is_some_and(|qos| world.preempted[qos].within)) && has_priority
            }
            Some(PreemptType::Qos) => qos == Some(1) && of_other == Some(0) && (has_priority || !o.preempt_priority),
        }
    }

    /// How long a job runs before it can be preempted.
    pub(super) fn exempt(&self, job: usize) -> u64 {
        let own = self.world.jobs[job].qos.and_then(|qos| self.world.preempted[qos].exempt);
        own.unwrap_or(secs(self.world.options.preempt_exempt_time))
    }

    /// By what jobs are preempted first: the tier of the partition.
    pub(super) fn rank(&self, job: usize) -> i64 {
        match self.world.options.preempt_type {
            Some(PreemptType::Partition) => i64::from(self.world.partitions[self.attempts(job)[0]].tier),
            _ => 0,
        }
    }

    /// The running jobs that a job may preempt in a partition, those first that are preempted first.
    pub(super) fn preemptable(&self, t: u64, job: usize, partition: usize) -> Vec<Runs> {
        let o = self.world.options;
        let nodes = self.nodes_in(partition);
        let is_preemptable = |r: &&Runs| {
            let is_young = t < r.start + self.exempt(r.job);
            !r.ended
                && r.finish > t
                && self.may_preempt((job, partition), r.job)
                && [PreemptMode::Cancel, PreemptMode::Requeue].contains(&self.preempt_mode(r.job))
                && !is_young
                && r.on.iter().any(|n| nodes.contains(n))
        };
        let mut found: Vec<Runs> = self.running.iter().filter(is_preemptable).cloned().collect();
        match o.preempt_youngest_first {
            true => found.sort_by_key(|r| (Reverse(r.start), r.job)),
            false => found.sort_by_key(|r| (self.rank(r.job), distinct(&r.on), r.job)),
        }
        found
    }

    /// All running jobs but some.
    fn without(&self, gone: &[Runs]) -> Vec<Runs> {
        let is_gone = |r: &Runs| gone.iter().any(|g| g.job == r.job && g.start == r.start);
        self.running.iter().filter(|r| !is_gone(r)).cloned().collect()
    }

    /// Ends running jobs for one that then fits on these nodes, and returns where.
    pub(super) fn preempt(&mut self, t: u64, job: usize, partition: usize, nodes: &[usize]) -> Option<Vec<usize>> {
        let o = self.world.options;
        let mut candidates = self.preemptable(t, job, partition);
        let mut round = 0;
        let (gone, on) = loop {
            round += 1;
            let fitting =
                |count: usize| self.choose_over((t, job, partition), nodes, &self.without(&candidates[..count]), false);
            let (count, on) = (1..=candidates.len()).find_map(|count| Some((count, fitting(count)?)))?;
            let shared = |r: &Runs| (0..self.has.len()).filter(|n| r.on.contains(n) && on.contains(n)).count();
            if round > o.preempt_reorder_count + 1 || candidates.len() as u32 <= round {
                let used: Vec<Runs> = candidates[..count].iter().filter(|r| shared(r) > 0).cloned().collect();
                break (used, on);
            }
            if o.preempt_strict_order {
                let last = candidates.remove(count - 1);
                candidates.insert(0, last);
            } else {
                let last = candidates.remove(count - 1);
                let mut before: Vec<Runs> = candidates.drain(..count - 1).collect();
                before.sort_by_key(|r| Reverse(shared(r)));
                // Those that were not taken away count as if they shared nothing, as do those that share nothing.
                candidates = [vec![last], before, candidates].concat();
            }
        };
        gone.iter().for_each(|r| self.make_way(t, r, job));
        Some(on)
    }

    fn make_way(&mut self, t: u64, which: &Runs, preemptor: usize) {
        let (rules, mode) = (self.preempted_rules(which.job), self.preempt_mode(which.job));
        let found = &mut self.found;
        let r = self.running.iter_mut().find(|r| r.job == which.job && r.start == which.start).unwrap();
        if r.makes_way.is_some() {
            return;
        }
        r.makes_way = Some(preemptor);
        let latest = t + rules.grace;
        let end = if rules.grace == 0 { latest } else { latest.div_ceil(30) * 30 };
        r.limit = r.limit.min(latest - r.start);
        if end < r.finish {
            (r.finish, r.preempted) = (end, Some(mode));
            found.finishes[r.job] = Some(end);
        }
    }

    /// Takes note of jobs that have ended because they made way.
    pub(super) fn note_preempted(&mut self, t: u64, job: usize, mode: PreemptMode, preemptor: usize) {
        if mode == PreemptMode::Cancel {
            self.found.cancelled += 1;
            return;
        }
        self.found.requeued += 1;
        (self.found.starts[job], self.found.finishes[job], self.found.started_by[job]) = (None, None, None);
        self.found.nodes[job].clear();
        self.again.push((t + 121, job, preemptor));
    }

    /// When a job can start on these nodes if those that it may preempt do not run, and where.
    pub(super) fn start_without(
        &self,
        of: (u64, usize, usize),
        preemptable: &[Runs],
        nodes: &[usize],
        within: Option<(u64, Option<u64>)>,
    ) -> Option<(u64, Vec<usize>, bool)> {
        let left = self.without(preemptable);
        self.will_run_beside(of, nodes, left, (!preemptable.is_empty(), within))
    }
}

fn distinct(nodes: &[usize]) -> usize {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}
