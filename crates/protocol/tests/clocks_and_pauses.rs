//! Clocks that differ, clocks that jump, and nodes that stop for a minute: rings and record stores.
//!
//! Nodes use clocks that never go back (of the time since boot). Their origins differ, and one that counts suspension jumps
//! when the machine wakes up. Dates, which an operator or NTP may set back by an hour, are in none of the messages; they
//! only number the incarnations of a node, of which the agent's journal makes sure that they increase.
#![allow(clippy::unwrap_used)]

#[path = "simulated_network/rings.rs"]
mod rings;
mod simulated_network;

use std::time::Duration;

use evenhand_protocol::exchange::{Ageing, NodeState, RecordLimits, RecordStore};
use rings::{INTERVAL, Rings};
use simulated_network::{Scenario, Step, name, number, record};

const HOUR: u64 = 3600;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn of(nodes: usize, steps: Vec<(f64, Step)>) -> Rings {
    let mut all = vec![(0.0, Step::Start((0..nodes).collect()))];
    all.extend(steps);
    Rings::new(&Scenario { seed: 2, nodes, steps: all }, record)
}

/// The time after the last fault within which the ring recovers; see `docs/src/reference/protocol.md`.
fn bound(nodes: u64) -> Duration {
    seconds(15) + Duration::from_millis(1500) * nodes as u32
}

#[test]
fn a_ring_of_nodes_whose_clocks_differ_by_minutes_and_hours_is_like_any_other() {
    let skewed = vec![(0.0, Step::Clock(1, 180)), (0.0, Step::Clock(2, 5 * HOUR)), (0.0, Step::Clock(3, 1 << 31))];
    let mut rings = of(5, skewed);
    rings.run(seconds(1));
    assert!(rings.settle(bound(5)).is_some(), "{}", rings.views());
    for node in 0..5 {
        let totals = rings.totals(node).unwrap();
        assert_eq!(simulated_network::contributors_of(&totals).len(), 5);
        assert!(totals.nodes.iter().all(|status| status.state == NodeState::Fresh), "{node}: {totals:?}");
    }
}

#[test]
fn a_ring_recovers_when_clocks_jump_by_an_hour() {
    // As one after the other wakes up.
    let jumps = (0..4).map(|node| (20.0 + 3.0 * node as f64, Step::Clock(node, HOUR))).collect();
    let mut rings = of(4, jumps);
    rings.run(seconds(19));
    assert!(rings.settled());
    rings.run(seconds(30));
    assert!(rings.settle(bound(4)).is_some(), "{}", rings.views());
    for node in 0..4 {
        assert_eq!(rings.totals(node).unwrap().isolated_since, None);
    }
}

#[test]
fn a_ring_goes_on_without_a_node_that_stops_for_a_minute_and_takes_it_back() {
    for stopped in [vec![0], vec![3], vec![0, 1]] {
        let mut rings = of(6, vec![(20.0, Step::Stop(stopped.clone())), (80.0, Step::Continue(stopped.clone()))]);
        rings.run(seconds(19));
        assert!(rings.settled());
        rings.run(seconds(79));
        for node in (0..6).filter(|node| !stopped.contains(node)) {
            let totals = rings.totals(node).unwrap();
            let counted: Vec<usize> = simulated_network::contributors_of(&totals).into_keys().collect();
            assert!(counted.len() == 6 - stopped.len() && !counted.iter().any(|i| stopped.contains(i)), "{counted:?}");
        }
        rings.run(seconds(80));
        assert!(rings.settle(bound(6)).is_some(), "{stopped:?}: {}", rings.views());
    }
}

/// Two stores that exchange their records each second, at `times` of their own clocks.
struct Pair {
    stores: [RecordStore; 2],
    sequences: [u64; 2],
}

impl Pair {
    fn new() -> Pair {
        let any = RecordLimits {
            supply: None,
            terms: std::sync::Arc::new(|_| vec![evenhand_protocol::exchange::Fixed::from_units(i128::MAX)]),
            users: 100,
        };
        let store = |i: usize| RecordStore::new(Ageing::new(INTERVAL), any.clone(), &name(i));
        Pair { stores: [store(0), store(1)], sequences: [0; 2] }
    }

