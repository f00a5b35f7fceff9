//! Round robin: who queued first. On preemptive resources everybody in turn gets a quantum, on others a
//! whole service; entitlements count for nothing.

use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView, first_in_queue};

pub(crate) struct RoundRobin;

impl Scheduler for RoundRobin {
    fn new(_: &SchedulerContext<'_>) -> RoundRobin {
        RoundRobin
    }

    #[inline]
    fn choose(&mut self, _: &SchedulerView<'_>, _: usize, queue: &[QueuedRequest]) -> usize {
        first_in_queue(queue)
    }
}
