//! The simulator against a reference simulator, service by service, on random scenarios with many ties.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/reference_simulator.rs"]
mod reference_simulator;

use common::{at, client, seconds};
use evenhand_processes::{Client, Parameters, Reading, Recording, ResourceSettings, Scenario, TieBreak};
use proptest::prelude::*;
use proptest::sample::select;
use reference_simulator::ReferenceSimulator;

const RESOURCES: [&str; 4] = ["A_CS", "B", "C_CS", "idle"];

fn body() -> impl Strategy<Value = String> {
    let time = select(vec!["0.1", "0.1", "0.2", "0.25", "0.05", "0.333333333", "0.7", "1.5"]);
    let step = (select(RESOURCES.to_vec()), time).prop_map(|(r, t)| format!("{r} {t} 0 NORM"));
    let phase = (1u32..12, prop::collection::vec(step, 1..4)).prop_map(|(n, s)| format!("loop {n};{}", s.join(";")));
    prop::collection::vec(phase, 1..4).prop_map(|p| p.join(";"))
}

fn one(name: String) -> impl Strategy<Value = Client> {
    let suspension = prop::option::weighted(0.2, (0u32..20, 1u32..10));
    (
        select(vec!["1", "1", "2", "3", "7", "12.5"]),
        prop::collection::vec(body(), 1..3),
        select(vec!["0", "0", "0", "0.5", "1.05"]),
        suspension,
    )
        .prop_map(move |(priority, bodies, start, suspension)| {
            let threads = bodies.iter().map(|b| client(&name, priority, b).threads.remove(0)).collect();
            let suspensions = suspension.into_iter().map(|(from, length)| {
                let tenths = |n: u32| at(&format!("{}.{}", n / 10, n % 10));
                (tenths(from), tenths(from + length))
            });
            Client {
                start: at(start),
                threads,
                suspensions: suspensions.collect(),
                ..client(&name, priority, "loop 1;idle 1 0 NORM")
            }
        })
}

prop_compose! {
    fn random()(
        n in 1usize..6,
    )(
        clients in (0..n).map(|i| one(format!("c{i}"))).collect::<Vec<_>>(),
        window in select(vec!["1", "3", "0.77"]),
        grace in select(vec!["0", "0.3", "1", "0.1"]),
        recalculation in select(vec![None, None, Some("0"), Some("0.25"), Some("0.5")]),
        reading in select(Reading::ALL.to_vec()),
        ties in select(TieBreak::ALL.to_vec()),
        servers in prop::array::uniform3(select(vec![1u32, 1, 1, 2, 3])),
    ) -> Scenario {
        let parameters = Parameters {
            window: seconds(window),
            grace: seconds(grace),
            recalculation: recalculation.map(seconds),
            reading,
            ties,
            horizon: Some(at("8")),
            ..Parameters::default()
        };
        let settings = RESOURCES.iter().zip(servers);
        let settings = settings.map(|(name, servers)| ResourceSettings {
            servers, ..ResourceSettings::named(name, &parameters)
        });
        Scenario::new(clients, settings.collect(), parameters).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_simulators_give_the_same_services(scenario in random()) {
        let (outcome, recording) = scenario.record(Recording::new());
        let (served, finished) = ReferenceSimulator::run(&scenario);
        let fast: Vec<_> = recording.services.iter().map(|s| {
            let [resource, server, client, thread] = [s.resource, s.server, s.client, s.thread].map(|x| x as usize);
            (resource, server, client, thread, s.from.nanos(), s.to.nanos())
        }).collect();
        for (k, (a, b)) in fast.iter().zip(&served).enumerate() {
            prop_assert_eq!(a, b, "service {}", k);
        }
        prop_assert_eq!(fast.len(), served.len());
        let finish: Vec<_> = outcome.finish.iter().map(|f| f.map(|t| t.nanos())).collect();
        prop_assert_eq!(finish, finished);
    }
}
