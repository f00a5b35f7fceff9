//! Dispatching: recalculation of priorities, and the choice of the next request for each free server.

use evenhand_model::Time;

use super::{NEVER, Simulation};
use crate::scheduler::{Scheduler, SchedulerView};

impl<S: Scheduler> Simulation<'_, S> {
    /// Gives work to all free servers, and recalculates priorities first if they are due.
    #[inline]
    pub(super) fn dispatch(&mut self) {
        let mut is_live = !S::NEEDS_CURRENT_USAGE;
        for number in 0..self.resources.len() {
            while self.resources[number].free > 0 && !self.resources[number].queue.is_empty() {
                let is_due = self.recalculated.is_none_or(|last| self.now - last >= self.recalculation);
                if is_due && self.recalculated != Some(self.now) {
                    self.recalculate();
                } else if !is_live {
                    self.used.sync(self.now, self.now.saturating_sub(self.window));
                }
                is_live = true;
                self.start(number);
            }
        }
    }

    /// Determines the bottlenecks and recalculates priorities.
    pub(super) fn recalculate(&mut self) {
        self.recalculated = Some(self.now);
        self.recalculations += 1;
        self.used.sync(self.now, self.now.saturating_sub(self.window));
        for (number, resource) in self.resources.iter_mut().enumerate() {
            let is_bottleneck = self.used.busy(number) > resource.limit;
            if is_bottleneck != self.bottlenecks[number] {
                self.bottlenecks[number] = is_bottleneck;
                if is_bottleneck {
                    resource.bottleneck_since = self.now;
                } else {
                    resource.bottleneck_time += self.now - resource.bottleneck_since;
                }
                self.observer.bottleneck(Time::from_nanos(self.now), number, is_bottleneck);
            }
        }
        let view = SchedulerView { now: self.now, used: &self.used, bottlenecks: &self.bottlenecks };
        self.scheduler.recalculate(&view);
        let priorities = self.scheduler.priorities();
        if !priorities.is_empty() {
            self.observer.priorities(Time::from_nanos(self.now), priorities);
        }
    }

    /// Gives a free server of the resource to the next request in its queue.
    #[inline]
    pub(super) fn start(&mut self, number: usize) {
        let resource = &mut self.resources[number];
        let chosen = if resource.queue.len() == 1 && !S::TRACKS_CHOICES {
            0
        } else {
            let view = SchedulerView { now: self.now, used: &self.used, bottlenecks: &self.bottlenecks };
            self.scheduler.choose(&view, number, &resource.queue)
        };
        let waiting = resource.queue.swap_remove(chosen);
        resource.free -= 1;
        let servers = resource.first_server..resource.first_server + resource.servers;
        let quantum = resource.quantum;
        let free = self.ends[servers.clone()].iter().position(|end| *end == NEVER);
        let server = servers.start + free.unwrap_or(0);
        let remaining = self.slots[waiting.slot as usize].remaining;
        self.servers[server].slot = waiting.slot;
        self.servers[server].since = self.now;
        self.ends[server] = self.now + remaining.min(quantum);
        self.used.start(self.now, server, waiting.client as usize);
        self.clients[waiting.client as usize].waited += self.now - waiting.arrived;
        self.dispatches += 1;
    }
}
