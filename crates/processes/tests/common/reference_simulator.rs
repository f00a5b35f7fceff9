//! Reference simulator, slow and simple: keeps all history and computes each window anew from it, in exact rationals,
//! at every decision. Sequential threads, deterministic programs, bottleneck priorities only.

use evenhand_model::Rational;
use evenhand_processes::{Reading, Scenario, TieBreak};

/// (resource, server, client, thread, from, to)
pub(crate) type Served = (usize, usize, usize, usize, u64, u64);

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Idle(u64),
    Queued { resource: usize, since: u64, remaining: u64 },
    Served { resource: usize, remaining: u64 },
    Held { resource: usize, remaining: u64 },
    Done,
}

struct Thread {
    client: usize,
    number: usize,
    steps: Vec<(Option<usize>, u64)>,
    next: usize,
    state: State,
}

/// Presence of a client at a resource: from, to (`None` while it lasts).
struct Stay {
    client: usize,
    resource: usize,
    from: u64,
    to: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Priority {
    Finite(i128),
    Infinite,
}

pub(crate) struct ReferenceSimulator<'s> {
    scenario: &'s Scenario,
    weights: Vec<Rational>,
    now: u64,
    threads: Vec<Thread>,
    suspended: Vec<bool>,
    finished: Vec<Option<u64>>,
    stays: Vec<Stay>,
    served: Vec<Served>,
    /// (thread, from, to) of each server of each resource.
    running: Vec<Vec<Option<(usize, u64, u64)>>>,
    priorities: Vec<Priority>,
    bottlenecks: Vec<bool>,
    recalculated: Option<u64>,
}

fn nanos(n: u64) -> Rational {
    Rational::from(n)
}

/// Rounds to the nearest nanosecond, upwards within 2^-12 of a half.
fn round(x: Rational) -> i128 {
    let shifted = x + Rational::from_parts(1.into(), 2u8.into()) + Rational::from_parts(1.into(), 4096u16.into());
    shifted.floor().try_into().unwrap()
}

impl<'s> ReferenceSimulator<'s> {
    pub(crate) fn run(scenario: &'s Scenario) -> (Vec<Served>, Vec<Option<u64>>) {
        let mut threads = Vec::new();
        for (client, c) in scenario.clients().iter().enumerate() {
            for (number, program) in c.threads.iter().enumerate() {
                let mut steps = Vec::new();
                for phase in &program.phases {
                    for _ in 0..phase.iterations {
                        steps.extend(phase.steps.iter().map(|s| (scenario.resource(&s.resource), s.mean.nanos())));
                    }
                }
                let start = c.start.nanos();
                threads.push(Thread { client, number, steps, next: 0, state: State::Idle(start) });
            }
        }
        let n = scenario.clients().len();
        let mut simulator = ReferenceSimulator {
            scenario,
            weights: scenario.clients().iter().map(|c| c.entitlement.exact().clone()).collect(),
            now: 0,
            threads,
            suspended: vec![false; n],
            finished: vec![None; n],
            stays: Vec::new(),
            served: Vec::new(),
            running: scenario.resources().iter().map(|r| vec![None; r.servers as usize]).collect(),
            priorities: vec![Priority::Finite(0); n],
            bottlenecks: vec![false; scenario.resources().len()],
            recalculated: None,
        };
        let mut handled = None;
        while simulator.finished.contains(&None) {
            let services = simulator.running.iter().flatten().flatten().map(|r| r.2);
            let wakes =
                simulator.threads.iter().filter_map(|t| if let State::Idle(at) = t.state { Some(at) } else { None });
            let suspensions = scenario.clients().iter().flat_map(|c| &c.suspensions).flat_map(|(a, b)| [a, b]);
            let later = suspensions.map(|t| t.nanos()).filter(|t| handled.is_none_or(|passed| *t > passed));
            simulator.now = services.chain(wakes).chain(later).min().unwrap();
            let end = scenario.parameters().horizon.unwrap().nanos();
            if simulator.now > end {
                simulator.now = end;
                let cut: Vec<_> = simulator
                    .running
                    .iter()
                    .enumerate()
                    .flat_map(|(r, s)| {
                        s.iter().enumerate().filter_map(move |(k, x)| x.map(|(t, from, _)| (r, k, t, from)))
                    })
                    .collect();
                for (r, k, t, from) in cut {
                    simulator.served.push((r, k, simulator.threads[t].client, simulator.threads[t].number, from, end));
                }
                break;
            }
            handled = Some(simulator.now);
            simulator.instant();
        }
        (simulator.served, simulator.finished)
    }

