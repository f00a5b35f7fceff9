//! The order of the queue.

use evenhand_simulator::PreemptType;

use super::{OrderBy, SlurmReferenceModel};

impl SlurmReferenceModel<'_> {
    /// The queue in order: a merge sort of the jobs by number, in which a job comes before those that it may preempt, and
    /// else the order of tiers decides.
    pub(super) fn order(&self) -> Vec<usize> {
        let by_tiers = self.order_by_tiers();
        if self.world.options.preempt_type != Some(PreemptType::Qos) {
            return by_tiers;
        }
        let place = |job: usize| by_tiers.iter().position(|&j| j == job);
        let precedes = |a: usize, b: usize| {
            let may = |a: usize, b: usize| self.may_preempt((a, self.attempts(a)[0]), b);
            may(a, b) || (!may(b, a) && place(a) < place(b))
        };
        let mut jobs = by_tiers.clone();
        jobs.retain(|&job| !self.is_throttled(job));
        jobs.sort_unstable();
        sorted(jobs, &precedes)
    }

    /// The queue in the order of tiers.
    pub(super) fn order_by_tiers(&self) -> Vec<usize> {
        let jobs = &self.world.jobs;
        let tier = |j: usize| -self.world.partitions[self.partition(j)].tier;
        let mut waiting = self.waiting.clone();
        match self.world.order {
            OrderBy::Priorities => {
                waiting.sort_by_key(|&j| (tier(j), std::cmp::Reverse(self.priority[j]), self.since[j], j));
            }
            _ => {
                let total = |r: usize| self.has.iter().map(|h| h[r]).sum::<u64>();
                let share = |user: usize, r: usize| {
                    let mine = self
                        .running
                        .iter()
                        .filter(|x| !x.ended && x.suspended.is_none())
                        .filter(|x| jobs[x.job].user == user);
                    mine.map(|x| self.held_by(x)[r]).sum::<u64>() * total(1 - r)
                };
                let is_fifo = self.world.order == OrderBy::Fifo;
                let dominant = |user: usize| if is_fifo { 0 } else { share(user, 0).max(share(user, 1)) };
                waiting.sort_unstable();
                let mut order = Vec::new();
                while !waiting.is_empty() {
                    // Of each user the first job of the highest tier that is left.
                    let top = waiting.iter().map(|&j| tier(j)).min().unwrap();
                    let firsts = waiting.iter().copied().filter(|&j| {
                        tier(j) == top
                            && !waiting.iter().any(|&k| k < j && jobs[k].user == jobs[j].user && tier(k) == top)
                    });
                    let next = firsts.min_by_key(|&j| (dominant(jobs[j].user), self.since[j], j)).unwrap();
                    order.push(next);
                    waiting.retain(|&j| j != next);
                }
                return order;
            }
        }
        waiting
    }
}

/// The halves sorted, and the smaller of the first of each taken again and again.
fn sorted(mut jobs: Vec<usize>, precedes: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    if jobs.len() < 2 {
        return jobs;
    }
    let right = jobs.split_off(jobs.len() / 2);
    let (mut left, mut right) = (sorted(jobs, precedes), sorted(right, precedes));
    let mut merged = Vec::new();
    while !left.is_empty() && !right.is_empty() {
        merged.push(if precedes(right[0], left[0]) { right.remove(0) } else { left.remove(0) });
    }
    [merged, left, right].concat()
}
