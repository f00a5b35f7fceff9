//! The ring under faults. `simulated_network/rings.rs` checks the invariant at every result: it is exactly the sum of one
//! record each of some nodes, and equal on all nodes that have it (H10).
#![allow(clippy::unwrap_used)]

#[path = "simulated_network/rings.rs"]
mod rings;
mod simulated_network;

use std::time::Duration;

use rings::Rings;
use simulated_network::{CALM, Quality, Scenario, Step};

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn of(nodes: usize, steps: Vec<(f64, Step)>) -> Rings {
    let mut all = vec![(0.0, Step::Start((0..nodes).collect()))];
    all.extend(steps);
    Rings::new(&Scenario { seed: 2, nodes, steps: all }, simulated_network::record)
}

/// The time after the last fault within which the ring recovers; see `docs/src/reference/protocol.md`.
fn bound(nodes: usize) -> Duration {
    seconds(15.0 + 1.5 * nodes as f64)
}

#[test]
fn without_faults_a_node_sends_one_message_in_each_interval() {
    let mut rings = of(9, vec![]);
    assert!(rings.settle(bound(9)).is_some());
    rings.run(seconds(30.0));
    let before = rings.traffic.clone();
    let rounds = rings.results.len();
    rings.run(seconds(50.0));
    let rounds = (rings.results.len() - rounds) as u64;
    assert!((19..=21).contains(&rounds), "{rounds}");
    for (before, after) in before.iter().zip(&rings.traffic) {
        assert!((after.tokens - before.tokens).abs_diff(rounds) <= 1, "{before:?} {after:?}");
        // One acknowledgement for each token.
        assert!((after.others - before.others).abs_diff(rounds) <= 1, "{before:?} {after:?}");
    }
}

#[test]
fn the_next_round_after_crashes_is_the_sum_over_live_nodes() {
    for crashed in [vec![4], vec![0], vec![0, 1, 2], vec![3, 5, 7], vec![8], vec![1, 2, 3, 4, 5, 6, 7, 8]] {
        let mut rings = of(9, vec![(20.0, Step::Crash(crashed.clone()))]);
        rings.run(seconds(19.9));
        assert!(rings.settled());
        rings.run(seconds(20.5));
        let took = rings.settle(bound(9));
        assert!(took.is_some(), "{crashed:?}");
    }
}

#[test]
fn the_halves_of_a_partition_continue_and_merge_into_one_view() {
    let halves = Step::Partition((0..8).map(|i| i % 2).collect());
    let mut rings = of(8, vec![(20.0, halves), (60.0, Step::Heal)]);
    rings.run(seconds(60.0));
    for half in 0..2 {
        let view = rings.nodes[half].as_ref().unwrap().view();
        assert_eq!(view.members.len(), 4);
        for i in (half..8).step_by(2) {
            let ring = rings.nodes[i].as_ref().unwrap();
            assert_eq!((ring.view(), ring.result().unwrap().count), (view, 4));
            let totals = ring.totals(seconds(60.0));
            assert_eq!((simulated_network::contributors_of(&totals).len(), totals.nodes.len()), (4, 8));
            assert_eq!(totals.isolated_since, None);
        }
    }
    assert!(rings.settle(bound(8)).is_some());
}

#[test]
fn an_isolated_node_reports_that_it_is_isolated() {
    let mut rings = of(4, vec![(20.0, Step::Partition(vec![0, 1, 1, 1])), (50.0, Step::Heal)]);
    rings.run(seconds(50.0));
    let alone = rings.nodes[0].as_ref().unwrap().totals(seconds(50.0));
    let since = alone.isolated_since.unwrap();
    assert!(since > seconds(20.0) && since < seconds(32.0), "{since:?}");
    assert_eq!(simulated_network::contributors_of(&alone).len(), 1);
    assert_eq!(rings.nodes[1].as_ref().unwrap().totals(seconds(50.0)).isolated_since, None);
    assert!(rings.settle(bound(4)).is_some());
    assert_eq!(rings.nodes[0].as_ref().unwrap().totals(rings.network.now).isolated_since, None);
}

#[test]
fn the_ring_recovers_after_each_of_a_thousand_random_schedules() {
    let mut longest = Duration::ZERO;
    for seed in 0..simulated_network::schedules() {
        let scenario = Scenario::random(seed, 12);
        let mut rings = Rings::new(&scenario, simulated_network::record);
        rings.count_bytes = seed % 50 == 0;
        // Until all late messages have arrived, and the rounds that they disturb are over.
        rings.run(seconds(25.0));
        let took = rings
            .settle(bound(scenario.nodes))
            .unwrap_or_else(|| panic!("does not settle: {scenario:?}\n{}", rings.views()));
        longest = longest.max(took);
        // It stays settled.
        for _ in 0..4 {
            let until = rings.network.now + seconds(1.3);
            rings.run(until);
            assert!(rings.settled(), "{scenario:?}\n{}", rings.views());
        }
    }
    eprintln!("the longest took {longest:?}");
}

#[test]
fn a_thousand_nodes_form_one_ring() {
    let bad = Quality { loss: 0.002, duplicates: 0.01, delay: (0.0002, 0.0002), late: 0.0 };
    let crashed: Vec<usize> = (0..1000).filter(|i| i % 50 == 0).collect();
    let steps = vec![
        (20.0, Step::Quality(bad)),
        (30.0, Step::Crash(crashed.clone())),
        (60.0, Step::Quality(CALM)),
        (61.0, Step::Start(crashed)),
    ];
    let mut rings = of(1000, steps);
    assert!(rings.settle(seconds(20.0)).is_some());
    rings.run(seconds(61.5));
    let took = rings.settle(seconds(120.0));
    eprintln!("took {took:?}");
    assert!(took.is_some());
}