    fn instant(&mut self) {
        let now = self.now;
        for resource in 0..self.running.len() {
            for server in 0..self.running[resource].len() {
                let Some((t, from, to)) = self.running[resource][server] else { continue };
                if to != now {
                    continue;
                }
                self.running[resource][server] = None;
                let client = self.threads[t].client;
                self.served.push((resource, server, client, self.threads[t].number, from, to));
                let State::Served { remaining, .. } = self.threads[t].state else { panic!() };
                let remaining = remaining - (to - from);
                if remaining == 0 {
                    self.step(t);
                    self.leave(client, resource);
                    self.finish(client);
                } else if self.suspended[client] {
                    self.threads[t].state = State::Held { resource, remaining };
                    self.leave(client, resource);
                } else {
                    self.threads[t].state = State::Queued { resource, since: now, remaining };
                }
            }
        }
        for t in 0..self.threads.len() {
            if self.threads[t].state == State::Idle(now) {
                self.step(t);
                self.finish(self.threads[t].client);
            }
        }
        for (client, c) in self.scenario.clients().iter().enumerate() {
            if c.suspensions.iter().any(|(_, until)| until.nanos() == now) {
                self.suspended[client] = false;
                for t in 0..self.threads.len() {
                    if let (State::Held { resource, remaining }, true) =
                        (self.threads[t].state, self.threads[t].client == client)
                    {
                        self.queue(t, resource, remaining);
                    }
                }
            }
            if c.suspensions.iter().any(|(from, _)| from.nanos() == now) {
                self.suspended[client] = true;
                for t in 0..self.threads.len() {
                    if let (State::Queued { resource, remaining, .. }, true) =
                        (self.threads[t].state, self.threads[t].client == client)
                    {
                        self.threads[t].state = State::Held { resource, remaining };
                        self.leave(client, resource);
                    }
                }
            }
        }
        for resource in 0..self.running.len() {
            while let Some(server) = self.running[resource].iter().position(Option::is_none) {
                let queued = |t: &Thread| match t.state {
                    State::Queued { resource: r, since, remaining } if r == resource => Some((since, remaining)),
                    _ => None,
                };
                if !self.threads.iter().any(|t| queued(t).is_some()) {
                    break;
                }
                if self.recalculated.is_none_or(|last| now - last >= self.scenario.parameters().recalculation().nanos())
                    && self.recalculated != Some(now)
                {
                    self.recalculate();
                }
                let waiting: Vec<(usize, u64, u64)> = (0..self.threads.len())
                    .filter_map(|t| queued(&self.threads[t]).map(|(since, remaining)| (t, since, remaining)))
                    .collect();
                let priority = |t: usize| self.priorities[self.threads[t].client];
                let most = waiting
                    .iter()
                    .map(|w| priority(w.0))
                    .fold(Priority::Finite(i128::MIN), |a, b| if b > a { b } else { a });
                let tied: Vec<_> = waiting.into_iter().filter(|w| priority(w.0) == most).collect();
                let by_lag = tied.len() > 1 && self.scenario.parameters().ties == TieBreak::Lag;
                let lag = |t: usize| if by_lag { self.lag(self.threads[t].client, resource) } else { 0 };
                let chosen = tied.into_iter().min_by_key(|(t, since, _)| (-lag(*t), *since, *t));
                let (t, _, remaining) = chosen.unwrap();

                let r = &self.scenario.resources()[resource];
                let time = if r.preemptive { remaining.min(r.quantum.nanos()) } else { remaining };
                self.threads[t].state = State::Served { resource, remaining };
                self.running[resource][server] = Some((t, now, now + time));
            }
        }
    }

    fn step(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        let Some((resource, time)) = thread.steps.get(thread.next).copied() else {
            thread.state = State::Done;
            return;
        };
        let time = time.max(1);
        thread.next += 1;
        match resource {
            None => thread.state = State::Idle(self.now + time),
            Some(resource) if self.suspended[thread.client] => thread.state = State::Held { resource, remaining: time },
            Some(resource) => self.queue(t, resource, time),
        }
    }

    fn queue(&mut self, t: usize, resource: usize, remaining: u64) {
        let client = self.threads[t].client;
        self.threads[t].state = State::Queued { resource, since: self.now, remaining };
        self.stays.push(Stay { client, resource, from: self.now, to: None });
        let contended = self.bottlenecks.contains(&true);
        let per_resource = contended && self.scenario.parameters().reading == Reading::PerResource;
        if self.recalculated.is_some()
            && self.priorities[client] == Priority::Infinite
            && (!per_resource || self.bottlenecks[resource])
        {
            self.priorities[client] = Priority::Finite(0);
        }
    }

    fn leave(&mut self, client: usize, resource: usize) {
        let mut stays = self.stays.iter_mut();
        stays.find(|s| s.client == client && s.resource == resource && s.to.is_none()).unwrap().to = Some(self.now);
    }

    fn finish(&mut self, client: usize) {
        let done = self.threads.iter().filter(|t| t.client == client).all(|t| t.state == State::Done);
        if done && self.finished[client].is_none() {
            self.finished[client] = Some(self.now);
        }
    }

