//! Invariants of every run, under every scheduler where possible.
#![allow(clippy::unwrap_used)]

mod common;

use common::{at, client, paper, scenario, until, used};
use evenhand_model::random::Stream;
use evenhand_model::{Span, Time};
use evenhand_processes::{
    Asynchronous, Client, Parameters, Program, Reading, Recording, ResourceSettings, SCHEDULERS, Scenario, Service,
    ensemble,
};

/// Clients without delays, so that a client who is not served waits.
fn busy_clients(stream: &mut Stream, random: bool) -> Vec<Client> {
    let resources = ["A_CS", "B", "C_CS"];
    (0..2 + stream.below(4))
        .map(|i| {
            let body: Vec<String> = (0..1 + stream.below(3))
                .map(|_| {
                    let steps = (0..1 + stream.below(3)).map(|_| {
                        let (r, t) = (resources[stream.below(3) as usize], 20 + stream.below(300));
                        let width = if random { t / 3 } else { 0 };
                        format!("{r} 0.{t:03}0000{} 0.{width:03} NORM", stream.below(100))
                    });
                    let steps: Vec<String> = steps.collect();
                    format!("loop {};{}", 1 + stream.below(15), steps.join(";"))
                })
                .collect();
            let start = Time::from_nanos(stream.below(400_000_000));
            Client { start, ..client(&format!("c{i}"), &format!("{}", 1 + 7 * i + stream.below(5)), &body.join(";")) }
        })
        .collect()
}

/// Returns, for each service, since when its client waited for it.
fn waits(scenario: &Scenario, services: &[Service]) -> Vec<Time> {
    let before = |k: usize, s: &Service| {
        services[..k].iter().rev().find(|b| b.client == s.client && b.to <= s.from).map(|b| b.to)
    };
    let start = |s: &Service| scenario.clients()[s.client as usize].start;
    services.iter().enumerate().map(|(k, s)| before(k, s).unwrap_or_else(|| start(s))).collect()
}

fn by_start(recording: &Recording) -> Vec<Service> {
    let mut services = recording.services.clone();
    services.sort_by_key(|s| (s.from, s.resource, s.server));
    services
}

#[test]
fn no_resource_idles_while_a_request_waits_and_no_time_is_used_twice() {
    for seed in 0..40 {
        for scheduler in SCHEDULERS {
            let mut stream = Stream::new(seed, "invariants", 0);
            let parameters = Parameters { scheduler: scheduler.name.into(), seed, ..paper() };
            let scenario = scenario(busy_clients(&mut stream, true), parameters);
            let (outcome, recording) = scenario.record(Recording::new());
            let services = by_start(&recording);
            // Neither a server nor a client is in two services at once.
            for key in [|s: &Service| s.resource, |s: &Service| 100 + s.client] {
                for k in 0..200 {
                    let mine: Vec<&Service> = services.iter().filter(|s| key(s) == k).collect();
                    assert!(mine.windows(2).all(|w| w[0].to <= w[1].from), "{} {seed}", scheduler.name);
                }
            }
            // While any process waits, the resource is busy from the first instant of the wait to the last.
            for (service, since) in services.iter().zip(waits(&scenario, &services)) {
                let others =
                    services.iter().filter(|s| s.resource == service.resource && s.to > since && s.from < service.from);
                let busy: u64 = others.map(|s| (s.to.min(service.from) - s.from.max(since)).nanos()).sum();
                assert_eq!(busy, (service.from - since).nanos(), "{} {seed}", scheduler.name);
            }
            // In any order, all time is either used or waited.
            for (c, client) in scenario.clients().iter().enumerate() {
                let used: u64 = outcome.used[c].iter().map(|u| u.nanos()).sum();
                let present = (outcome.finish[c].unwrap() - client.start).nanos();
                assert_eq!(used + outcome.waited[c].nanos(), present, "{} {seed}", scheduler.name);
            }
        }
    }
}

