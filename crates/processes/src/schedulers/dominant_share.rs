//! As DRF (Ghodsi et al. 2011), with time for amounts: who has the least dominant share over entitlement,
//! which is the largest part that the client had of any resource's time within the window.

use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView};
use crate::schedulers::minimal_consumption::lowest_per_weight;

pub(crate) struct DominantShare {
    weights: Vec<u64>,
    servers: Vec<u32>,
}

/// Shares of resources with several servers are rounded to so many parts of a nanosecond.
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
