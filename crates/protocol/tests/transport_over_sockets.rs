//! Nodes on real sockets of 127.0.0.1, with gossip and in a ring.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use evenhand_protocol::exchange::{Fixed, NodeState, Record, RecordLimits, Totals, UserSums};
use evenhand_protocol::transport::{Config, Mode, PeerFilter, Peers, SharedName, TransportError, start};

const INTERVAL: Duration = Duration::from_millis(100);
const IO_TIMEOUT: Duration = Duration::from_secs(12);
const KEY: [u8; 32] = [7; 32];

fn number(number: f64) -> Fixed {
    Fixed::from_f64(number).unwrap()
}

/// A node with supply 1, and a user of its own beside one that all nodes have.
struct Node {
    peers: Box<dyn Peers>,
    name: String,
    life: u64,
    sequence: u64,
    users: usize,
    totals: Totals,
}

impl Node {
    fn start(config: Config, users: usize) -> Node {
        let (name, life) = (config.node.clone(), config.incarnation);
        Node { peers: start(config).unwrap(), name, life, sequence: 0, users, totals: Totals::default() }
    }

    fn address(&self) -> SocketAddr {
        self.peers.local_addr().unwrap()
    }

    fn round(&mut self) {
        self.sequence += 1;
        let sums = |term: f64| UserSums { terms: vec![number(term)], workloads: 1 };
        let mut users = BTreeMap::from([("all".to_owned(), sums(0.25)), (self.name.clone(), sums(0.5))]);
        users.extend((0..self.users).map(|i| (format!("user{i:05}"), sums(0.1 / self.users as f64))));
        let (incarnation, sequence) = (self.life, self.sequence);
        let record =
            Record { node: self.name.clone(), incarnation, sequence, digest: 1, supply: vec![number(1.0)], users };
        self.totals = self.peers.exchange(record);
    }

    /// Returns the number of nodes that count in full, each added exactly once.
    fn counts(&self) -> Option<usize> {
        let fresh = self.totals.nodes.iter().filter(|status| status.state == NodeState::Fresh).count();
        let all = self.totals.users.get("all")?;
        let right = self.totals.supply == [number(fresh as f64)]
            && all.terms == [number(0.25 * fresh as f64)]
            && all.workloads as usize == fresh;
        right.then_some(fresh)
    }
}

fn config(name: &str, mode: Mode, seeds: &[SocketAddr]) -> Config {
    let listen = ([127, 0, 0, 1], 0).into();
    let config = Config::new(name, listen, KEY, INTERVAL, RecordLimits::by_factor(number(2.0)));
    Config { mode, seeds: seeds.to_vec(), ..config }
}

fn cloud(count: usize, mode: Mode, users: usize, adjust: impl Fn(usize, &mut Config)) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for i in 0..count {
        let seeds: Vec<SocketAddr> = nodes.first().map(Node::address).into_iter().collect();
        let mut config = config(&format!("n{i}"), mode, &seeds);
        adjust(i, &mut config);
        nodes.push(Node::start(config, users));
    }
    nodes
}

/// Exchanges records until the condition holds, up to a time limit.
fn until(nodes: &mut [Node], what: &str, so: impl Fn(&[Node]) -> bool) -> Duration {
    let begun = Instant::now();
    loop {
        let round = Instant::now();
        nodes.iter_mut().for_each(Node::round);
        if so(nodes) {
            return begun.elapsed();
        }
        let states: Vec<_> = nodes.iter().map(|n| (&n.name, &n.totals.nodes, n.peers.traffic())).collect();
        assert!(begun.elapsed() < IO_TIMEOUT, "{what}: {states:#?}");
        thread::sleep(INTERVAL.saturating_sub(round.elapsed()));
    }
}

fn all_count(count: usize) -> impl Fn(&[Node]) -> bool {
    move |nodes| nodes.iter().all(|node| node.counts() == Some(count))
}

fn both(test: fn(Mode)) {
    let ring = thread::spawn(move || test(Mode::Ring));
    test(Mode::Gossip);
    ring.join().unwrap();
}

#[test]
fn nodes_agree_and_continue_without_one_that_crashes() {
    both(|mode| {
        let mut nodes = cloud(5, mode, 0, |_, _| {});
        until(&mut nodes, "agree", all_count(5));
        // The node with the smallest name leads the ring.
        let first = nodes.remove(0);
        let old = first.address();
        drop(first);
        until(&mut nodes, "four", all_count(4));
        assert!(nodes.iter().all(|node| node.totals.isolated_since.is_none()));
        // It restarts with another address.
        let again = config("n0", mode, &[nodes[2].address()]);
        assert_ne!(old, nodes[0].address());
        nodes.push(Node::start(again, 0));
        until(&mut nodes, "five again", all_count(5));
    });
}

