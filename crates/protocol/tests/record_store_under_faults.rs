//! The record store under faults, with relayed records: in each interval each node exchanges versions with two others, and
//! they send each other newer records.
#![allow(clippy::unwrap_used)]

mod simulated_network;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenhand_protocol::exchange::{Ageing, Fixed, NodeState, Record, RecordLimits, RecordStore, Totals};
use simulated_network::{Network, Scenario, Step, name, number, record};

const INTERVAL: Duration = Duration::from_secs(1);
/// Gossip is faster than publishing, as in the real protocol.
const GOSSIP: Duration = Duration::from_millis(250);

type Versions = BTreeMap<String, (u64, u64)>;

#[derive(Clone)]
enum Event {
    Known { to: usize, from: usize, versions: Arc<Versions> },
    News { to: usize, from: usize, records: Arc<Vec<(Record, Duration)>>, versions: Option<Arc<Versions>> },
    Gossip { node: usize, life: u64 },
    Publish { node: usize, life: u64 },
    Step(Arc<Step>),
}

struct RecordStores {
    network: Network<Event>,
    stores: Vec<Option<RecordStore>>,
    lives: Vec<u64>,
    sequences: Vec<u64>,
    seeds: Vec<usize>,
}

impl RecordStores {
    fn new(scenario: &Scenario) -> RecordStores {
        let n = scenario.nodes;
        let mut network = Network::new(scenario.seed, n);
        for (at, step) in &scenario.steps {
            network.at(Duration::from_secs_f64(*at), Event::Step(Arc::new(step.clone())));
        }
        RecordStores {
            network,
            stores: (0..n).map(|_| None).collect(),
            lives: vec![0; n],
            sequences: vec![0; n],
            seeds: if scenario.seed.is_multiple_of(2) { (0..n).collect() } else { vec![0, 1] },
        }
    }

