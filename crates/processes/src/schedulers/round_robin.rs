//! Round robin: who queued first. On preemptive resources everybody in turn gets a quantum, on others a
//! whole service; entitlements count for nothing.

use crate::scheduler::{Scheduler, Setting, View, Waiting, first_come};

pub(crate) struct RoundRobin;

impl Scheduler for RoundRobin {
    fn new(_: &Setting<'_>) -> RoundRobin {
        RoundRobin
    }

    #[inline]
    fn choose(&mut self, _: &View<'_>, _: usize, queue: &[Waiting]) -> usize {
        first_come(queue)
    }
}