    /// Returns the periods in which the client was active on the resource (or on any), with grace, merged.
    fn activity(&self, client: usize, resource: Option<usize>) -> Vec<(u64, u64)> {
        let grace = self.scenario.parameters().grace.nanos();
        let last = self.finished[client].unwrap_or(u64::MAX);
        let mine = self.stays.iter().filter(|s| s.client == client && resource.is_none_or(|r| s.resource == r));
        let mut all: Vec<(u64, u64)> =
            mine.map(|s| (s.from, s.to.map_or(u64::MAX, |to| to + grace).min(last))).collect();
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        merged
    }

    /// Returns what the client accrued since `since`.
    fn accrued(&self, client: usize, resource: Option<usize>, since: u64) -> Rational {
        let all: Vec<Vec<(u64, u64)>> = (0..self.weights.len()).map(|c| self.activity(c, resource)).collect();
        let ends = all.iter().flatten().flat_map(|(a, b)| [*a, *b]).filter(|t| *t > since && *t < self.now);
        let mut cuts: Vec<u64> = ends.chain([since, self.now]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let servers = resource.map_or(1, |r| self.scenario.resources()[r].servers);
        let mut sum = Rational::ZERO;
        for pair in cuts.windows(2) {
            let is_in = |c: usize| {
                let after = all[c].partition_point(|(a, _)| *a <= pair[0]);
                after > 0 && pair[1] <= all[c][after - 1].1
            };
            if is_in(client) {
                let total = (0..all.len()).filter(|c| is_in(*c)).fold(Rational::ZERO, |s, c| s + &self.weights[c]);
                sum += &self.weights[client] * Rational::from(servers) * nanos(pair[1] - pair[0]) / total;
            }
        }
        sum
    }

    fn is_active(&self, client: usize, resource: Option<usize>) -> bool {
        let present =
            self.stays.iter().any(|s| s.client == client && s.to.is_none() && resource.is_none_or(|r| s.resource == r));
        present || self.activity(client, resource).iter().any(|(a, b)| *a <= self.now && self.now < *b)
    }

    fn used(&self, client: Option<usize>, resource: usize, since: u64) -> u64 {
        let done = self.served.iter().map(|s| (s.0, s.2, s.4, s.5));
        let now = self.now;
        let running = self.running.iter().enumerate().flat_map(|(r, servers)| {
            servers.iter().flatten().map(move |(t, from, _)| (r, self.threads[*t].client, *from, now))
        });
        let mine = done.chain(running).filter(|(r, c, _, _)| *r == resource && client.is_none_or(|x| x == *c));
        mine.map(|(_, _, from, to)| to.saturating_sub(from.max(since))).sum()
    }

    fn lag(&self, client: usize, resource: usize) -> i128 {
        round(self.accrued(client, Some(resource), 0)) - i128::from(self.used(Some(client), resource, 0))
    }

    fn recalculate(&mut self) {
        self.recalculated = Some(self.now);
        let parameters = self.scenario.parameters();
        let window = parameters.window.nanos();
        let since = self.now.saturating_sub(window);
        for (r, settings) in self.scenario.resources().iter().enumerate() {
            let limit = &parameters.threshold * nanos(window) * Rational::from(settings.servers);
            self.bottlenecks[r] = nanos(self.used(None, r, since)) > limit;
        }
        let n = self.weights.len();
        let resources = self.scenario.resources().len();
        let mean = self.weights.iter().fold(Rational::ZERO, |s, w| s + w) / Rational::from(n as u64);
        let bottlenecks: Vec<usize> = (0..resources).filter(|r| self.bottlenecks[*r]).collect();
        for client in 0..n {
            let global = || self.accrued(client, None, since);
            let touches = |column, accrued: &Rational| self.is_active(client, column) || !accrued.is_zero();
            let gap = if bottlenecks.is_empty() {
                let a = global();
                let used: u64 = (0..resources).map(|r| self.used(Some(client), r, since)).sum();
                touches(None, &a).then(|| a - nanos(used))
            } else if parameters.reading == Reading::PerResource {
                let each = bottlenecks.iter().filter_map(|r| {
                    let a = self.accrued(client, Some(*r), since);
                    touches(Some(*r), &a).then(|| a - nanos(self.used(Some(client), *r, since)))
                });
                each.min()
            } else {
                let a = global();
                let least = bottlenecks.iter().map(|r| &a - nanos(self.used(Some(client), *r, since))).min().unwrap();
                let scaled = if parameters.reading == Reading::Normalized {
                    least * &mean / &self.weights[client]
                } else {
                    least
                };
                touches(None, &a).then_some(scaled)
            };
            self.priorities[client] = gap.map_or(Priority::Infinite, |g| Priority::Finite(round(g)));
        }
    }
}