    /// Publishes and exchanges; a stopped node does neither.
    fn round(&mut self, times: [Duration; 2], running: [bool; 2]) {
        for node in (0..2).filter(|node| running[*node]) {
            self.sequences[node] += 1;
            let own = record(node, 1, self.sequences[node]);
            self.stores[node].publish(times[node], own.clone());
            if running[1 - node] {
                self.stores[1 - node].receive(times[1 - node], own);
            }
        }
    }

    /// Returns the state of the other node; one that was lost long ago is no longer listed.
    fn state(&mut self, node: usize, at: Duration) -> NodeState {
        self.stores[node].totals(at).state(&name(1 - node)).cloned().unwrap_or(NodeState::Lost)
    }
}

#[test]
fn records_age_by_the_receivers_clock_whatever_the_senders_shows() {
    for ahead in [0, 180, HOUR, 1 << 31] {
        let mut pair = Pair::new();
        let at = |second: u64| [seconds(second), seconds(second + ahead)];
        (0..10).for_each(|second| pair.round(at(second), [true; 2]));
        for node in 0..2 {
            assert_eq!(pair.state(node, at(9)[node]), NodeState::Fresh, "{ahead}");
            assert_eq!(pair.stores[node].totals(at(9)[node]).supply, [number(1) + number(2)]);
        }
    }
}

#[test]
fn a_clock_that_jumps_ahead_by_an_hour_loses_others_until_their_next_record() {
    let mut pair = Pair::new();
    (0..10).for_each(|second| pair.round([seconds(second); 2], [true; 2]));
    // Node 0 wakes up: all it has is an hour old.
    let woken = |second: u64| [seconds(second + HOUR), seconds(second)];
    assert_eq!(pair.state(0, woken(10)[0]), NodeState::Lost);
    pair.round(woken(10), [true; 2]);
    assert_eq!(pair.state(0, woken(10)[0]), NodeState::Fresh);
    assert_eq!(pair.state(1, woken(10)[1]), NodeState::Fresh);
    assert_eq!(pair.stores[0].totals(woken(10)[0]).isolated_since, None);
}

#[test]
fn a_clock_that_goes_back_by_an_hour_is_no_error_and_new_records_count() {
    // Clocks that never go back do not; a faulty machine's must not bring the agent down all the same.
    let mut pair = Pair::new();
    (0..10).for_each(|second| pair.round([seconds(second + HOUR); 2], [true; 2]));
    let back = |second: u64| [seconds(second), seconds(second + HOUR)];
    (10..30).for_each(|second| {
        pair.round(back(second), [true; 2]);
        assert_eq!(pair.state(0, back(second)[0]), NodeState::Fresh);
        assert_eq!(pair.stores[0].totals(back(second)[0]).supply, [number(1) + number(2)]);
    });
    // A node that is silent then ages as always.
    (30..60).for_each(|second| pair.round(back(second), [true, false]));
    assert_eq!(pair.state(0, back(60)[0]), NodeState::Lost);
}

#[test]
fn a_node_that_stops_for_a_minute_is_lost_and_found() {
    let mut pair = Pair::new();
    (0..10).for_each(|second| pair.round([seconds(second); 2], [true; 2]));
    (10..70).for_each(|second| pair.round([seconds(second); 2], [true, false]));
    assert_eq!(pair.state(0, seconds(70)), NodeState::Lost);
    assert!(pair.stores[0].totals(seconds(70)).isolated_since.is_some());
    // The one that was stopped finds that it had received nothing.
    assert_eq!(pair.state(1, seconds(70)), NodeState::Lost);
    pair.round([seconds(70); 2], [true; 2]);
    for node in 0..2 {
        assert_eq!(pair.state(node, seconds(70)), NodeState::Fresh);
        assert_eq!(pair.stores[node].totals(seconds(70)).isolated_since, None);
    }
}
