//! The whole agent, on machines that are simulated: what it settles at, and what it does when things go wrong.
#![allow(clippy::unwrap_used)]

mod machine;

use std::time::Duration;

use evenhand_agent::{Journal, Law, digest};
use evenhand_enforcers::cgroups::Control;
use evenhand_heaviness::controller::IntegralSettings;

use crate::machine::{Bus, MUCH, Machine, SECOND, Setting, guest, run};

fn near(found: &[f64], expected: &[f64], by: f64) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= by * b.max(1.0))
}

fn experiment_1() -> Machine {
    let one = |owner| guest(owner, [MUCH, 0.0]);
    Machine::new([2.0, 0.0], [("d.1", one("d")), ("d.2", one("d")), ("e.1", one("e"))])
}

#[test]
fn experiment_1_settles_at_the_fixed_point() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 60);
    assert!(near(&machine.gets(0), &[19.0 / 33.0, 19.0 / 33.0, 28.0 / 33.0], 0.02), "{:?}", machine.gets(0));

    let status = agent.status(0.0);
    let heaviness: Vec<(&str, f64)> = status.users.iter().map(|u| (&*u.name, u.heaviness)).collect();
    assert!(heaviness[0].0 == "d" && heaviness[0].1 > heaviness[1].1, "{heaviness:?}");
    assert!((status.users[1].shares["cpu"] - 14.0 / 33.0).abs() < 0.02, "{:?}", status.users);
    assert!(status.resources["cpu"].bottleneck && status.alone_s.is_none());
    let why = status.why("e").unwrap();
    assert!(why.contains("e.1 on a: h_v") && why.contains("used up on a: cpu"), "{why}");
    assert_eq!(status.why("nobody"), None);
}

#[test]
fn a_weight_that_has_come_to_its_rest_is_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 100);
    let writes = machine.world().writes;
    run(&mut [(&machine, &mut agent)], 100, 100);
    assert_eq!(machine.world().writes, writes);
}

#[test]
fn the_papers_map_oscillates_here_too() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting { law: Law::Linear, ..Setting::in_folder(folder.path()) }.start(&machine);
    let mut seen = Vec::new();
    for s in 0..100 {
        run(&mut [(&machine, &mut agent)], s, 1);
        seen.push(machine.gets(0)[2]);
    }
    let (least, most) = seen[50..].iter().fold((2.0_f64, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
    assert!(most - least > 0.5, "{least} {most}");
}

/// Processors and disk on two nodes: d and e on a, e and f on b, where they want different things.
fn experiment_2() -> (Machine, Machine) {
    let a = Machine::new([2.0, 1.5e8], [("d.1", guest("d", [MUCH; 2])), ("e.1", guest("e", [MUCH; 2]))]);
    let b = Machine::new([2.0, 1.5e8], [("e.2", guest("e", [MUCH, 0.0])), ("f.1", guest("f", [0.0, MUCH]))]);
    (a, b)
}

#[test]
fn experiment_2_settles_however_old_the_others_word_is() {
    for delay in 0..=3 {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (a, b) = experiment_2();
        let bus = Bus::default();
        let of = |node, folder: &tempfile::TempDir| Setting {
            node,
            resources: vec![Control::Cpu, Control::Disk],
            delay: delay as u32,
            peers: Box::new(bus.peers(delay)),
            ..Setting::in_folder(folder.path())
        };
        let (mut on_a, mut on_b) = (of("a", &folders[0]).start(&a), of("b", &folders[1]).start(&b));
        run(&mut [(&a, &mut on_a), (&b, &mut on_b)], 0, 200);
        assert!(near(&a.gets(0), &[4.0 / 3.0, 2.0 / 3.0], 0.02), "{delay} {:?}", a.gets(0));
        assert!(near(&a.gets(1), &[1e8, 5e7], 0.03), "{delay} {:?}", a.gets(1));
        assert_eq!((b.gets(0), b.gets(1)), (vec![2.0, 0.0], vec![0.0, 1.5e8]));
    }
}

#[test]
fn what_was_written_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    machine.world().guests.get_mut("d.2").unwrap().weights = [77, 333];
    let before = machine.weights();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    assert_ne!(machine.weights(), before);
    let released = agent.release();
    assert_eq!((released.groups, released.failed.len(), machine.weights()), (3, 0, before.clone()));
    // It may go on, and does.
    run(&mut [(&machine, &mut agent)], 20, 20);
    assert_ne!(machine.weights(), before);
}

