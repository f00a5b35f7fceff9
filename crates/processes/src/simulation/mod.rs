//! The simulator: events, queues, servers.
//!
//! At one instant first every service that ends and every wake-up is handled, then servers that are free
//! are given work, resource by resource in the order of their names. Time is in whole nanoseconds, and
//! nothing depends on anything but the scenario and the seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evenhand_model::{Rational, Span, Time};

use crate::recording::{NoObserver, Observer, Recording, Service};
use crate::scenario::Scenario;
use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView, scheduler_named};
use crate::thread::{Action, Thread};
use crate::usage_window::ResourceUsage;

/// What came out of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When each client finished; `None` if it had not when the run was cut off.
    pub finish: Vec<Option<Time>>,
    /// When the last one finished or the run was cut off.
    pub end: Time,
    /// What each client used of each resource: client after client.
    pub used: Vec<Vec<Span>>,
    /// How long requests of each client waited in queues, in sum.
    pub waited: Vec<Span>,
    /// How long each resource counted as a bottleneck.
    pub bottleneck: Vec<Span>,
    /// How often a server was given work.
    pub dispatches: u64,
    /// How often priorities were computed.
    pub recalculations: u64,
}

impl Scenario {
    /// Runs it with its own seed.
    pub fn run(&self) -> Outcome {
        self.observe(self.parameters().seed, &mut NoObserver)
    }

    /// Runs it with its own seed and keeps everything that `recording` asks for.
    pub fn record(&self, mut recording: Recording) -> (Outcome, Recording) {
        let outcome = self.observe(self.parameters().seed, &mut recording);
        recording.close(outcome.end);
        (outcome, recording)
    }

    /// Runs it with a seed before an observer.
    pub fn observe(&self, seed: u64, observer: &mut dyn Observer) -> Outcome {
        let registration = scheduler_named(&self.parameters().scheduler);
        // A scenario's scheduler was looked up when it was made.
        let run =
            registration.map_or(simulate::<crate::schedulers::bottleneck_priority::BottleneckPriority> as _, |r| r.run);
        run(self, seed, observer)
    }
}

const NEVER: u64 = u64::MAX;

/// Runs a scenario under a scheduler.
pub(crate) fn simulate<S: Scheduler>(scenario: &Scenario, seed: u64, observer: &mut dyn Observer) -> Outcome {
    let mut simulation = Simulation::<S>::new(scenario, seed, observer);
    simulation.run();
    simulation.outcome()
}

/// What happens at a time that was known before. At one instant in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A thread's delay is over, or it starts.
    Wake(u32),
    Resume(u32),
    Suspend(u32),
}

/// A request that can be under way: a thread has one, and one more for each it need not wait for.
struct Slot {
    thread: u32,
    client: u32,
    resource: u32,
    remaining: u64,
    is_background: bool,
}

struct Server {
    resource: u32,
    number: u32,
    slot: u32,
    since: u64,
}

struct Resource {
    first_server: usize,
    servers: usize,
    free: usize,
    /// `NEVER` if it serves to completion.
    quantum: u64,
    queue: Vec<QueuedRequest>,
    /// Busy for longer within the window, it is a bottleneck.
    limit: u64,
    bottleneck_since: u64,
    bottleneck_time: u64,
}

struct ClientState {
    threads: u32,
    suspended: bool,
    /// Requests withheld while suspended.
    held: Vec<u32>,
    finish: Option<u64>,
    waited: u64,
}

struct Simulation<'s, S> {
    scheduler: S,
    observer: &'s mut dyn Observer,
    window: u64,
    recalculation: u64,
    horizon: u64,
    now: u64,
    /// Of the last recalculation.
    recalculated: Option<u64>,
    threads: Vec<Thread>,
    slots: Vec<Slot>,
    clients: Vec<ClientState>,
    unfinished: usize,
    resources: Vec<Resource>,
    servers: Vec<Server>,
    /// When each server's service ends.
    ends: Vec<u64>,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    used: ResourceUsage,
    bottlenecks: Vec<bool>,
    dispatches: u64,
    recalculations: u64,
}

