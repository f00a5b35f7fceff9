//! Messages and bytes that a node sends in an interval without faults: the ring in the simulated network, gossip and a
//! full mesh by calculation.
//!
//! `cargo run --release -p evenhand-protocol --example ring_traffic [-- NODES…]`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints")]

#[path = "../tests/simulated_network/rings.rs"]
mod rings;
#[path = "../tests/simulated_network/mod.rs"]
mod simulated_network;

use std::time::Duration;

use evenhand_model::random::Stream;
use evenhand_protocol::exchange::{Fixed, Record, UserSums};
use simulated_network::{Scenario, Step, name};

/// Users with workloads on each node, in a cloud with this number of users or 20 times as many.
const USERS: u64 = 50;
const INTERVALS: u32 = 10;

fn main() {
    println!(
        "per node and interval: messages (of which acknowledgements), bytes sent; {USERS} users on each node, 4 resources"
    );
    for (cloud, make) in [(USERS, few as fn(usize, u64, u64) -> Record), (20 * USERS, many)] {
        println!("{cloud} users in the cloud");
        for nodes in numbers() {
            let (messages, acknowledgements, bytes, round) = ring(nodes, make);
            println!(
                "{nodes:>6} ring      {messages:>8.1} ({acknowledgements:.1}) {bytes:>10.0}, a round takes {round:.1} s"
            );
            let (messages, bytes) = gossip(nodes, make);
            println!("{nodes:>6} gossip    {messages:>8.1}       {bytes:>10.0}");
            let record = make(0, 1, 1000).encode().len();
            println!("{nodes:>6} full mesh {:>8}       {:>10}", nodes - 1, (nodes - 1) * record);
        }
    }
}

/// The numbers of nodes: those of the command line, or those of the documentation.
fn numbers() -> Vec<usize> {
    let given: Vec<usize> = std::env::args().skip(1).map(|argument| argument.parse().unwrap()).collect();
    if given.is_empty() { vec![5, 50, 90, 1000] } else { given }
}

fn few(node: usize, incarnation: u64, sequence: u64) -> Record {
    with(USERS, node, incarnation, sequence)
}

fn many(node: usize, incarnation: u64, sequence: u64) -> Record {
    with(20 * USERS, node, incarnation, sequence)
}

/// A node with 64 cores, 512 GiB, 1 GB/s of disk and 10 Gbit/s of network.
fn with(cloud: u64, node: usize, incarnation: u64, sequence: u64) -> Record {
    let mut random = Stream::new(sequence, "record", node as u64);
    let supply = [64.0, 512.0, 1e3, 1.25e3];
    let mut users = std::collections::BTreeMap::new();
    while users.len() < USERS as usize {
        let name = format!("user{:05}", random.below(cloud));
        let mut term = |supply: f64| Fixed::from_f64(supply * random.uniform() / USERS as f64).unwrap();
        let terms = supply.map(&mut term).to_vec();
        users.insert(name, UserSums { terms, workloads: 2 });
    }
    let supply = supply.map(|s| Fixed::from_f64(s).unwrap()).to_vec();
    Record { node: name(node), incarnation, sequence, digest: 0x1234_5678_9abc_def0, supply, users }
}

fn ring(nodes: usize, make: fn(usize, u64, u64) -> Record) -> (f64, f64, f64, f64) {
    let scenario = Scenario { seed: 2, nodes, steps: vec![(0.0, Step::Start((0..nodes).collect()))] };
    let mut rings = rings::Rings::new(&scenario, make);
    rings.check = false;
    // Longer than a round.
    let settled = Duration::from_secs(40) * (nodes as u32).div_ceil(1000);
    rings.run(settled);
    rings.count_bytes = true;
    let before: Vec<_> = rings.traffic.clone();
    let rounds = |rings: &rings::Rings| rings.traffic[0].tokens;
    let first = rounds(&rings);
    let measured = settled.max(rings::INTERVAL * INTERVALS);
    rings.run(settled + measured);
    let per = (rounds(&rings) - first) as f64 * nodes as f64;
    let round = measured.as_secs_f64() / (rounds(&rings) - first) as f64;
    let sum = |of: fn(&rings::Traffic) -> u64| {
        rings.traffic.iter().zip(&before).map(|(after, before)| of(after) - of(before)).sum::<u64>() as f64 / per
    };
    let (tokens, others, bytes) = (sum(|t| t.tokens), sum(|t| t.others), sum(|t| t.bytes));
    (tokens + others, others, bytes, round)
}

/// Calculated for the transport, not simulated. Twice in an interval a node starts three gossip exchanges of three
/// messages: two digests of about 45 bytes for each node, and in all each new version, of about 50 bytes, three times.
/// Then it requests the record of each other node, and each other node requests its record.
fn gossip(nodes: usize, make: fn(usize, u64, u64) -> Record) -> (f64, f64) {
    let (others, nodes) = ((nodes - 1) as f64, nodes as f64);
    let record = make(0, 1, 1000).encode().len() as f64;
    // The length, kind and authentication tag of each message.
    let (messages, frame) = (6.0 * 3.0 + 2.0 * others, 21.0);
    (messages, messages * frame + 6.0 * 2.0 * 45.0 * nodes + 3.0 * 50.0 * nodes + others * record)
}