#[test]
fn a_crash_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    machine.world().guests.get_mut("d.2").unwrap().weights = [77, 333];
    let before = machine.weights();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    drop(agent);
    assert_ne!(machine.weights(), before);

    // One guest is another now, of the same name; one is nobody's guest any more.
    {
        let mut world = machine.world();
        let new = guest("e", [MUCH, 0.0]);
        world.guests.insert("e.1".into(), machine::Sim { identity: 2, weights: [55, 66], ..new });
    }
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 20, 20);
    agent.release();
    assert_eq!(machine.weights(), [before[0], before[1], [55, 66]]);
    drop(agent);
    assert!(Journal::open(&folder.path().join("agent.redb")).unwrap().entries().unwrap().is_empty());
}

#[test]
fn who_is_no_guest_any_more_after_a_crash_gets_back_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    drop(agent);
    // The configuration of the next life names nobody of these.
    let elsewhere = Machine::new([2.0, 0.0], []);
    let setting = Setting::in_folder(folder.path());
    let mut agent = setting.start_with(&elsewhere, &machine);
    agent.update(SECOND).unwrap();
    assert_eq!(machine.weights(), [[100, 100]; 3]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting { journal: None, ..Setting::in_folder(folder.path()) }.start(&machine);
    let mut changes = 0;
    for s in 0..20 {
        machine.work(SECOND);
        changes += agent.update(Duration::from_secs(s)).unwrap().changes.len();
    }
    assert!(changes > 0);
    assert_eq!((machine.weights(), machine.world().writes), (vec![[100, 100]; 3], 0));
    assert!(!agent.status(0.0).applied);
}

#[test]
fn without_the_others_everything_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let peers = Bus::default().peers(0);
    let cut = std::sync::Arc::clone(&peers.cut);
    let mut agent = Setting { peers: Box::new(peers), ..Setting::in_folder(folder.path()) }.start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 40);
    let settled = machine.weights();
    *cut.lock().unwrap() = Some(Duration::from_secs(40));
    // At first towards neutral, by half at each update.
    run(&mut [(&machine, &mut agent)], 40, 2);
    let aged = machine.weights();
    assert!(settled[0][0] < aged[0][0] && aged[0][0] < 100, "{settled:?} {aged:?}");
    run(&mut [(&machine, &mut agent)], 42, 15);
    assert_eq!(machine.weights(), [[100, 100]; 3]);
    assert!(agent.status(0.0).remarks.iter().any(|r| r.contains("no other node is heard")));
    *cut.lock().unwrap() = None;
    run(&mut [(&machine, &mut agent)], 57, 60);
    assert!(near(&machine.gets(0), &[19.0 / 33.0, 19.0 / 33.0, 28.0 / 33.0], 0.02), "{:?}", machine.gets(0));
    drop(agent);
    // The journal still knows what was there.
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    agent.update(SECOND).unwrap();
    agent.release();
    assert_eq!(machine.weights(), [[100, 100]; 3]);
}

#[test]
fn guests_come_and_go_and_vanish_between_the_look_and_the_reading() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 10);
    // Listed, but gone when it is read; and one that was never there when it was to be taken in.
    let ghost = |name: &str| evenhand_agent::discovery::Guest {
        name: name.into(),
        owner: "d".into(),
        group: evenhand_enforcers::cgroups::Group { path: format!("fair/{name}"), ..Default::default() },
        identity: 1,
        processors: Some(1.0),
        memory_bytes: None,
    };
    {
        let mut world = machine.world();
        world.guests.remove("d.2");
        world.ghosts = vec![ghost("d.2"), ghost("d.9")];
    }
    run(&mut [(&machine, &mut agent)], 10, 3);
    assert_eq!(agent.status(0.0).guests.len(), 2);
    assert!(agent.status(0.0).remarks.is_empty(), "{:?}", agent.status(0.0).remarks);
    {
        let mut world = machine.world();
        world.ghosts.clear();
        world.guests.insert("d.2".into(), guest("d", [MUCH, 0.0]));
        world.guests.insert("f.1".into(), guest("f", [MUCH, 0.0]));
    }
    run(&mut [(&machine, &mut agent)], 13, 80);
    let gets = machine.gets(0);
    assert!(gets[2] > gets[0] && (gets[2] - gets[3]).abs() < 0.02, "{gets:?}");
}

