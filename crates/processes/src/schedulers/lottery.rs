//! Lottery scheduling (Waldspurger and Weihl, OSDI'94): every waiting client holds tickets in proportion to its
//! entitlement, and one ticket is drawn for each quantum or service.
//!
//! A client has the same tickets however many of its requests wait; the first of them is served.

use evenhand_model::random::Stream;

use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView};

pub(crate) struct Lottery {
    weights: Vec<u64>,
    stream: Stream,
    /// Index of each client's first request in the queue, by client.
    first: Vec<(u32, usize)>,
}

impl Scheduler for Lottery {
    fn new(context: &SchedulerContext<'_>) -> Lottery {
        let stream = Stream::new(context.seed, "lottery", 0);
        Lottery { weights: context.weights.to_vec(), stream, first: Vec::new() }
    }

    fn choose(&mut self, _: &SchedulerView<'_>, _: usize, queue: &[QueuedRequest]) -> usize {
        if queue.len() == 1 {
            return 0;
        }
        // By client, so that the draw does not depend on the order of the queue.
        self.first.clear();
        self.first.extend(queue.iter().enumerate().map(|(at, w)| (w.client, at)));
        self.first.sort_unstable_by_key(|(client, at)| (*client, queue[*at].arrived, queue[*at].slot));
        self.first.dedup_by_key(|(client, _)| *client);
        let tickets: u64 = self.first.iter().map(|(client, _)| self.weights[*client as usize]).sum();
        let mut ticket = self.stream.below(tickets);
        for (client, at) in &self.first {
            match ticket.checked_sub(self.weights[*client as usize]) {
                Some(rest) => ticket = rest,
                None => return *at,
            }
        }
        0
    }
}
