//! Rings in the simulated network.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use evenhand_protocol::exchange::ring::{Input, Message, Output, Ring, RingSettings, RoundSums, ViewId};
use evenhand_protocol::exchange::{Ageing, Record, RecordLimits, Totals};

use crate::simulated_network::{Network, Scenario, Step, contributors, name};

pub const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub enum Event {
    Deliver { to: usize, from: usize, message: Arc<Message> },
    Tick { node: usize, life: u64 },
    Publish { node: usize, life: u64 },
    Step(Arc<Step>),
}

/// The messages and bytes that a node sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub tokens: u64,
    pub others: u64,
    pub bytes: u64,
}

pub struct Rings {
    pub network: Network<Event>,
    pub nodes: Vec<Option<Ring>>,
    lives: Vec<u64>,
    sequences: Vec<u64>,
    ticks: Vec<Duration>,
    make: fn(usize, u64, u64) -> Record,
    settings: RingSettings,
    /// Every result that any node accepted, by its round.
    pub results: HashMap<(ViewId, u64), RoundSums>,
    pub traffic: Vec<Traffic>,
    /// Whether to count bytes, which takes time.
    pub count_bytes: bool,
    pub check: bool,
    /// How far each node's clock is ahead of the network's.
    clocks: Vec<Duration>,
    /// What waits for each stopped node.
    stopped: Vec<Option<Vec<Event>>>,
}

impl Rings {
    pub fn new(scenario: &Scenario, make: fn(usize, u64, u64) -> Record) -> Rings {
        let n = scenario.nodes;
        // Either all nodes are seeds, or only the first two.
        let seeds =
            if scenario.seed.is_multiple_of(2) { (0..n.min(50)).map(name).collect() } else { vec![name(0), name(1)] };
        let any = RecordLimits {
            supply: None,
            terms: Arc::new(|_| vec![evenhand_protocol::exchange::Fixed::from_units(i128::MAX)]),
            users: 20_000,
        };
        let mut network = Network::new(scenario.seed, n);
        for (at, step) in &scenario.steps {
            network.at(Duration::from_secs_f64(*at), Event::Step(Arc::new(step.clone())));
        }
        Rings {
            network,
            nodes: (0..n).map(|_| None).collect(),
            lives: vec![0; n],
            sequences: vec![0; n],
            ticks: vec![Duration::MAX; n],
            make,
            settings: RingSettings::new(Ageing::new(INTERVAL), any, seeds),
            results: HashMap::new(),
            traffic: vec![Traffic::default(); n],
            count_bytes: false,
            check: true,
            clocks: vec![Duration::ZERO; n],
            stopped: vec![None; n],
        }
    }