#[test]
fn two_nodes_of_one_name_are_reported_and_one_that_moves_is_not() {
    both(|mode| {
        let mut nodes = cloud(3, mode, 0, |_, _| {});
        until(&mut nodes, "agree", all_count(3));
        // It restarts with another address.
        drop(nodes.remove(1));
        let moved = config("n1", mode, &[nodes[0].address()]);
        nodes.push(Node::start(moved, 0));
        until(&mut nodes, "three again", all_count(3));
        let begun = Instant::now();
        until(&mut nodes, "two seconds", |nodes| {
            assert!(nodes.iter().all(|node| node.peers.shared_names().is_empty()));
            begun.elapsed() > 20 * INTERVAL
        });
        // As if it had not ended: two that run with its name, which know the same seed.
        let again = Node::start(config("n1", mode, &[nodes[0].address()]), 0);
        let mut addresses = vec![nodes[2].address(), again.address()];
        addresses.sort();
        nodes.push(again);
        let expected = [SharedName { name: "n1".into(), addresses }];
        until(&mut nodes, "shared", |nodes| nodes[0].peers.shared_names() == expected);
        let last = nodes.pop();
        drop(last);
        until(&mut nodes, "no longer shared", |nodes| nodes.iter().all(|node| node.peers.shared_names().is_empty()));
    });
}

#[test]
fn a_frozen_node_delays_no_other_node() {
    both(|mode| {
        let frozen = Arc::new(AtomicBool::new(false));
        let mut nodes = cloud(4, mode, 0, |i, config| {
            if i == 1 {
                let frozen = Arc::clone(&frozen);
                // Its thread blocks at the next message.
                config.filter = Some(PeerFilter::new(move |_| {
                    while frozen.load(SeqCst) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    true
                }));
            }
        });
        until(&mut nodes, "agree", all_count(4));
        frozen.store(true, SeqCst);
        let mut asleep = nodes.remove(1);
        until(&mut nodes, "three", all_count(3));
        // Its caller does not wait either, although its thread does, and it reports its isolation.
        thread::sleep(INTERVAL * 4);
        let begun = Instant::now();
        asleep.round();
        assert!(begun.elapsed() < INTERVAL * 3, "{:?}", begun.elapsed());
        assert!(asleep.totals.isolated_since.is_some());
        frozen.store(false, SeqCst);
        nodes.insert(1, asleep);
        until(&mut nodes, "awake", all_count(4));
    });
}

#[test]
fn both_halves_of_a_partition_continue_and_merge_at_its_end() {
    both(|mode| {
        let cut = Arc::new(AtomicBool::new(false));
        let sides: Arc<Mutex<BTreeMap<SocketAddr, usize>>> = Arc::default();
        let mut nodes = cloud(5, mode, 0, |i, config| {
            let (cut, sides) = (Arc::clone(&cut), Arc::clone(&sides));
            let allows = move |peer| !cut.load(SeqCst) || sides.lock().unwrap().get(&peer) == Some(&(i % 2));
            config.filter = Some(PeerFilter::new(allows));
        });
        sides.lock().unwrap().extend(nodes.iter().enumerate().map(|(i, node)| (node.address(), i % 2)));
        until(&mut nodes, "agree", all_count(5));
        cut.store(true, SeqCst);
        until(&mut nodes, "excluded", |nodes| {
            nodes.iter().enumerate().all(|(i, node)| node.counts() == Some(3 - i % 2))
        });
        cut.store(false, SeqCst);
        until(&mut nodes, "together", all_count(5));
    });
}

#[test]
fn a_node_without_the_key_can_neither_read_nor_send() {
    both(|mode| {
        let mut nodes = cloud(3, mode, 0, |i, config| {
            if i == 2 {
                config.credentials = [8; 32].into();
            }
        });
        until(&mut nodes, "two and one", |nodes| {
            let rejected: u64 = nodes[..2].iter().map(|node| node.peers.traffic().rejected).sum();
            all_count(2)(&nodes[..2]) && nodes[2].counts() == Some(1) && rejected > 2
        });
        for _ in 0..5 {
            thread::sleep(INTERVAL);
            nodes.iter_mut().for_each(Node::round);
        }
        assert_eq!(nodes[0].totals.state("n2"), None);
        assert_eq!(nodes[2].totals.nodes.len(), 1);
        assert_eq!(nodes[2].peers.traffic().received, 0);
        assert!(nodes[2].totals.isolated_since.is_some());
    });
}