#[test]
fn a_lone_client_is_never_delayed() {
    for scheduler in SCHEDULERS {
        let one = client("one", "3", "loop 7;A_CS 0.33 0 NORM;idle 0.1 0 NORM;B 1.2 0 NORM");
        let length = one.threads[0].mean_length();
        let parameters = Parameters { scheduler: scheduler.name.into(), ..paper() };
        let outcome = scenario(vec![one], parameters).run();
        assert_eq!(u128::from(outcome.end.nanos()), length);
        assert_eq!(outcome.waited, [Span::ZERO]);
    }
}

#[test]
fn the_order_of_clients_does_not_matter() {
    let mut differ = 0;
    for seed in 0..60 {
        let mut stream = Stream::new(seed, "permutation", 0);
        let clients = busy_clients(&mut stream, false);
        let reversed: Vec<Client> = clients.iter().rev().cloned().collect();
        for reading in Reading::ALL {
            let run = |clients: &[Client]| scenario(clients.to_vec(), Parameters { reading, ..paper() }).run();
            let (a, b) = (run(&clients), run(&reversed));
            differ += usize::from(!a.finish.iter().eq(b.finish.iter().rev()));
        }
    }
    // Times are distinct in nanoseconds, so that only a tie of ties could differ.
    assert_eq!(differ, 0);
}

#[test]
fn scaling_entitlements_changes_nothing_and_scaling_time_scales_finish_times() {
    for seed in 0..20 {
        let mut stream = Stream::new(seed, "scaling", 0);
        let clients = busy_clients(&mut stream, true);
        let scaled = clients.iter().cloned().map(|mut c| {
            let seven = evenhand_model::Rational::from_parts(7.into(), 30u8.into());
            c.entitlement = evenhand_model::Quantity::parse(&(c.entitlement.exact() * seven).to_string()).unwrap();
            c
        });
        let scaled = scaled.collect();
        assert_eq!(scenario(clients, paper()).run(), scenario(scaled, paper()).run());
    }
    let double = |span: Span| Span::from_nanos(2 * span.nanos());
    let green = "loop 1;CPU_CS 2 0 NORM;loop 40;DISK_CS 0.1 0 NORM;CPU_CS 0.1 0 NORM";
    let clients = vec![
        client("red", "40", "loop 1;CPU_CS 10 0 NORM"),
        client("blue", "40", "loop 1;DISK_CS 10 0 NORM"),
        client("green", "20", green),
    ];
    let mut slow = clients.clone();
    for step in slow.iter_mut().flat_map(|c| &mut c.threads).flat_map(|t| &mut t.phases).flat_map(|p| &mut p.steps) {
        step.mean = double(step.mean);
    }
    let p = paper();
    let parameters =
        Parameters { window: double(p.window), grace: double(p.grace), quantum: double(p.quantum), ..p.clone() };
    let (fast, slow) = (scenario(clients, p).run(), scenario(slow, parameters).run());
    for (a, b) in fast.finish.iter().zip(&slow.finish) {
        assert!((2.0 * a.unwrap().secs_f64() - b.unwrap().secs_f64()).abs() < 0.41, "{a:?} {b:?}");
    }
}

#[test]
fn in_every_full_window_each_client_gets_its_entitlement() {
    for seed in 0..25 {
        let mut stream = Stream::new(seed, "windows", 0);
        let entitlements: Vec<u64> = (0..2 + stream.below(5)).map(|_| 1 + stream.below(40)).collect();
        let sum: u64 = entitlements.iter().sum();
        let clients = entitlements.iter().enumerate();
        let clients = clients.map(|(i, e)| client(&format!("c{i}"), &e.to_string(), "loop 1;CPU_CS 1000 0 NORM"));
        let (_, recording) = scenario(clients.collect(), until(40)).record(Recording::new());
        for end in 3..40 {
            let end = f64::from(end) + 0.05;
            for (c, e) in entitlements.iter().enumerate() {
                let due = 3.0 * *e as f64 / sum as f64;
                let has = used(&recording, 0, c, end - 3.0, end);
                assert!((has - due).abs() <= 0.2 + 1e-9, "{seed}: {has} of {due} at {end}, {entitlements:?}");
            }
        }
    }
}

