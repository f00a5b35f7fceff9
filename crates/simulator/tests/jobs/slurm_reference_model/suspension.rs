//! Jobs that are suspended for others.

use std::cmp::Reverse;

use evenhand_model::PreemptMode;
use evenhand_simulator::PreemptType;

use super::{Runs, SlurmReferenceModel, secs};

/// The end of a suspended job.
const NEVER: u64 = u64::MAX / 2;

impl SlurmReferenceModel<'_> {
    /// When a job ends that was suspended for so long, if it goes on now. One beyond its limit ends at the next sweep.
    pub(super) fn finish(&self, t: u64, start: u64, job: usize, paused: u64) -> u64 {
        let killed = match (self.limit(job), self.world.options.over_time_limit) {
            (Some(limit), Some(over)) => t.max(start + limit + secs(over) + paused).div_ceil(30) * 30,
            _ => u64::MAX,
        };
        (start + self.world.jobs[job].run + paused).min(killed)
    }

    /// Whether a job may use the processors of another one, which is suspended if it runs.
    fn is_lender(&self, (t, job, partition): (u64, usize, usize), r: &Runs) -> bool {
        let is_exempt = self.world.options.preempt_type == Some(PreemptType::Qos) && t < r.start + self.exempt(r.job);
        self.may_preempt((job, partition), r.job)
            && self.preempt_mode(r.job) == PreemptMode::Suspend
            && (r.suspended.is_some() || (!r.ended && r.finish > t && !is_exempt))
    }

    /// On which of these nodes a job is put beside others, on processors of those that it may suspend if it must.
    pub(super) fn choose_over(
        &self,
        of: (u64, usize, usize),
        nodes: &[usize],
        running: &[Runs],
        busy_first: bool,
    ) -> Option<Vec<usize>> {
        let idle = self.choose(of.1, nodes, running, busy_first);
        if idle.is_some() {
            return idle;
        }
        let lenders = || running.iter().filter(|r| self.is_lender(of, r)).map(|r| self.rank(r.job));
        let with_lent = |highest: i64| {
            let is_lent = |r: &Runs| self.is_lender(of, r) && self.rank(r.job) <= highest;
            let mut left: Vec<Runs> = running.to_vec();
            match self.world.options.whole_nodes {
                true => left.retain(|r| !is_lent(r)),
                false => left.iter_mut().for_each(|r| r.is_lent = is_lent(r)),
            }
            self.choose(of.1, nodes, &left, busy_first)
        };
        // As few ranks as it takes, counted from the highest; those above keep what they have.
        let mut found = None;
        let mut highest = lenders().max()?;
        while let Some(on) = with_lent(highest) {
            found = Some(on);
            let Some(lower) = lenders().filter(|rank| *rank < highest).max() else { break };
            highest = lower;
        }
        found
    }

    /// How many processors a job uses on a node.
    fn uses(&self, r: &Runs, node: usize) -> u64 {
        let chunks = r.on.iter().filter(|n| **n == node).count() as u64;
        if self.world.options.whole_nodes && chunks > 0 { self.has[node][0] } else { self.chunk(r.job).0[0] * chunks }
    }

    /// Whether the nodes of a job have its processors beside those that these jobs use.
    fn has_room(&self, r: &Runs, beside: &[Runs]) -> bool {
        let used = |node: usize| beside.iter().map(|other| self.uses(other, node)).sum::<u64>();
        r.on.iter().all(|&node| used(node) + self.uses(r, node) <= self.has[node][0])
    }

    /// Suspends those of whose processors a job that starts uses some.
    pub(super) fn suspend_for(&mut self, t: u64, job: usize) {
        let active: Vec<Runs> = self.running.iter().filter(|r| r.suspended.is_none()).cloned().collect();
        let own = active.last().unwrap();
        let others: Vec<Runs> = active[..active.len() - 1].to_vec();
        if self.has_room(own, &others) {
            return;
        }
        let places = self.attempts(job);
        let may_go = |r: &Runs| r.job != job && places.iter().any(|&p| self.is_lender((t, job, p), r));
        let mut candidates: Vec<Runs> = active.iter().filter(|r| may_go(r)).cloned().collect();
        candidates.sort_by_key(|r| (Reverse(self.rank(r.job)), r.start, r.job));
        let mut stay: Vec<Runs> = active.iter().filter(|r| !may_go(r)).cloned().collect();
        for r in candidates {
            if self.has_room(&r, &stay) {
                stay.push(r);
                continue;
            }
            let r = self.running.iter_mut().find(|other| other.job == r.job && other.start == r.start).unwrap();
            (r.suspended, r.finish) = (Some(t), NEVER);
            if self.world.options.charge_ends {
                let job = &self.world.jobs[r.job];
                self.charged[job.user] += job.amounts[0] * (t - r.since.max(self.last_priorities));
            }
            self.found.suspended += 1;
        }
        self.resume(t);
    }

    /// Resumes those whose processors are free.
    pub(super) fn resume(&mut self, t: u64) {
        let mut waiting: Vec<usize> =
            (0..self.running.len()).filter(|&r| self.running[r].suspended.is_some()).collect();
        waiting.sort_by_key(|&r| {
            let r = &self.running[r];
            (Reverse(self.rank(r.job)), r.start, r.job)
        });
        for at in waiting {
            let active: Vec<Runs> = self.running.iter().filter(|r| r.suspended.is_none()).cloned().collect();
            if !self.has_room(&self.running[at], &active) {
                continue;
            }
            let r = &mut self.running[at];
            r.paused += t - r.suspended.take().unwrap();
            r.since = t;
            let (start, job, paused) = (r.start, r.job, r.paused);
            let finish = self.finish(t, start, job, paused);
            self.running[at].finish = finish;
            self.found.finishes[job] = Some(finish);
        }
    }
}