/// Forwards connections to `target`, and records the bytes that are sent there.
fn tap(target: SocketAddr, kept: Arc<Mutex<Vec<u8>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for from in listener.incoming() {
            let (mut from, mut to) = (from.unwrap(), TcpStream::connect(target).unwrap());
            let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                    if to.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn recorded_traffic_can_be_neither_read_nor_replayed() {
    let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
    let mut nodes = vec![Node::start(config("n0", Mode::Gossip, &[]), 0)];
    let tapped = tap(nodes[0].address(), Arc::clone(&kept));
    nodes.push(Node::start(config("n1", Mode::Gossip, &[tapped]), 0));
    until(&mut nodes, "agree", |nodes| all_count(2)(nodes) && kept.lock().unwrap().len() > 200);
    let first = nodes.remove(0);
    let (target, before) = (first.address(), first.peers.traffic());
    // So that no other traffic arrives.
    drop(nodes);
    thread::sleep(INTERVAL * 2);
    let quiet = first.peers.traffic();
    assert!(quiet.received >= before.received);
    let intercepted = kept.lock().unwrap().clone();
    // The name is in every gossip message and in the greeting, but never in plain text.
    assert!(!intercepted.windows(8).any(|bytes| bytes == b"evenhand"));
    for _ in 0..3 {
        let mut stream = TcpStream::connect(target).unwrap();
        stream.write_all(&intercepted).unwrap();
        let mut answer = Vec::new();
        // The challenge, then the end of the stream.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 32, "{}", answer.len());
    }
    thread::sleep(INTERVAL);
    let after = first.peers.traffic();
    assert_eq!(after.received, quiet.received);
    assert_eq!(after.rejected, quiet.rejected + 3);
}

#[test]
fn ten_thousand_users_on_every_node_are_exchanged() {
    both(|mode| {
        let mut nodes = cloud(3, mode, 10_000, |_, config| config.interval = INTERVAL * 5);
        until(&mut nodes, "agree", all_count(3));
        assert!(nodes.iter().all(|node| node.totals.users.len() == 10_004));
        assert!(nodes.iter().all(|node| node.totals.users["user00042"].workloads == 3));
    });
}

#[test]
fn a_node_that_reports_more_than_its_limit_does_not_count() {
    let mut nodes = cloud(2, Mode::Gossip, 0, |_, _| {});
    let mut faulty = start(config("faulty", Mode::Gossip, &[nodes[0].address()])).unwrap();
    let sequence = AtomicUsize::new(0);
    let faulty = Mutex::new(&mut faulty);
    until(&mut nodes, "rejected", |nodes| {
        let sequence = sequence.fetch_add(1, SeqCst) as u64;
        let users = BTreeMap::from([("ada".to_owned(), UserSums { terms: vec![number(1e6)], workloads: 1 })]);
        let supply = vec![number(1.0)];
        let record = Record { node: "faulty".into(), incarnation: 1, sequence, digest: 1, supply, users };
        faulty.lock().unwrap().exchange(record);
        nodes.iter().all(|node| matches!(node.totals.state("faulty"), Some(NodeState::Rejected(_))))
            && all_count(2)(nodes)
    });
}

#[test]
fn invalid_configurations_are_rejected() {
    let rejected = |change: fn(&mut Config)| {
        let mut config = config("n0", Mode::Ring, &[]);
        change(&mut config);
        start(config).err().unwrap()
    };
    assert!(matches!(rejected(|c| c.node.clear()), TransportError::Name));
    assert!(matches!(rejected(|c| c.interval = Duration::ZERO), TransportError::Interval(_)));
    assert!(matches!(rejected(|c| c.listen = ([0, 0, 0, 0], 0).into()), TransportError::Advertise(_)));
    let first = Node::start(config("n0", Mode::Gossip, &[]), 0);
    let second = start(Config { listen: first.address(), ..config("n1", Mode::Gossip, &[]) });
    assert!(matches!(second.err(), Some(TransportError::Listen { .. })));
    let address = first.address();
    drop(first);
    // The thread has ended, and the address is free.
    TcpListener::bind(address).unwrap();
}
