//! Round robin: the request queued first. On preemptive resources all clients in turn get a quantum, on others a whole
//! service; entitlements are ignored.

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