    fn run(&mut self, until: Duration) {
        while let Some(event) = self.network.next(until) {
            let now = self.network.now;
            match event {
                Event::Step(step) if self.network.apply(&step) => {}
                Event::Step(step) => self.apply(&step),
                Event::Publish { node, life } if life == self.lives[node] => {
                    let Some(store) = &mut self.stores[node] else { continue };
                    self.sequences[node] += 1;
                    store.publish(now, record(node, life, self.sequences[node]));
                    let totals = store.totals(now);
                    check(now, store, &totals);
                    self.network.at(now + INTERVAL, Event::Publish { node, life });
                }
                Event::Gossip { node, life } if life == self.lives[node] => {
                    let Some(store) = &self.stores[node] else { continue };
                    let mut peers: Vec<usize> = store.records(now).map(|(r, _)| r.node[1..].parse().unwrap()).collect();
                    peers.extend(&self.seeds);
                    let versions = Arc::new(versions(now, store));
                    for _ in 0..2 {
                        let to = peers[self.network.random(peers.len())];
                        let event = Event::Known { to, from: node, versions: Arc::clone(&versions) };
                        self.network.send(node, to, &event);
                    }
                    self.network.at(now + GOSSIP, Event::Gossip { node, life });
                }
                Event::Known { to, from, versions: theirs } => {
                    let Some(store) = &self.stores[to] else { continue };
                    let (records, versions) = (newer(now, store, &theirs), Some(Arc::new(versions(now, store))));
                    self.network.send(to, from, &Event::News { to: from, from: to, records, versions });
                }
                Event::News { to, from, records, versions } => {
                    let Some(store) = &mut self.stores[to] else { continue };
                    records.iter().for_each(|(record, age)| {
                        store.receive_aged(now, record.clone(), *age);
                    });
                    if let Some(theirs) = versions {
                        let records = newer(now, store, &theirs);
                        self.network.send(to, from, &Event::News { to: from, from: to, records, versions: None });
                    }
                }
                Event::Gossip { .. } | Event::Publish { .. } => {}
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Crash(nodes) => nodes.iter().for_each(|i| self.stores[*i] = None),
            Step::Start(nodes) => {
                for &i in nodes {
                    self.lives[i] += 1;
                    self.sequences[i] = 0;
                    let any: evenhand_protocol::exchange::TermBounds = Arc::new(|_| vec![Fixed::from_units(i128::MAX)]);
                    let limits = RecordLimits { supply: None, terms: any, users: 20_000 };
                    self.stores[i] = Some(RecordStore::new(Ageing::new(INTERVAL), limits, &name(i)));
                    self.network.at(self.network.now, Event::Publish { node: i, life: self.lives[i] });
                    self.network.at(self.network.now, Event::Gossip { node: i, life: self.lives[i] });
                }
            }
            _ => {}
        }
    }

    /// Returns whether every live node counts exactly the live nodes, in their present incarnation and in full.
    fn settled(&mut self) -> bool {
        let now = self.network.now;
        let alive: Vec<usize> = (0..self.stores.len()).filter(|i| self.stores[*i].is_some()).collect();
        let lives = &self.lives;
        self.stores.iter_mut().flatten().all(|store| {
            let totals = store.totals(now);
            check(now, store, &totals);
            let counted = |state: &NodeState| !matches!(state, NodeState::Lost);
            let counts: Vec<&str> =
                totals.nodes.iter().filter(|s| counted(&s.state)).map(|s| s.name.as_str()).collect();
            counts == alive.iter().map(|i| name(*i)).collect::<Vec<_>>()
                && alive.iter().all(|i| totals.state(&name(*i)) == Some(&NodeState::Fresh))
                && simulated_network::contributors_of(&totals).iter().all(|(i, (life, _))| *life == lives[*i])
        })
    }
}

fn versions(now: Duration, store: &RecordStore) -> Versions {
    store.records(now).map(|(record, _)| (record.node.clone(), record.version())).collect()
}

fn newer(now: Duration, store: &RecordStore, theirs: &Versions) -> Arc<Vec<(Record, Duration)>> {
    let newer = |record: &Record| theirs.get(&record.node).is_none_or(|known| *known < record.version());
    Arc::new(store.records(now).filter(|(r, _)| newer(r)).map(|(r, age)| (r.clone(), age)).collect())
}

/// Checks totals against a direct sum: of each node that counts one record, aged.
fn check(now: Duration, store: &RecordStore, totals: &Totals) {
    let mut supply = Fixed::ZERO;
    let (mut shared, mut workloads) = (Fixed::ZERO, 0);
    for (record, _) in store.records(now) {
        let halvings = match totals.state(&record.node) {
            Some(NodeState::Fresh) => 0,
            Some(NodeState::Ageing { halvings }) => *halvings,
            other => panic!("{} is {other:?}", record.node),
        };
        let node: u64 = record.node[1..].parse().unwrap();
        supply += number(node + 1).halved(halvings);
        shared += record.users["shared"].terms[0].halved(halvings);
        workloads += 1;
        assert_eq!(totals.users[&record.node].workloads, 1);
    }
    assert_eq!(totals.supply[0], supply);
    assert_eq!((totals.users["shared"].terms[0], totals.users["shared"].workloads), (shared, workloads));
    assert_eq!(totals.users.len(), workloads as usize + 1);
}

#[test]
fn nodes_agree_after_each_of_a_thousand_random_schedules() {
    let mut longest = Duration::ZERO;
    for seed in 0..simulated_network::schedules() {
        let scenario = Scenario::random(seed, 9);
        let mut stores = RecordStores::new(&scenario);
        stores.run(Duration::from_secs(25));
        // Stopped nodes are lost after 3 intervals and 8 halvings; two more for nodes that receive late records.
        let limit = Duration::from_secs(20 + 3 + 8 + 2);
        while !stores.settled() {
            assert!(stores.network.now < limit, "does not settle: {scenario:?}");
            let until = stores.network.now + INTERVAL / 2;
            stores.run(until);
        }
        longest = longest.max(stores.network.now - Duration::from_secs(20));
    }
    eprintln!("the longest took {longest:?}");
}

#[test]
fn a_thousand_nodes_agree_under_faults() {
    let nodes = 1000;
    let any: evenhand_protocol::exchange::TermBounds = Arc::new(|_| vec![Fixed::from_units(i128::MAX)]);
    let limits = RecordLimits { supply: None, terms: any, users: 20_000 };
    let store = |i: usize| RecordStore::new(Ageing::new(INTERVAL), limits.clone(), &name(i));
    let mut stores: Vec<RecordStore> = (0..nodes).map(store).collect();
    let mut random = evenhand_model::random::Stream::new(1, "pairs", 0);
    // Each node knows itself. Pairs exchange records four times in an interval; a tenth of the messages is lost, and 20 nodes
    // stop after two intervals.
    let gone = |i: usize| i % 50 == 7;
    let records: Vec<Record> = (0..nodes).map(|i| record(i, 1, 1)).collect();
    stores.iter_mut().zip(&records).for_each(|(store, record)| store.publish(Duration::ZERO, record.clone()));
    let mut knows: Vec<Vec<bool>> = (0..nodes).map(|i| (0..nodes).map(|j| i == j).collect()).collect();
    let mut meetings = 0;
    while knows.iter().enumerate().any(|(i, knows)| !gone(i) && knows.contains(&false)) {
        let now = meetings * INTERVAL / 4;
        for one in 0..nodes {
            let two = random.below(nodes as u64) as usize;
            if one == two || random.uniform() < 0.1 || meetings > 2 && (gone(one) || gone(two)) {
                continue;
            }
            for (from, to) in [(one, two), (two, one)] {
                let Ok([from, known]) = knows.get_disjoint_mut([from, to]) else { continue };
                for (i, known) in known.iter_mut().enumerate().filter(|(i, known)| from[*i] && !**known) {
                    assert_eq!(
                        stores[to].receive(now, records[i].clone()),
                        evenhand_protocol::exchange::ReceiveOutcome::Stored
                    );
                    *known = true;
                }
            }
        }
        meetings += 1;
        // Without faults ten would suffice; after three intervals all records are fresh.
        assert!(meetings <= 12);
    }
    let now = meetings * INTERVAL / 4;
    let mut known = None;
    for i in (0..nodes).filter(|i| i % 10 == 1) {
        let totals = stores[i].totals(now);
        check(now, &stores[i], &totals);
        assert_eq!(simulated_network::contributors_of(&totals).len(), nodes);
        let sums = (totals.supply, totals.largest, totals.users);
        assert!(*known.get_or_insert_with(|| sums.clone()) == sums);
    }
}
