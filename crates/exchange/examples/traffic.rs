//! Messages and bytes a node sends in an interval, in the simulated network and without faults.
//!
//! `cargo run --release -p evenhand-exchange --example traffic`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints")]

#[path = "../tests/network/mod.rs"]
mod network;
#[path = "../tests/network/rings.rs"]
mod rings;

use std::time::Duration;

use evenhand_exchange::{Fixed, Record, UserSums};
use evenhand_random::Stream;
use network::{Scenario, Step, name};

/// Users with guests on a node; of a cloud with as many, or with twenty times as many.
const USERS: u64 = 50;
const INTERVALS: u32 = 10;

fn main() {
    println!(
        "a node and interval: messages (of which acknowledgements), bytes sent; {USERS} users a node, 4 resources"
    );
    for (cloud, make) in [(USERS, few as fn(usize, u64, u64) -> Record), (20 * USERS, many)] {
        println!("{cloud} users in the cloud");
        for nodes in [5, 50, 90, 1000] {
            let (messages, acknowledgements, bytes) = ring(nodes, make);
            println!("{nodes:>6} ring      {messages:>8.1} ({acknowledgements:.1}) {bytes:>10.0}");
            let (messages, bytes) = gossip(nodes, make);
            println!("{nodes:>6} gossip    {messages:>8.1}       {bytes:>10.0}");
            let record = make(0, 1, 1000).encode().len();
            println!("{nodes:>6} full mesh {:>8}       {:>10}", nodes - 1, (nodes - 1) * record);
        }
    }
}

fn few(node: usize, incarnation: u64, sequence: u64) -> Record {
    with(USERS, node, incarnation, sequence)
}

fn many(node: usize, incarnation: u64, sequence: u64) -> Record {
    with(20 * USERS, node, incarnation, sequence)
}

/// A node of 64 cores, 512 GiB, 1 GB/s of disk and 10 Gbit/s of network.
fn with(cloud: u64, node: usize, incarnation: u64, sequence: u64) -> Record {
    let mut random = Stream::new(sequence, "record", node as u64);
    let supply = [64.0, 512.0, 1e3, 1.25e3];
    let mut users = std::collections::BTreeMap::new();
    while users.len() < USERS as usize {
        let name = format!("user{:05}", random.below(cloud));
        let mut term = |supply: f64| Fixed::from_f64(supply * random.uniform() / USERS as f64).unwrap();
        let terms = supply.map(&mut term).to_vec();
        users.insert(name, UserSums { terms, guests: 2 });
    }
    let supply = supply.map(|s| Fixed::from_f64(s).unwrap()).to_vec();
    Record { node: name(node), incarnation, sequence, digest: 0x1234_5678_9abc_def0, supply, users }
}

fn ring(nodes: usize, make: fn(usize, u64, u64) -> Record) -> (f64, f64, f64) {
    let scenario = Scenario { seed: 2, nodes, steps: vec![(0.0, Step::Start((0..nodes).collect()))] };
    let mut rings = rings::Rings::new(&scenario, make);
    rings.check = false;
    // Longer than a round of a thousand.
    rings.run(Duration::from_secs(40));
    rings.weigh = true;
    let before: Vec<_> = rings.traffic.clone();
    let rounds = |rings: &rings::Rings| rings.traffic[0].tokens;
    let first = rounds(&rings);
    rings.run(Duration::from_secs(40) + rings::INTERVAL * INTERVALS);
    let per = (rounds(&rings) - first) as f64 * nodes as f64;
    let sum = |of: fn(&rings::Traffic) -> u64| {
        rings.traffic.iter().zip(&before).map(|(after, before)| of(after) - of(before)).sum::<u64>() as f64 / per
    };
    let (tokens, others, bytes) = (sum(|t| t.tokens), sum(|t| t.others), sum(|t| t.bytes));
    (tokens + others, others, bytes)
}

/// Four times an interval each node meets three others, as with the gossip of the room `peers`; they tell each other which
/// records they have, and then pass on those that the other does not have.
fn gossip(nodes: usize, make: fn(usize, u64, u64) -> Record) -> (f64, f64) {
    let mut random = Stream::new(1, "meetings", 0);
    let record = make(0, 1, 1000).encode().len() as u64;
    // Name, incarnation, heartbeat and version.
    let known = nodes as u64 * 20;
    let mut has = vec![vec![0u32; nodes]; nodes];
    let (mut messages, mut bytes) = (0u64, 0u64);
    let warm = 4 * 4;
    for meeting in 0..warm + 4 * INTERVALS {
        if meeting == warm {
            (messages, bytes) = (0, 0);
        }
        if meeting % 4 == 0 {
            (0..nodes).for_each(|i| has[i][i] += 1);
        }
        for one in 0..nodes {
            for _ in 0..3.min(nodes - 1) {
                let two = random.below(nodes as u64) as usize;
                let Ok([one, two]) = has.get_disjoint_mut([one, two]) else { continue };
                messages += 3;
                bytes += 2 * known;
                for (one, two) in one.iter_mut().zip(two) {
                    bytes += u64::from(one != two) * record;
                    *one = (*one).max(*two);
                    *two = *one;
                }
            }
        }
    }
    let per = f64::from(INTERVALS) * nodes as f64;
    (messages as f64 / per, bytes as f64 / per)
}
