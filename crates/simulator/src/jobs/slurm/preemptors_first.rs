//! The order of the queue in which jobs come before those that they may preempt (`sort_job_queue2` of slurmctld).
//!
//! With preempt/partition_prio that is the order of tiers. With preempt/qos the comparison is no order: a job may come
//! before one that it may preempt, that one before a third by priority, and the third before the first. What slurmctld
//! makes of it is what glibc's merge sort makes of the jobs in the order of their ids; here, of their places in the log.

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::engine::Engine;

impl Engine<'_> {
    /// Begins a walk through the queue.
    pub(super) fn begin_walk(&mut self, now: Time, policy: &mut dyn Policy) {
        self.begin_walk_by_tiers(policy);
        self.walk = None;
        if !self.preemption.orders_queue() || !self.preempts_waiting_ones() {
            return;
        }
        let mut rows: Vec<(u32, usize)> = Vec::new();
        while let Some(row) = self.next_by_tiers(now, policy) {
            rows.push((row, rows.len()));
        }
        rows.retain(|(row, _)| !self.limits.is_throttled(*row));
        rows.sort_unstable();
        let precedes = |a: (u32, usize), b: (u32, usize)| {
            let of = |row: u32| (row, self.attempt(row, 0).0);
            match (self.may_preempt_job(of(a.0), of(b.0)), self.may_preempt_job(of(b.0), of(a.0))) {
                (true, _) => true,
                (false, true) => false,
                (false, false) => a.1 < b.1,
            }
        };
        let sorted = merge_sort(&rows, &precedes);
        self.walk = Some(sorted.into_iter().map(|(row, _)| row).collect::<Vec<u32>>().into_iter());
    }

    /// The next job of a walk.
    pub(super) fn next_in_order(&mut self, now: Time, policy: &mut dyn Policy) -> Option<u32> {
        match &mut self.walk {
            Some(walk) => walk.next(),
            None => self.next_by_tiers(now, policy),
        }
    }

    /// Whether a waiting job may preempt another one, by their QOS.
    fn preempts_waiting_ones(&self) -> bool {
        let mut examples: Vec<(Option<u16>, u32)> =
            self.pending.entries().iter().map(|entry| (self.preemption.qos_number(entry.row), entry.row)).collect();
        examples.sort_unstable();
        let within = |pair: &[(Option<u16>, u32)]| pair[0].0 == pair[1].0 && self.preemption.preempts_within(pair[0].1);
        if examples.windows(2).any(within) {
            return true;
        }
        examples.dedup_by_key(|(qos, _)| *qos);
        let preempts = |a: u32, b: u32| self.preemption.preempts_other(a, b);
        examples.iter().any(|(_, a)| examples.iter().any(|(_, b)| preempts(*a, *b)))
    }
}

/// Sorts as glibc's `qsort` does: the first half is of n / 2, and of equal ones the left is taken.
fn merge_sort<T: Copy>(items: &[T], precedes: &impl Fn(T, T) -> bool) -> Vec<T> {
    if items.len() <= 1 {
        return items.to_vec();
    }
    let (left, right) = items.split_at(items.len() / 2);
    let (left, right) = (merge_sort(left, precedes), merge_sort(right, precedes));
    let (mut a, mut b) = (left.as_slice(), right.as_slice());
    let mut merged = Vec::with_capacity(items.len());
    while let (Some(&first), Some(&second)) = (a.first(), b.first()) {
        if precedes(second, first) {
            merged.push(second);
            b = &b[1..];
        } else {
            merged.push(first);
            a = &a[1..];
        }
    }
    merged.extend_from_slice(a);
    merged.extend_from_slice(b);
    merged
}