impl<'s, S: Scheduler> Simulation<'s, S> {
    fn new(scenario: &Scenario, seed: u64, observer: &'s mut dyn Observer) -> Simulation<'s, S> {
        let parameters = scenario.parameters();
        let window = parameters.window.nanos();
        let counts: Vec<u32> = scenario.resources().iter().map(|r| r.servers).collect();
        let weights = scenario.weights();
        let context = SchedulerContext {
            weights: &weights,
            servers: &counts,
            window,
            grace: parameters.grace.nanos(),
            reading: parameters.reading,
            ties: parameters.ties,
            seed,
        };
        let mut simulation = Simulation {
            scheduler: S::new(&context),
            observer,
            window,
            recalculation: parameters.recalculation().nanos(),
            horizon: scenario.end(),
            now: 0,
            recalculated: None,
            threads: Vec::new(),
            slots: Vec::new(),
            clients: Vec::new(),
            unfinished: scenario.clients().len(),
            resources: Vec::new(),
            servers: Vec::new(),
            ends: Vec::new(),
            timers: BinaryHeap::new(),
            used: ResourceUsage::new(weights.len(), &counts),
            bottlenecks: vec![false; counts.len()],
            dispatches: 0,
            recalculations: 0,
        };
        for settings in scenario.resources() {
            let number = simulation.resources.len() as u32;
            let busy = &parameters.threshold * Rational::from(window) * Rational::from(u64::from(settings.servers));
            simulation.resources.push(Resource {
                first_server: simulation.servers.len(),
                servers: settings.servers as usize,
                free: settings.servers as usize,
                quantum: if settings.preemptive { settings.quantum.nanos() } else { NEVER },
                queue: Vec::new(),
                // Whole nanoseconds exceed a limit if they exceed its whole part.
                limit: busy.floor().try_into().unwrap_or(NEVER),
                bottleneck_since: 0,
                bottleneck_time: 0,
            });
            let servers = (0..settings.servers).map(|s| Server { resource: number, number: s, slot: 0, since: 0 });
            simulation.servers.extend(servers);
        }
        simulation.ends = vec![NEVER; simulation.servers.len()];
        for client in 0..weights.len() {
            simulation.add_client(scenario, client, seed);
        }
        simulation
    }

    fn add_client(&mut self, scenario: &Scenario, client: usize, seed: u64) {
        let settings = &scenario.clients()[client];
        let depth = settings.asynchronous.as_ref().map_or(0, |a| a.depth);
        for (thread, program) in settings.threads.iter().enumerate() {
            let number = self.threads.len() as u32;
            let mut thread = Thread::new(scenario, client, thread, program, seed);
            thread.slot = self.slots.len() as u32;
            // The last first: the smallest is taken first.
            thread.free = (1..=depth).rev().map(|extra| thread.slot + extra).collect();
            self.slots.extend((0..=depth).map(|extra| Slot {
                thread: number,
                client: client as u32,
                resource: 0,
                remaining: 0,
                is_background: extra > 0,
            }));
            self.threads.push(thread);
            self.timers.push(Reverse((settings.start.nanos(), Timer::Wake(number))));
        }
        for (from, until) in &settings.suspensions {
            self.timers.push(Reverse((from.nanos(), Timer::Suspend(client as u32))));
            self.timers.push(Reverse((until.nanos(), Timer::Resume(client as u32))));
        }
        let threads = settings.threads.len() as u32;
        self.clients.push(ClientState { threads, suspended: false, held: Vec::new(), finish: None, waited: 0 });
    }

    fn run(&mut self) {
        while self.unfinished > 0 {
            let end = self.ends.iter().fold(NEVER, |least, end| if *end < least { *end } else { least });
            let timer = self.timers.peek().map_or(NEVER, |Reverse((at, _))| *at);
            let next = end.min(timer);
            if next > self.horizon {
                self.cut_off();
                return;
            }
            self.now = next;
            if end == next {
                for server in 0..self.ends.len() {
                    if self.ends[server] == next {
                        self.service_ends(server);
                    }
                }
            }
            while let Some(Reverse((_, timer))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at == next) {
                self.timers.pop();
                self.ring(timer);
            }
            self.dispatch();
        }
    }

    /// The horizon is reached: what runs is used up to it.
    fn cut_off(&mut self) {
        self.now = self.horizon;
        for server in 0..self.ends.len() {
            if self.ends[server] != NEVER {
                self.count_service(server);
            }
        }
        for resource in &mut self.resources {
            for waiting in &resource.queue {
                self.clients[waiting.client as usize].waited += self.now - waiting.arrived;
            }
        }
    }

    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::Wake(thread) => {
                self.advance(thread);
                self.end_if_done(self.threads[thread as usize].client);
            }
            Timer::Suspend(client) => {
                self.clients[client as usize].suspended = true;
                for resource in 0..self.resources.len() {
                    self.withdraw(client, resource);
                }
            }
            Timer::Resume(client) => {
                let state = &mut self.clients[client as usize];
                state.suspended = false;
                let mut held = std::mem::take(&mut state.held);
                held.sort_unstable();
                for slot in held {
                    self.enqueue(slot);
                }
            }
        }
    }

    /// A suspended client's requests leave the queue.
    fn withdraw(&mut self, client: u32, resource: usize) {
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

    /// Takes the thread's next steps, up to one that it must wait for.
    fn advance(&mut self, number: u32) {
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

    fn submit(&mut self, slot: u32, resource: u32, time: u64) {
        let request = &mut self.slots[slot as usize];
        (request.resource, request.remaining) = (resource, time);
        let client = &mut self.clients[request.client as usize];
        if client.suspended {
            client.held.push(slot);
        } else {
            self.enqueue(slot);
        }
    }

    fn enqueue(&mut self, slot: u32) {
        let request = &self.slots[slot as usize];
        let (client, resource) = (request.client, request.resource as usize);
        self.scheduler.request_arrives(self.now, client as usize, resource);
        self.resources[resource].queue.push(QueuedRequest { client, slot, arrived: self.now });
    }

    /// Counts what the server's service used since it began.
    #[inline]
    fn count_service(&mut self, number: usize) {
        let server = &self.servers[number];
        let slot = &self.slots[server.slot as usize];
        self.used.end(self.now, number);
        self.observer.service(&Service {
            resource: server.resource,
            server: server.number,
            client: slot.client,
            thread: self.threads[slot.thread as usize].thread,
            from: Time::from_nanos(server.since),
            to: Time::from_nanos(self.now),
        });
    }

    fn service_ends(&mut self, number: usize) {
        self.count_service(number);
        self.ends[number] = NEVER;
        let server = &self.servers[number];
        let (slot, resource) = (server.slot, server.resource as usize);
        let time = self.now - server.since;
        self.resources[resource].free += 1;
        let request = &mut self.slots[slot as usize];
        let client = request.client as usize;
        request.remaining -= time;
        self.scheduler.request_served(client, resource, time);
        if request.remaining == 0 {
            self.request_ends(slot);
            self.scheduler.request_leaves(self.now, client, resource);
            self.end_if_done(client);
        } else if self.clients[client].suspended {
            self.clients[client].held.push(slot);
            self.scheduler.request_leaves(self.now, client, resource);
        } else {
            let waiting = QueuedRequest { client: client as u32, slot, arrived: self.now };
            self.resources[resource].queue.push(waiting);
        }
    }

    /// The thread goes on.
    fn request_ends(&mut self, slot: u32) {
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

    fn end_if_done(&mut self, client: usize) {
        let state = &mut self.clients[client];
        if state.threads == 0 && state.finish.is_none() {
            state.finish = Some(self.now);
            self.unfinished -= 1;
            self.scheduler.client_finishes(self.now, client);
            self.observer.finished(Time::from_nanos(self.now), client);
        }
    }

    #[inline]
    fn dispatch(&mut self) {
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

    fn recalculate(&mut self) {
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

    /// Gives a free server of the resource to the next in its queue.
    #[inline]
    fn start(&mut self, number: usize) {
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
        self.used.begin(self.now, server, waiting.client as usize);
        self.clients[waiting.client as usize].waited += self.now - waiting.arrived;
        self.dispatches += 1;
    }

    fn outcome(self) -> Outcome {
        let span = Span::from_nanos;
        let used = |client| {
            let of = |resource| span(self.used.ever(self.now, client, resource));
            (0..self.resources.len()).map(of).collect()
        };
        let bottleneck = |(number, resource): (usize, &Resource)| {
            let open = if self.bottlenecks[number] { self.now - resource.bottleneck_since } else { 0 };
            span(resource.bottleneck_time + open)
        };
        Outcome {
            finish: self.clients.iter().map(|c| c.finish.map(Time::from_nanos)).collect(),
            end: Time::from_nanos(self.now),
            used: (0..self.clients.len()).map(used).collect(),
            waited: self.clients.iter().map(|c| span(c.waited)).collect(),
            bottleneck: self.resources.iter().enumerate().map(bottleneck).collect(),
            dispatches: self.dispatches,
            recalculations: self.recalculations,
        }
    }
}
