//! Max-min by minimal consumption: on each resource, the client with the lowest consumption of it over entitlement
//! within the window (the common approach that bottleneck-based priorities contradict: Zeldes and Feitelson, 2013,
//! section 3).

use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView};

pub(crate) struct MinimalConsumption {
    weights: Vec<u64>,
}

impl Scheduler for MinimalConsumption {
    const NEEDS_CURRENT_USAGE: bool = true;

    fn new(context: &SchedulerContext<'_>) -> MinimalConsumption {
        MinimalConsumption { weights: context.weights.to_vec() }
    }

    fn choose(&mut self, view: &SchedulerView<'_>, resource: usize, queue: &[QueuedRequest]) -> usize {
        let used = view.used.in_window(resource);
        lowest_per_weight(queue, |client| used[client] as u64, &self.weights)
    }
}

/// Returns the index of the request whose client has the lowest amount per weight; fractions are compared exactly.
pub(crate) fn lowest_per_weight(queue: &[QueuedRequest], amount: impl Fn(usize) -> u64, weights: &[u64]) -> usize {
    (1..queue.len()).fold(0, |best, at| {
        let (new, old) = (queue[at].client as usize, queue[best].client as usize);
        let left = u128::from(amount(new)) * u128::from(weights[old]);
        let right = u128::from(amount(old)) * u128::from(weights[new]);
        if left < right || (left == right && queue[at].precedes(&queue[best])) { at } else { best }
    })
}