#[test]
fn what_cannot_be_read_or_written_is_said_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    machine.world().guests.get_mut("d.1").unwrap().fails = Some("read");
    machine.world().guests.get_mut("d.2").unwrap().fails = Some("write");
    machine.work(SECOND);
    let update = agent.update(Duration::from_secs(5)).unwrap();
    assert!(update.news.iter().any(|n| n.contains("expected a number")), "{:?}", update.news);
    assert!(update.news.iter().any(|n| n.contains("can no longer be set: test")), "{:?}", update.news);
    machine.work(SECOND);
    // Still so, but no news.
    assert!(agent.update(Duration::from_secs(6)).unwrap().news.is_empty());
    assert_eq!(agent.status(0.0).remarks.len(), 2);
    assert_eq!(agent.status(0.0).totals.errors, 4);
}

#[test]
fn who_could_not_be_weighed_at_first_is_later() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    machine.world().guests.get_mut("e.1").unwrap().fails = Some("admit");
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 10);
    assert!(agent.status(0.0).remarks.iter().any(|r| r.contains("the bus")), "{:?}", agent.status(0.0).remarks);
    assert_eq!(machine.weights()[2], [100; 2]);
    machine.world().guests.get_mut("e.1").unwrap().fails = None;
    run(&mut [(&machine, &mut agent)], 10, 60);
    assert!(near(&machine.gets(0), &[19.0 / 33.0, 19.0 / 33.0, 28.0 / 33.0], 0.02), "{:?}", machine.gets(0));
    drop(agent);
    // What it had was written down then.
    Setting::in_folder(folder.path()).start(&machine).release();
    assert_eq!(machine.weights(), [[100, 100]; 3]);
}

#[test]
fn what_cannot_be_put_back_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    machine.world().guests.get_mut("e.1").unwrap().fails = Some("restore");
    let released = agent.release();
    assert_eq!((released.failed.len(), released.left.len()), (1, 1));
    assert_ne!(machine.weights()[2], [100; 2]);
    drop(agent);
    // The next life does not know it as a guest, and tries at each update.
    let elsewhere = Machine::new([2.0, 0.0], []);
    let mut agent = Setting::in_folder(folder.path()).start_with(&elsewhere, &machine);
    agent.update(SECOND).unwrap();
    assert_ne!(machine.weights()[2], [100; 2]);
    machine.world().guests.get_mut("e.1").unwrap().fails = None;
    agent.update(2 * SECOND).unwrap();
    assert_eq!(machine.weights(), [[100; 2]; 3]);
}

/// A guest that ends and another that comes at the same look: the new one has nothing of the old one's weight.
#[test]
fn a_new_guest_begins_at_neutral() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 60);
    {
        let mut world = machine.world();
        let new = guest("f", [0.0; 2]);
        world.guests.remove("d.1");
        world.guests.insert("f.1".into(), new);
    }
    agent.update(Duration::from_secs(60)).unwrap();
    let weight = |name: &str| agent.status(0.0).guests.iter().find(|g| g.name == name).unwrap().weight;
    // One update away from 1.
    assert!((0.5..=1.5).contains(&weight("f.1")) && weight("e.1") > 1.0, "{} {}", weight("f.1"), weight("e.1"));
}

#[test]
fn counters_that_go_backwards_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    machine.world().guests.get_mut("d.1").unwrap().used = [0.0; 2];
    run(&mut [(&machine, &mut agent)], 5, 1);
    assert_eq!(agent.status(0.0).totals.backwards, 1);
}

#[test]
fn ten_thousand_users() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new([64.0, 0.0], []);
    for user in 0..10_000 {
        let name: &'static str = Box::leak(format!("u{user:05}").into_boxed_str());
        machine.world().guests.insert(name.into(), guest(name, [if user < 100 { 1.0 } else { 0.001 }, 0.0]));
    }
    let mut agent = Setting { law: Law::Integral(IntegralSettings::default()), ..Setting::in_folder(folder.path()) }
        .start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    let status = agent.status(0.0);
    assert_eq!((status.users.len(), status.guests.len()), (10_000, 10_000));
    assert!(status.users[..100].iter().all(|user| user.name.as_str() < "u00100"));
}

#[test]
fn a_digest_tells_texts_and_their_borders_apart() {
    assert_eq!(digest(["ab", "c"]), digest(["ab", "c"]));
    assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
    assert_ne!(digest(["ab"]), digest(["ab", ""]));
}
