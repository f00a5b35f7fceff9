//! The cost of the exchange for each node and tick: nodes on sockets of 127.0.0.1 in this process, 50 users on each node.
//!
//! `ulimit -n 40000; cargo run --release -p evenhand-protocol --example transport_cost [-- NODES...]`
//!
//! For comparison with gossip and the ring, a full mesh: each node writes its record to every other node over plain TCP, and
//! reads those of all.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use evenhand_protocol::exchange::{Ageing, Fixed, NodeState, Record, RecordLimits, RecordStore, Totals, UserSums};
use evenhand_protocol::transport::{Config, Mode, Peers, start};

const USERS: usize = 50;
const INTERVAL: Duration = Duration::from_secs(1);
const TICKS: usize = 15;
const SUPPLY: [f64; 4] = [64.0, 512.0, 1e3, 1.25e3];

fn main() {
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![5, 50, 90];
    }
    println!(
        "per node and tick, medians of {TICKS}: messages sent, bytes sent, CPU in microseconds, of it in exchange()"
    );
    for nodes in sizes {
        for (name, mode) in [("gossip", Mode::Gossip), ("ring", Mode::Ring)] {
            print(nodes, name, &exchange(nodes, mode));
        }
        print(nodes, "full mesh", &mesh(nodes));
    }
}

fn print(nodes: usize, name: &str, found: &[f64; 4]) {
    let [messages, bytes, cpu, round] = found;
    println!("{nodes:>4} {name:<10} {messages:>8.1} {bytes:>10.0} {cpu:>8.0} {round:>8.0}");
}

fn record(node: usize, sequence: u64) -> Record {
    let mut random = evenhand_model::random::Stream::new(sequence, "record", node as u64);
    let mut term = |supply: f64| Fixed::from_f64(supply * random.uniform() / USERS as f64).unwrap();
    let users: BTreeMap<String, UserSums> = (0..USERS)
        .map(|i| (format!("user{i:05}"), UserSums { terms: SUPPLY.map(&mut term).to_vec(), workloads: 2 }))
        .collect();
    let supply = SUPPLY.map(|supply| Fixed::from_f64(supply).unwrap()).to_vec();
    Record { node: format!("n{node:04}"), incarnation: 1, sequence, digest: 1, supply, users }
}

fn limits() -> RecordLimits {
    RecordLimits::by_factor(Fixed::from_f64(2.5).unwrap())
}

/// Returns the CPU time of this process's threads in microseconds.
fn cpu() -> f64 {
    let ran = |task: std::fs::DirEntry| -> Option<f64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    std::fs::read_dir("/proc/self/task").unwrap().flatten().filter_map(ran).sum::<f64>() / 1e3
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn exchange(count: usize, mode: Mode) -> [f64; 4] {
    let mut nodes: Vec<Box<dyn Peers>> = Vec::new();
    for i in 0..count {
        let listen = ([127, 0, 0, 1], 0).into();
        let seeds = nodes.iter().take(3).filter_map(|node| node.local_addr()).collect();
        let config = Config::new(&format!("n{i:04}"), listen, [7; 32], INTERVAL, limits());
        nodes.push(start(Config { mode, seeds, ..config }).unwrap());
    }
    let sum = |nodes: &[Box<dyn Peers>]| {
        let all = nodes.iter().map(|node| node.traffic());
        all.fold((0, 0), |(sent, bytes), t| (sent + t.sent, bytes + t.bytes_sent))
    };
    let all_fresh = |totals: &Totals| {
        totals.nodes.len() == count && totals.nodes.iter().all(|status| status.state == NodeState::Fresh)
    };
    let mut samples: [Vec<f64>; 4] = Default::default();
    let mut next = Instant::now();
    let mut before = (cpu(), sum(&nodes));
    for tick in 0.. {
        let mut settled = true;
        let (mut in_round, records): (Duration, Vec<Record>) =
            (Duration::ZERO, (0..count).map(|i| record(i, tick)).collect());
        let prepared = cpu();
        for (node, record) in nodes.iter_mut().zip(records) {
            let begun = Instant::now();
            let totals = node.exchange(record);
            in_round += begun.elapsed();
            settled &= all_fresh(&totals);
        }
        next += INTERVAL;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = (cpu(), sum(&nodes));
        if settled {
            let per = count as f64;
            let (messages, bytes) = (now.1.0 - before.1.0, now.1.1 - before.1.1);
            let found = [messages as f64, bytes as f64, now.0 - prepared, in_round.as_secs_f64() * 1e6];
            samples.iter_mut().zip(found).for_each(|(samples, found)| samples.push(found / per));
        }
        before = now;
        if samples[0].len() == TICKS {
            break;
        }
        assert!(tick < 120, "{count} nodes do not settle");
    }
    samples.map(median)
}

fn mesh(count: usize) -> [f64; 4] {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let barrier = Barrier::new(count + 1);
    let bytes = record(0, 1).encode().len() + 4;
    let mut samples = Vec::new();
    thread::scope(|scope| {
        for (me, listener) in listeners.into_iter().enumerate() {
            let (addresses, barrier) = (&addresses, &barrier);
            scope.spawn(move || mesh_node(me, &listener, addresses, barrier));
        }
        barrier.wait();
        for _ in 0..TICKS {
            let before = cpu();
            barrier.wait();
            barrier.wait();
            samples.push((cpu() - before) / count as f64);
        }
    });
    let others = (count - 1) as f64;
    [others, others * bytes as f64, median(samples), f64::NAN]
}

fn mesh_node(me: usize, listener: &TcpListener, addresses: &[SocketAddr], barrier: &Barrier) {
    let others = addresses.iter().enumerate().filter(|(i, _)| *i != me);
    let mut out: Vec<TcpStream> = others.map(|(_, address)| TcpStream::connect(address).unwrap()).collect();
    let mut come: Vec<TcpStream> = (1..addresses.len()).map(|_| listener.accept().unwrap().0).collect();
    out.iter().for_each(|stream| stream.set_nodelay(true).unwrap());
    let mut store = RecordStore::new(Ageing::new(INTERVAL), limits(), &format!("n{me:04}"));
    barrier.wait();
    for tick in 0..TICKS as u64 {
        let own = record(me, tick + 1);
        let now = INTERVAL * tick as u32;
        barrier.wait();
        let bytes = own.encode();
        let mut frame = (bytes.len() as u32).to_be_bytes().to_vec();
        frame.extend(bytes);
        store.publish(now, own);
        out.iter_mut().for_each(|stream| stream.write_all(&frame).unwrap());
        for stream in &mut come {
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut bytes).unwrap();
            store.receive(now, Record::decode(&bytes).unwrap());
        }
        assert_eq!(store.totals(now).nodes.len(), addresses.len());
        barrier.wait();
    }
}
