//! Requests: how threads issue them, how they wait in queues, and what follows when they end.

use std::cmp::Reverse;

use evenhand_model::Time;

use super::{Simulation, Timer};
use crate::scheduler::{QueuedRequest, Scheduler};
use crate::thread::Action;

impl<S: Scheduler> Simulation<'_, S> {
    /// Removes a suspended client's requests from a queue.
    pub(super) fn withdraw(&mut self, client: u32, resource: usize) {
        let mut at = 0;
        while at < self.resources[resource].queue.len() {
            if self.resources[resource].queue[at].client == client {
                let waiting = self.resources[resource].queue.swap_remove(at);
                let state = &mut self.clients[client as usize];
                state.waited += self.now - waiting.arrived;
                state.held.push(waiting.slot);
                self.scheduler.request_leaves(self.now, client as usize, resource);
            } else {
                at += 1;
            }
        }
    }

    /// Executes the thread's next steps, up to one for which it must wait.
    pub(super) fn advance(&mut self, number: u32) {
        loop {
            let thread = &mut self.threads[number as usize];
            if let Some(phase) = thread.ended_phase() {
                self.observer.phase_ended(Time::from_nanos(self.now), thread.client, thread.thread, phase);
            }
            match thread.next() {
                Action::Request(resource, time) => {
                    let slot = thread.slot;
                    return self.submit(slot, resource, time);
                }
                Action::Background(resource, time) => match thread.free.pop() {
                    Some(slot) => {
                        thread.outstanding += 1;
                        self.submit(slot, resource, time);
                    }
                    None => {
                        thread.pending = Some((resource, time));
                        return;
                    }
                },
                Action::Idle(time) => {
                    self.timers.push(Reverse((self.now + time, Timer::Wake(number))));
                    return;
                }
                Action::End => {
                    thread.ended = true;
                    if thread.outstanding == 0 {
                        self.clients[thread.client].threads -= 1;
                    }
                    return;
                }
            }
        }
    }

    /// Issues a request, or withholds it if the client is suspended.
    pub(super) fn submit(&mut self, slot: u32, resource: u32, time: u64) {
        let request = &mut self.slots[slot as usize];
        (request.resource, request.remaining) = (resource, time);
        let client = &mut self.clients[request.client as usize];
        if client.suspended {
            client.held.push(slot);
        } else {
            self.enqueue(slot);
        }
    }

    /// Queues a request.
    pub(super) fn enqueue(&mut self, slot: u32) {
        let request = &self.slots[slot as usize];
        let (client, resource) = (request.client, request.resource as usize);
        self.scheduler.request_arrives(self.now, client as usize, resource);
        self.resources[resource].queue.push(QueuedRequest { client, slot, arrived: self.now });
    }

    /// Continues the thread whose request ended.
    pub(super) fn request_ends(&mut self, slot: u32) {
        let request = &self.slots[slot as usize];
        let number = request.thread;
        if !request.is_background {
            return self.advance(number);
        }
        let thread = &mut self.threads[number as usize];
        if let Some((resource, time)) = thread.pending.take() {
            self.submit(slot, resource, time);
            return self.advance(number);
        }
        thread.free.push(slot);
        thread.outstanding -= 1;
        if thread.ended && thread.outstanding == 0 {
            self.clients[thread.client].threads -= 1;
        }
    }

    /// Finishes the client if all its threads have ended.
    pub(super) fn end_if_done(&mut self, client: usize) {
        let state = &mut self.clients[client];
        if state.threads == 0 && state.finish.is_none() {
            state.finish = Some(self.now);
            self.unfinished -= 1;
            self.scheduler.client_finishes(self.now, client);
            self.observer.finished(Time::from_nanos(self.now), client);
        }
    }
}
