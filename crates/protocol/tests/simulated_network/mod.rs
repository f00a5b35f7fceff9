//! A simulated network: discrete events, a seed, and faults as data.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use evenhand_model::random::Stream;
use evenhand_protocol::exchange::{Fixed, Record, Totals, UserSums};

/// An external event.
#[derive(Clone, Debug)]
pub enum Step {
    /// These nodes crash.
    Crash(Vec<usize>),
    /// These nodes start or restart, in a new incarnation.
    Start(Vec<usize>),
    /// Only nodes of the same group can communicate.
    Partition(Vec<usize>),
    /// All nodes can communicate.
    Heal,
    /// The network has this quality from now on.
    Quality(Quality),
    /// These nodes stop (SIGSTOP); what they receive waits for them.
    Stop(Vec<usize>),
    /// They continue, with what has waited.
    Continue(Vec<usize>),
    /// The clock of a node is this much ahead of the network's from now on, in seconds.
    Clock(usize, u64),
}

/// The quality of the network.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// The fraction of messages that are lost.
    pub loss: f64,
    /// The fraction of messages that are duplicated.
    pub duplicates: f64,
    /// The minimum and mean delay in seconds; the excess is exponential, so that messages overtake each other.
    pub delay: (f64, f64),
    /// The fraction of messages delayed by further seconds.
    pub late: f64,
}

pub const CALM: Quality = Quality { loss: 0.0, duplicates: 0.0, delay: (0.0005, 0.0005), late: 0.0 };

/// A cloud and its external events.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub nodes: usize,
    /// Events with their times in seconds.
    pub steps: Vec<(f64, Step)>,
}

impl Scenario {
    /// Returns random faults for 20 s, after which the network is whole and calm; node 0 is alive at the end.
    pub fn random(seed: u64, max_nodes: usize) -> Scenario {
        let mut stream = Stream::new(seed, "scenario", 0);
        let nodes = 3 + stream.below(max_nodes as u64 - 2) as usize;
        let mut steps = vec![(0.0, Step::Start((0..nodes).filter(|i| *i == 0 || stream.uniform() < 0.8).collect()))];
        let mut up: Vec<usize> = match &steps[0].1 {
            Step::Start(up) => up.clone(),
            _ => Vec::new(),
        };
        for _ in 0..3 + stream.below(8) {
            let at = 20.0 * stream.uniform();
            let some = |stream: &mut Stream| (0..nodes).filter(|_| stream.uniform() < 0.3).collect::<Vec<usize>>();
            let step = match stream.below(6) {
                0 => Step::Crash(some(&mut stream)),
                // The node with the smallest name usually leads.
                1 => Step::Crash(vec![0]),
                2 => Step::Start(some(&mut stream)),
                3 => Step::Partition((0..nodes).map(|_| stream.below(2) as usize).collect()),
                4 => Step::Heal,
                _ => Step::Quality(Quality {
                    loss: 0.3 * stream.uniform(),
                    duplicates: 0.2 * stream.uniform(),
                    delay: (0.0005, 0.02 * stream.uniform()),
                    late: 0.1 * stream.uniform(),
                }),
            };
            steps.push((at, step));
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, step) in &steps {
            match step {
                Step::Crash(down) => up.retain(|i| !down.contains(i)),
                Step::Start(more) => up.extend(more),
                _ => {}
            }
        }
        steps.extend([(20.0, Step::Heal), (20.0, Step::Quality(CALM))]);
        if !up.contains(&0) {
            steps.push((20.0, Step::Start(vec![0])));
        }
        Scenario { seed, nodes, steps }
    }
}

/// Messages in transit and other events. Simultaneous events occur in the order of their insertion.
pub struct Network<E> {
    queue: BinaryHeap<Due<E>>,
    count: u64,
    stream: Stream,
    quality: Quality,
    groups: Vec<usize>,
    pub now: Duration,
}

struct Due<E>(Duration, u64, E);

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Due<E>) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Due<E>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Due<E>) -> std::cmp::Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

impl<E: Clone> Network<E> {
    pub fn new(seed: u64, nodes: usize) -> Network<E> {
        Network {
            queue: BinaryHeap::new(),
            count: 0,
            stream: Stream::new(seed, "network", 0),
            quality: CALM,
            groups: vec![0; nodes],
            now: Duration::ZERO,
        }
    }