    pub fn run(&mut self, until: Duration) {
        while let Some(event) = self.network.next(until) {
            let node = match &event {
                Event::Deliver { to, .. } => Some(*to),
                Event::Tick { node, .. } | Event::Publish { node, .. } => Some(*node),
                Event::Step(_) => None,
            };
            if let Some(waiting) = node.and_then(|node| self.stopped[node].as_mut()) {
                waiting.push(event);
                continue;
            }
            match event {
                Event::Step(step) => self.apply(&step),
                Event::Deliver { to, from, message } => {
                    let message = Arc::unwrap_or_clone(message);
                    self.step(to, Input::Message { from: name(from), message });
                }
                Event::Tick { node, life } if life == self.lives[node] => {
                    self.ticks[node] = Duration::MAX;
                    self.step(node, Input::Tick);
                }
                Event::Publish { node, life } if life == self.lives[node] && self.nodes[node].is_some() => {
                    self.sequences[node] += 1;
                    let own = (self.make)(node, life, self.sequences[node]);
                    self.step(node, Input::LocalRecord(own));
                    self.network.at(self.network.now + INTERVAL, Event::Publish { node, life });
                }
                Event::Tick { .. } | Event::Publish { .. } => {}
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        if self.network.apply(step) {
            return;
        }
        match step {
            Step::Crash(nodes) => nodes.iter().for_each(|i| self.nodes[*i] = None),
            Step::Start(nodes) => {
                for &i in nodes {
                    self.lives[i] += 1;
                    self.sequences[i] = 0;
                    let life = self.lives[i];
                    self.nodes[i] = Some(Ring::new(self.settings.clone(), &name(i), life, &name(i)));
                    self.network.at(self.network.now, Event::Publish { node: i, life });
                    self.ticks[i] = self.network.now;
                    self.network.at(self.network.now, Event::Tick { node: i, life });
                }
            }
            Step::Stop(nodes) => nodes.iter().for_each(|i| self.stopped[*i] = Some(Vec::new())),
            Step::Continue(nodes) => {
                for &i in nodes {
                    let waiting = self.stopped[i].take().unwrap_or_default();
                    waiting.into_iter().for_each(|event| self.network.at(self.network.now, event));
                }
            }
            Step::Clock(node, ahead) => self.clocks[*node] = Duration::from_secs(*ahead),
            _ => {}
        }
    }

    /// Returns what a node reports, at its own time.
    pub fn totals(&self, node: usize) -> Option<Totals> {
        Some(self.nodes[node].as_ref()?.totals(self.network.now + self.clocks[node]))
    }

    fn step(&mut self, node: usize, input: Input) {
        let now = self.network.now + self.clocks[node];
        let Some(ring) = &mut self.nodes[node] else { return };
        for output in ring.step(now, input) {
            match output {
                Output::Send { to, message } => {
                    let traffic = &mut self.traffic[node];
                    match &message {
                        Message::Token(_) => traffic.tokens += 1,
                        _ => traffic.others += 1,
                    }
                    if self.count_bytes {
                        let bytes = message.encode();
                        traffic.bytes += bytes.len() as u64;
                        assert_eq!(Message::decode(&bytes).unwrap(), message);
                    }
                    let to: usize = to[1..].parse().unwrap();
                    let event = Event::Deliver { to, from: node, message: Arc::new(message) };
                    self.network.send(node, to, &event);
                }
                Output::Completed if self.check => {
                    let sums = ring.result().unwrap();
                    match self.results.get(&(sums.view.clone(), sums.round)) {
                        // All nodes have the same result of a round.
                        Some(known) => assert_eq!(known, sums),
                        None => {
                            let found = contributors(&sums.supply, &sums.largest, &sums.users);
                            assert_eq!(found.len() as u64, sums.count);
                            for (i, (life, sequence)) in found {
                                assert!(life <= self.lives[i]);
                                assert!(life < self.lives[i] || sequence <= self.sequences[i]);
                            }
                            self.results.insert((sums.view.clone(), sums.round), sums.clone());
                        }
                    }
                }
                Output::Completed => {}
            }
        }
        let next = ring.next_tick().max(now + Duration::from_micros(1)).saturating_sub(self.clocks[node]);
        if next < self.ticks[node] {
            self.ticks[node] = next;
            self.network.at(next, Event::Tick { node, life: self.lives[node] });
        }
    }

    pub fn alive(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|i| self.nodes[*i].is_some()).collect()
    }

    /// Returns whether all live nodes are in one view of exactly these nodes, with a result of all of them from records
    /// of the last three intervals.
    pub fn settled(&self) -> bool {
        let alive = self.alive();
        let Some(first) = alive.first().and_then(|i| self.nodes[*i].as_ref()) else { return true };
        alive.iter().all(|i| {
            let Some(ring) = &self.nodes[*i] else { return false };
            let same = ring.view() == first.view() && ring.view().members.len() == alive.len();
            let Some(sums) = ring.result().filter(|_| same) else { return false };
            let found: BTreeMap<usize, (u64, u64)> = contributors(&sums.supply, &sums.largest, &sums.users);
            found.len() == alive.len()
                && found
                    .iter()
                    .all(|(i, (life, sequence))| *life == self.lives[*i] && sequence + 3 >= self.sequences[*i])
        })
    }

    /// Returns every node's view, for failure messages.
    pub fn views(&self) -> String {
        let line = |i: &usize| {
            let ring = self.nodes[*i].as_ref()?;
            let members: Vec<&str> = ring.view().members.iter().map(|member| member.node.as_str()).collect();
            Some(format!(
                "{} life {}: {} {members:?}, result of {:?}",
                name(*i),
                self.lives[*i],
                ring.view().id,
                ring.result().map(|sums| (sums.view.to_string(), sums.round, sums.count, &sums.missing))
            ))
        };
        self.alive().iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the time until it is settled, in steps of a quarter of an interval.
    pub fn settle(&mut self, limit: Duration) -> Option<Duration> {
        let begun = self.network.now;
        while self.network.now <= begun + limit {
            if self.settled() {
                return Some(self.network.now - begun);
            }
            let until = self.network.now + INTERVAL / 4;
            self.run(until);
        }
        None
    }
}
