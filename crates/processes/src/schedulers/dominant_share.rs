//! Dominant resource fairness (Ghodsi et al., NSDI'11) with time as the amount: the client with the lowest dominant
//! share over entitlement, which is the largest fraction of any resource's time that it had within the window.

use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView};
use crate::schedulers::minimal_consumption::lowest_per_weight;

pub(crate) struct DominantShare {
    weights: Vec<u64>,
    servers: Vec<u32>,
}

/// Resolution of shares of resources with several servers, in parts of a nanosecond.
const PARTS: u64 = 1 << 10;

impl Scheduler for DominantShare {
    const NEEDS_CURRENT_USAGE: bool = true;

    fn new(context: &SchedulerContext<'_>) -> DominantShare {
        DominantShare { weights: context.weights.to_vec(), servers: context.servers.to_vec() }
    }

    fn choose(&mut self, view: &SchedulerView<'_>, _: usize, queue: &[QueuedRequest]) -> usize {
        let share = |client: usize| {
            let of = |(resource, servers): (usize, &u32)| {
                view.used.in_window(resource)[client] as u64 * PARTS / u64::from(*servers)
            };
            self.servers.iter().enumerate().map(of).max().unwrap_or(0)
        };
        lowest_per_weight(queue, share, &self.weights)
    }
}
