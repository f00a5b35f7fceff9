//! Whether too little is free for a job that was submitted before another one and waits with it.

use std::collections::BinaryHeap;

use evenhand_model::Workload;

use crate::log::Log;

/// Jobs that wait, asked at ever later instants whether too little is free for one of them. A job that has not become
/// eligible does not count: it does not start however much is free.
///
/// For each resource the largest need decides. So there is a heap for each resource, from which jobs that have started are
/// removed when they come to its top: O(log n) for each job, over all instants.
pub(crate) struct EarlierJobs<'a> {
    workload: &'a Workload,
    log: &'a Log,
    /// For each resource what eligible jobs need, and the jobs.
    needs: Vec<BinaryHeap<(u64, u32)>>,
    /// Jobs that become eligible later, the first of them last.
    later: Vec<u32>,
}

impl<'a> EarlierJobs<'a> {
    /// Takes the jobs of `waiting` that have not started by `now`.
    pub(crate) fn new(workload: &'a Workload, log: &'a Log, waiting: &[u32], now: i64) -> EarlierJobs<'a> {
        let waits = waiting.iter().copied().filter(|&job| log.jobs()[job as usize].start > now);
        let (eligible, mut later): (Vec<u32>, Vec<u32>) = waits.partition(|&job| log.eligible(job as usize) <= now);
        later.sort_by_key(|&job| std::cmp::Reverse(log.eligible(job as usize)));
        let amount = |job: u32, r: usize| workload.amounts(log.row(job as usize))[r].0;
        // A heap is made of a list in O(n).
        let heap = |r: usize| eligible.iter().map(|&job| (amount(job, r), job)).collect::<Vec<_>>().into();
        EarlierJobs { workload, log, needs: (0..workload.resources().len()).map(heap).collect(), later }
    }

    /// Returns whether too little of some resource is free at `now`, when so much is `held` of the `capacities`, for an
    /// eligible job that starts later. `now` is not before that of an earlier call.
    pub(crate) fn one_lacks(&mut self, now: i64, held: &[u128], capacities: &[u128]) -> bool {
        while let Some(job) = self.later.pop_if(|job| self.log.eligible(*job as usize) <= now) {
            let amounts = self.workload.amounts(self.log.row(job as usize));
            self.needs.iter_mut().zip(amounts).for_each(|(needs, amount)| needs.push((amount.0, job)));
        }
        let log = self.log;
        let has_started = |job: u32| log.jobs()[job as usize].start <= now;
        self.needs.iter_mut().zip(held).zip(capacities).any(|((needs, held), capacity)| {
            while needs.peek().is_some_and(|(_, job)| has_started(*job)) {
                needs.pop();
            }
            needs.peek().is_some_and(|(need, _)| held.saturating_add(u128::from(*need)) > *capacity)
        })
    }
}