    pub fn at(&mut self, at: Duration, event: E) {
        self.count += 1;
        self.queue.push(Due(at.max(self.now), self.count, event));
    }

    /// Sends a message, which arrives as `event`, or is lost.
    pub fn send(&mut self, from: usize, to: usize, event: &E) {
        let copies = 1 + usize::from(self.stream.uniform() < self.quality.duplicates);
        for _ in 0..copies {
            if self.groups[from] != self.groups[to] || self.stream.uniform() < self.quality.loss {
                continue;
            }
            let (min, mean) = self.quality.delay;
            let mut delay = min + self.stream.exponential(mean);
            if self.stream.uniform() < self.quality.late {
                delay += 3.0 * self.stream.uniform();
            }
            self.at(self.now + Duration::from_secs_f64(delay), event.clone());
        }
    }

    pub fn next(&mut self, until: Duration) -> Option<E> {
        if self.queue.peek().is_none_or(|due| due.0 > until) {
            self.now = until;
            return None;
        }
        self.queue.pop().map(|Due(at, _, event)| {
            self.now = at;
            event
        })
    }

    /// Applies an external event; returns whether it concerns the network.
    pub fn apply(&mut self, step: &Step) -> bool {
        match step {
            Step::Partition(groups) => self.groups.clone_from(groups),
            Step::Heal => self.groups.fill(0),
            Step::Quality(quality) => self.quality = *quality,
            Step::Crash(_) | Step::Start(_) | Step::Stop(_) | Step::Continue(_) | Step::Clock(..) => return false,
        }
        true
    }

    pub fn random(&mut self, below: usize) -> usize {
        self.stream.below(below as u64) as usize
    }
}

/// Returns the number of random schedules: 1,000, or the value of `EVENHAND_SCHEDULES`.
pub fn schedules() -> u64 {
    std::env::var("EVENHAND_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

pub fn name(node: usize) -> String {
    format!("n{node:04}")
}

pub fn number(units: u64) -> Fixed {
    Fixed::from_units(i128::from(units) << 40)
}

/// Returns a record that can be identified in any sum: with a user of its own, and a part of a user that all nodes
/// have.
pub fn record(node: usize, incarnation: u64, sequence: u64) -> Record {
    let sums = |term| UserSums { terms: vec![term], workloads: 1 };
    let mut users = BTreeMap::from([("shared".to_owned(), sums(share(node, incarnation, sequence)))]);
    users.insert(name(node), sums(number(incarnation * 1_000_000 + sequence)));
    Record { node: name(node), incarnation, sequence, digest: 7, supply: vec![number(node as u64 + 1)], users }
}

fn share(node: usize, incarnation: u64, sequence: u64) -> Fixed {
    Fixed::from_units(i128::from((node as u64 + 1) * (incarnation * 1_000_000 + sequence)))
}

/// Returns the nodes in a sum, with the versions of their records. Panics unless it is exactly the sum of those.
pub fn contributors(
    supply: &[Fixed],
    largest: &[Fixed],
    users: &BTreeMap<String, UserSums>,
) -> BTreeMap<usize, (u64, u64)> {
    let mut found = BTreeMap::new();
    for (user, sums) in users {
        if let Some(node) = user.strip_prefix('n') {
            assert_eq!(sums.workloads, 1, "{user} is counted twice");
            let version = u64::try_from(sums.terms[0].units() >> 40).unwrap();
            found.insert(node.parse().unwrap(), (version / 1_000_000, version % 1_000_000));
        }
    }
    let direct: Fixed = found.keys().map(|i| number(*i as u64 + 1)).sum();
    assert_eq!(supply.first().copied().unwrap_or_default(), direct);
    let max = found.keys().next_back().map_or(Fixed::ZERO, |i| number(*i as u64 + 1));
    assert_eq!(largest.first().copied().unwrap_or_default(), max);
    let direct: Fixed = found.iter().map(|(i, (incarnation, sequence))| share(*i, *incarnation, *sequence)).sum();
    if let Some(shared) = users.get("shared") {
        assert_eq!((shared.terms[0], shared.workloads as usize), (direct, found.len()));
    } else {
        assert!(found.is_empty());
    }
    found
}

pub fn contributors_of(totals: &Totals) -> BTreeMap<usize, (u64, u64)> {
    contributors(&totals.supply, &totals.largest, &totals.users)
}
