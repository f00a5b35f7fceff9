//! Weighted fair sharing of each resource by virtual time: stride scheduling (Waldspurger and Weihl, 1995), with the
//! rule of start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM'96) for clients that were absent.
//!
//! A client's virtual time on a resource grows by use over weight; the lowest is served first. A client that arrives at
//! a resource starts no earlier than the client served last, so that absence earns nothing.

use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView};

pub(crate) struct Stride {
    weights: Vec<u64>,
    resources: Vec<Clock>,
}

struct Clock {
    /// Virtual time of the client chosen last.
    now: u128,
    /// Virtual time of each client.
    clients: Vec<u128>,
    /// Number of requests of each client here.
    present: Vec<u32>,
}

/// Fractional bits: virtual time counts 2^-40 ns of a client of weight 1.
const FRACTION: u32 = 40;

impl Scheduler for Stride {
    const TRACKS_CHOICES: bool = true;

    fn new(context: &SchedulerContext<'_>) -> Stride {
        let n = context.weights.len();
        let clock = |_: &u32| Clock { now: 0, clients: vec![0; n], present: vec![0; n] };
        Stride { weights: context.weights.to_vec(), resources: context.servers.iter().map(clock).collect() }
    }

    fn request_arrives(&mut self, _: u64, client: usize, resource: usize) {
        let clock = &mut self.resources[resource];
        if clock.present[client] == 0 {
            clock.clients[client] = clock.clients[client].max(clock.now);
        }
        clock.present[client] += 1;
    }

    fn request_leaves(&mut self, _: u64, client: usize, resource: usize) {
        self.resources[resource].present[client] -= 1;
    }

    fn request_served(&mut self, client: usize, resource: usize, time: u64) {
        self.resources[resource].clients[client] += (u128::from(time) << FRACTION) / u128::from(self.weights[client]);
    }

    fn choose(&mut self, _: &SchedulerView<'_>, resource: usize, queue: &[QueuedRequest]) -> usize {
        let clock = &mut self.resources[resource];
        let time = |at: usize| clock.clients[queue[at].client as usize];
        let ahead = |a: usize, b: usize| time(a) < time(b) || (time(a) == time(b) && queue[a].precedes(&queue[b]));
        let best = (1..queue.len()).fold(0, |best, at| if ahead(at, best) { at } else { best });
        clock.now = time(best);
        best
    }
}
