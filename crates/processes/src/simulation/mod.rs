//! The simulator: events, queues, servers.
//!
//! At one instant, all services that end and all timers are handled first; then free servers are given work, resource
//! by resource in the order of their names. Time is in whole nanoseconds, and a run is a function of the scenario and
//! the seed.

mod dispatch;
mod requests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evenhand_model::{Rational, Span, Time};

use crate::recording::{NoObserver, Observer, Recording, Service};
use crate::scenario::Scenario;
use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, scheduler_named};
use crate::thread::Thread;
use crate::usage_window::ResourceUsage;

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Finish time of each client; `None` if it had not finished when the run was cut off.
    pub finish: Vec<Option<Time>>,
    /// Time at which the last client finished or the run was cut off.
    pub end: Time,
    /// Consumption of each resource by each client: `used[client][resource]`.
    pub used: Vec<Vec<Span>>,
    /// Total time that requests of each client waited in queues.
    pub waited: Vec<Span>,
    /// Time for which each resource counted as a bottleneck.
    pub bottleneck: Vec<Span>,
    /// Number of times a server was given work.
    pub dispatches: u64,
    /// Number of times priorities were recalculated.
    pub recalculations: u64,
}

impl Scenario {
    /// Runs the scenario with its own seed.
    pub fn run(&self) -> Outcome {
        self.observe(self.parameters().seed, &mut NoObserver)
    }

    /// Runs the scenario with its own seed and records what `recording` requests.
    pub fn record(&self, mut recording: Recording) -> (Outcome, Recording) {
        let outcome = self.observe(self.parameters().seed, &mut recording);
        recording.close(outcome.end);
        (outcome, recording)
    }

    /// Runs the scenario with a seed and an observer. O(servers + log timers) per event, plus the scheduler's choice.
    pub fn observe(&self, seed: u64, observer: &mut dyn Observer) -> Outcome {
        let registration = scheduler_named(&self.parameters().scheduler);
        // The name was checked when the scenario was created.
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

/// Event whose time is known in advance. Events at one instant are handled in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A thread starts, or its delay is over.
    Wake(u32),
    Resume(u32),
    Suspend(u32),
}

/// Request that can be outstanding: each thread has one, and one more for each asynchronous request.
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
    /// Busy time within the window beyond which it is a bottleneck.
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
    /// Time of the last recalculation.
    recalculated: Option<u64>,
    threads: Vec<Thread>,
    slots: Vec<Slot>,
    clients: Vec<ClientState>,
    unfinished: usize,
    resources: Vec<Resource>,
    servers: Vec<Server>,
    /// End of each server's service.
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
                // A whole number of nanoseconds exceeds a limit if it exceeds the limit's whole part.
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
            // In descending order: the smallest is taken first, from the end.
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
            let end = self.ends.iter().fold(NEVER, |first, end| if *end < first { *end } else { first });
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
                self.handle_timer(timer);
            }
            self.dispatch();
        }
    }

    /// Ends the run at the horizon; running services count up to it.
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

    fn handle_timer(&mut self, timer: Timer) {
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

    /// Counts the server's service since it started.
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
