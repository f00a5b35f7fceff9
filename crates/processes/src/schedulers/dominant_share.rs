//! As DRF (Ghodsi et al. 2011), with time for amounts: who has the least dominant share over entitlement,
//! which is the largest part that the client had of any resource's time within the window.

use crate::scheduler::{Scheduler, Setting, View, Waiting};
use crate::schedulers::least_use::least;

pub(crate) struct DominantShare {
    weights: Vec<u64>,
    servers: Vec<u32>,
}

/// Shares of resources with several servers are rounded to so many parts of a nanosecond.
const PARTS: u64 = 1 << 10;

impl Scheduler for DominantShare {
    const LIVE: bool = true;

    fn new(setting: &Setting<'_>) -> DominantShare {
        DominantShare { weights: setting.weights.to_vec(), servers: setting.servers.to_vec() }
    }

    fn choose(&mut self, view: &View<'_>, _: usize, queue: &[Waiting]) -> usize {
        let share = |client: usize| {
            let of = |(resource, servers): (usize, &u32)| {
                view.used.in_window(resource)[client] as u64 * PARTS / u64::from(*servers)
            };
            self.servers.iter().enumerate().map(of).max().unwrap_or(0)
        };
        least(queue, share, &self.weights)
    }
}