#[test]
fn a_newcomer_starts_at_zero_and_changes_no_other_priority() {
    let red = || client("red", "33", "loop 1;CPU_CS 10 0 NORM");
    let late = Client { start: at("5"), ..client("blue", "67", "loop 1;CPU_CS 5 0 NORM") };
    let priorities = |clients| scenario(clients, paper()).record(Recording::new().with_priorities()).1.priorities;
    let alone = priorities(vec![red()]);
    let both = priorities(vec![red(), late]);
    let at_5 = |all: &[(Time, Vec<i64>)]| all.iter().find(|(t, _)| *t == at("5")).unwrap().1.clone();
    assert_eq!(at_5(&both)[1], 0);
    assert_eq!(at_5(&both)[0], at_5(&alone)[0]);
    // Before, the newcomer uses no bottleneck.
    assert_eq!(both.iter().find(|(t, _)| *t == at("4.5")).unwrap().1[1], i64::MAX);
}

#[test]
fn every_queue_is_in_the_order_of_the_same_priorities() {
    let mut checked = 0;
    for seed in 0..40 {
        let mut stream = Stream::new(seed, "order", 0);
        let clients = busy_clients(&mut stream, true);
        let parameters =
            Parameters { recalculation: Some(Span::ZERO), reading: Reading::ALL[seed as usize % 3], ..paper() };
        let scenario = scenario(clients, parameters);
        let (_, recording) = scenario.record(Recording::new().with_priorities());
        let services = by_start(&recording);
        let waits = waits(&scenario, &services);
        for (k, chosen) in services.iter().enumerate() {
            let (_, priorities) =
                &recording.priorities[recording.priorities.partition_point(|(t, _)| *t < chosen.from)];
            for (other, since) in services[k..].iter().zip(&waits[k..]).skip(1) {
                if other.resource == chosen.resource && *since <= chosen.from && other.from > chosen.from {
                    checked += 1;
                    assert!(
                        priorities[chosen.client as usize] >= priorities[other.client as usize],
                        "{seed} {chosen:?}"
                    );
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}

#[test]
fn threads_share_their_clients_entitlement() {
    let work = "loop 1;CPU_CS 100 0 NORM";
    let mut many = client("many", "1", work);
    many.threads = vec![many.threads[0].clone(); 3];
    let clients = vec![many, client("single", "1", work)];
    let (_, recording) = scenario(clients.clone(), until(40)).record(Recording::new());
    assert!((used(&recording, 0, 0, 0.0, 40.0) / 40.0 - 0.5).abs() < 0.01);
    // With two servers both get one: three threads are worth no more.
    let servers = ResourceSettings { servers: 2, ..ResourceSettings::named("CPU_CS", &paper()) };
    let (_, recording) = Scenario::new(clients, vec![servers], until(40)).unwrap().record(Recording::new());
    assert!((used(&recording, 0, 0, 0.0, 40.0) / 40.0 - 1.0).abs() < 0.01);
    assert!((used(&recording, 0, 1, 0.0, 40.0) / 40.0 - 1.0).abs() < 0.01);
}

#[test]
fn requests_in_the_background_overlap_with_the_rest() {
    let body = "loop 100;CPU_CS 0.1 0 NORM;DISK 0.1 0 NORM";
    let run = |depth: Option<u32>| {
        let asynchronous = depth.map(|depth| Asynchronous { resources: vec!["DISK".into()], depth });
        scenario(vec![Client { asynchronous, ..client("one", "1", body) }], paper()).run()
    };
    assert_eq!(run(None).end, at("20"));
    // The last request is issued at 10 s.
    assert_eq!(run(Some(1)).end, at("10.1"));
    assert_eq!(run(Some(4)).end, at("10.1"));
    let slow_disk = "loop 10;CPU_CS 0.1 0 NORM;DISK 1 0 NORM";
    let asynchronous = Some(Asynchronous { resources: vec!["DISK".into()], depth: 2 });
    let outcome = scenario(vec![Client { asynchronous, ..client("one", "1", slow_disk) }], paper()).run();
    assert_eq!(outcome.end, at("10.1"));
    assert_eq!(outcome.used, [[Span::from_secs(1), Span::from_secs(10)]]);
}

#[test]
fn suspended_clients_neither_run_nor_accrue_beyond_the_grace() {
    let work = "loop 1;CPU_CS 100 0 NORM";
    let mut pauses = client("pauses", "1", work);
    pauses.suspensions = vec![(at("10"), at("20"))];
    let (_, recording) = scenario(vec![pauses, client("other", "1", work)], until(30)).record(Recording::new());
    assert!(used(&recording, 0, 0, 10.1, 20.0) == 0.0);
    assert!((used(&recording, 0, 1, 10.1, 20.0) - 9.9).abs() < 1e-9);
    // Ten seconds of suspension give no more than the grace period's accrual, which has left the window.
    assert!((used(&recording, 0, 0, 20.0, 23.0) - 1.5).abs() <= 0.2);
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_threads() {
    let mut stream = Stream::new(5, "golden", 0);
    let scenario = scenario(busy_clients(&mut stream, true), paper());
    let many = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ensemble(&scenario, 20, Some(Span::from_secs(1))))
    };
    assert_eq!(many(1), many(4));
    let other = scenario.with_parameters(Parameters { seed: 2, ..paper() }).unwrap();
    assert_ne!(scenario.run(), other.run());
    // A change of this hash changes every figure.
    let (_, recording) = scenario.record(Recording::new());
    let hash = recording.services.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, s| {
        let fields = [u64::from(s.resource), u64::from(s.client), s.from.nanos(), s.to.nanos()];
        fields.iter().fold(hash, |h, f| (h ^ f).wrapping_mul(0x100_0000_01b3))
    });
    assert_eq!(hash, GOLDEN);
}
const GOLDEN: u64 = 14_477_036_801_603_595_482;

#[test]
fn recorded_services_make_up_the_consumption_and_a_recording_without_them_has_the_same_bottlenecks() {
    let mut stream = Stream::new(9, "merged", 0);
    let scenario = scenario(busy_clients(&mut stream, true), paper());
    let (outcome, each) = scenario.record(Recording::new().with_priorities());
    let (_, few) = scenario.record(Recording::new().with_priorities().without_services());
    assert!(!each.bottlenecks.is_empty() && few.services.is_empty());
    assert_eq!((few.bottlenecks, few.priorities), (each.bottlenecks, each.priorities));
    for (client, of_resource) in outcome.used.iter().enumerate() {
        let all: u64 = of_resource.iter().map(|u| u.nanos()).sum();
        let services = || each.services.iter().filter(|s| s.client as usize == client);
        let length = |s: &Service| (s.to - s.from).nanos();
        assert_eq!(services().map(length).sum::<u64>(), all);
        let on_first = services().filter(|s| s.resource == 0).map(length);
        assert_eq!(on_first.sum::<u64>(), of_resource[0].nanos());
    }
}

#[test]
fn programs_print_as_they_parse() {
    let text =
        "# Priority:\n34\n# Requests:\nloop 1\nCPU_CS 2 0 NORM\nloop 40\nDISK_CS 0.1 0.05 NORM\nCPU_CS 0.1 0.05 NORM\n";
    let program = Program::parse("figure 1", text).unwrap();
    assert_eq!(program.to_string(), text);
    assert_eq!(program.mean_length(), 10_000_000_000);
}
