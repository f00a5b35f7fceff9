//! The whole agent on simulated machines: the weights at which it settles, and its reaction to failures.
#![allow(clippy::unwrap_used)]

mod full_disk;
mod machine;

use std::path::Path;
use std::time::Duration;

use evenhand_agent::{Agent, Journal, Law, digest};
use evenhand_enforcers::cgroups::Resource;
use evenhand_heaviness::controller::IntegralSettings;

use crate::machine::{Bus, MUCH, Machine, SECOND, Setting, run, workload};

fn near(found: &[f64], expected: &[f64], by: f64) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= by * b.max(1.0))
}

fn experiment_1() -> Machine {
    let one = |owner| workload(owner, [MUCH, 0.0]);
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
    assert_eq!(status.why("z"), None);
}

#[test]
fn settled_weights_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 100);
    let writes = machine.world().writes;
    run(&mut [(&machine, &mut agent)], 100, 100);
    assert_eq!(machine.world().writes, writes);
}

#[test]
fn the_linear_map_of_the_paper_oscillates() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting { law: Law::Linear, ..Setting::in_folder(folder.path()) }.start(&machine);
    let mut seen = Vec::new();
    for s in 0..100 {
        run(&mut [(&machine, &mut agent)], s, 1);
        seen.push(machine.gets(0)[2]);
    }
    let (minimum, maximum) = seen[50..].iter().fold((2.0_f64, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
    assert!(maximum - minimum > 0.5, "{minimum} {maximum}");
}

#[test]
fn a_pause_of_the_agent_or_of_the_machine_moves_weights_by_one_step_at_most() {
    // A stopped agent finds that the workloads ran meanwhile; after a suspension they did not.
    for (pause, workloads_ran) in [(60, true), (60, false), (3600, true), (3600, false)] {
        let folder = tempfile::tempdir().unwrap();
        let machine = experiment_1();
        let mut agent = Setting::in_folder(folder.path()).start(&machine);
        run(&mut [(&machine, &mut agent)], 0, 60);
        let (settled, before) = (machine.gets(0), machine.weights());
        if workloads_ran {
            machine.work(Duration::from_secs(pause));
        }
        run(&mut [(&machine, &mut agent)], 60 + pause, 1);
        for (after, before) in machine.weights().iter().zip(&before) {
            let ratio = after[0] as f64 / before[0] as f64;
            // exp(0.69), the limit of a step, with rounding.
            assert!((0.49..=2.05).contains(&ratio), "{pause} s, {workloads_ran}: {before:?} to {after:?}");
        }
        run(&mut [(&machine, &mut agent)], 61 + pause, 60);
        assert!(near(&machine.gets(0), &settled, 0.02), "{pause} s, {workloads_ran}: {:?}", machine.gets(0));
    }
}

/// CPU and disk on two nodes: d and e on node a, e and f on node b, with different demands.
fn experiment_2() -> (Machine, Machine) {
    let a = Machine::new([2.0, 1.5e8], [("d.1", workload("d", [MUCH; 2])), ("e.1", workload("e", [MUCH; 2]))]);
    let b = Machine::new([2.0, 1.5e8], [("e.2", workload("e", [MUCH, 0.0])), ("f.1", workload("f", [0.0, MUCH]))]);
    (a, b)
}

#[test]
fn experiment_2_settles_whatever_the_age_of_other_nodes_records() {
    for delay in 0..=3 {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (a, b) = experiment_2();
        let bus = Bus::default();
        let of = |node, folder: &tempfile::TempDir| Setting {
            node,
            resources: vec![Resource::Cpu, Resource::Disk],
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

/// A machine whose group d.2 had weights of its own, the weights of all groups before, and an agent after 20 updates.
fn after_20_updates(folder: &Path) -> (Machine, Vec<[u64; 2]>, Agent) {
    let machine = experiment_1();
    machine.world().workloads.get_mut("d.2").unwrap().weights = [77, 333];
    let before = machine.weights();
    let mut agent = Setting::in_folder(folder).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    (machine, before, agent)
}

#[test]
fn earlier_weights_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, mut agent) = after_20_updates(folder.path());
    assert_ne!(machine.weights(), before);
    let released = agent.release();
    assert_eq!((released.groups, released.failed.len(), machine.weights()), (3, 0, before.clone()));
    // The agent may continue.
    run(&mut [(&machine, &mut agent)], 20, 20);
    assert_ne!(machine.weights(), before);
}

#[test]
fn a_crash_loses_no_saved_weights() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, agent) = after_20_updates(folder.path());
    drop(agent);
    assert_ne!(machine.weights(), before);

    // Meanwhile one workload was replaced by a new one of the same name.
    {
        let mut world = machine.world();
        let new = workload("e", [MUCH, 0.0]);
        world.workloads.insert("e.1".into(), machine::Sim { identity: 2, weights: [55, 66], ..new });
    }
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 20, 20);
    agent.release();
    assert_eq!(machine.weights(), [before[0], before[1], [55, 66]]);
    drop(agent);
    assert!(in_journal(&folder).is_empty());
}

#[test]
fn groups_that_are_no_longer_workloads_after_a_crash_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    drop(agent);
    // The next configuration names none of these workloads.
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
fn an_isolated_node_restores_all_groups() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let peers = Bus::default().peers(0);
    let cut = std::sync::Arc::clone(&peers.cut);
    let mut agent = Setting { peers: Box::new(peers), ..Setting::in_folder(folder.path()) }.start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 40);
    let settled = machine.weights();
    *cut.lock().unwrap() = Some(Duration::from_secs(40));
    // At first each update halves the distance to neutral.
    run(&mut [(&machine, &mut agent)], 40, 2);
    let aged = machine.weights();
    assert!(settled[0][0] < aged[0][0] && aged[0][0] < 100, "{settled:?} {aged:?}");
    run(&mut [(&machine, &mut agent)], 42, 15);
    assert_eq!(machine.weights(), [[100, 100]; 3]);
    assert!(agent.status(0.0).warnings.iter().any(|r| r.contains("no other node is reachable")));
    *cut.lock().unwrap() = None;
    run(&mut [(&machine, &mut agent)], 57, 60);
    assert!(near(&machine.gets(0), &[19.0 / 33.0, 19.0 / 33.0, 28.0 / 33.0], 0.02), "{:?}", machine.gets(0));
    drop(agent);
    // The journal still has the earlier weights.
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    agent.update(SECOND).unwrap();
    agent.release();
    assert_eq!(machine.weights(), [[100, 100]; 3]);
}

#[test]
fn workloads_may_vanish_between_listing_and_reading() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 10);
    // One is listed but gone when it is read; one is gone when it is admitted.
    let ghost = |name: &str| evenhand_agent::discovery::RunningWorkload {
        name: name.into(),
        owner: "d".into(),
        group: evenhand_enforcers::cgroups::Group { path: format!("fair/{name}"), ..Default::default() },
        identity: 1,
        processors: Some(1.0),
        memory_bytes: None,
    };
    {
        let mut world = machine.world();
        world.workloads.remove("d.2");
        world.ghosts = vec![ghost("d.2"), ghost("d.9")];
    }
    run(&mut [(&machine, &mut agent)], 10, 3);
    assert_eq!(agent.status(0.0).workloads.len(), 2);
    assert!(agent.status(0.0).warnings.is_empty(), "{:?}", agent.status(0.0).warnings);
    {
        let mut world = machine.world();
        world.ghosts.clear();
        world.workloads.insert("d.2".into(), workload("d", [MUCH, 0.0]));
        world.workloads.insert("f.1".into(), workload("f", [MUCH, 0.0]));
    }
    run(&mut [(&machine, &mut agent)], 13, 80);
    let gets = machine.gets(0);
    assert!(gets[2] > gets[0] && (gets[2] - gets[3]).abs() < 0.02, "{gets:?}");
}

#[test]
fn errors_of_single_workloads_are_reported_and_the_others_continue() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    machine.world().workloads.get_mut("d.1").unwrap().fails = Some("read");
    machine.world().workloads.get_mut("d.2").unwrap().fails = Some("write");
    machine.work(SECOND);
    let update = agent.update(Duration::from_secs(5)).unwrap();
    assert!(update.new_warnings.iter().any(|n| n.contains("expected a number")), "{:?}", update.new_warnings);
    assert!(update.new_warnings.iter().any(|n| n.contains("can no longer be set: test")), "{:?}", update.new_warnings);
    machine.work(SECOND);
    // The errors persist, but are not new.
    assert!(agent.update(Duration::from_secs(6)).unwrap().new_warnings.is_empty());
    assert_eq!(agent.status(0.0).warnings.len(), 2);
    assert_eq!(agent.status(0.0).totals.errors, 4);
}

#[test]
fn a_workload_that_the_enforcer_rejects_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    machine.world().workloads.get_mut("e.1").unwrap().fails = Some("admit");
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 10);
    assert!(agent.status(0.0).warnings.iter().any(|r| r.contains("the bus")), "{:?}", agent.status(0.0).warnings);
    assert_eq!(machine.weights()[2], [100; 2]);
    machine.world().workloads.get_mut("e.1").unwrap().fails = None;
    run(&mut [(&machine, &mut agent)], 10, 60);
    assert!(near(&machine.gets(0), &[19.0 / 33.0, 19.0 / 33.0, 28.0 / 33.0], 0.02), "{:?}", machine.gets(0));
    drop(agent);
    // The earlier weights were stored then.
    Setting::in_folder(folder.path()).start(&machine).release();
    assert_eq!(machine.weights(), [[100, 100]; 3]);
}

#[test]
fn a_failed_restore_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    machine.world().workloads.get_mut("e.1").unwrap().fails = Some("restore");
    let released = agent.release();
    assert_eq!((released.failed.len(), released.left.len()), (1, 1));
    assert_ne!(machine.weights()[2], [100; 2]);
    drop(agent);
    // After a restart it is no longer a workload, and each update tries again.
    let elsewhere = Machine::new([2.0, 0.0], []);
    let mut agent = Setting::in_folder(folder.path()).start_with(&elsewhere, &machine);
    agent.update(SECOND).unwrap();
    assert_ne!(machine.weights()[2], [100; 2]);
    machine.world().workloads.get_mut("e.1").unwrap().fails = None;
    agent.update(2 * SECOND).unwrap();
    assert_eq!(machine.weights(), [[100; 2]; 3]);
}

#[test]
fn what_only_the_second_run_divides_is_restored_to_what_that_found() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, agent) = after_20_updates(folder.path());
    drop(agent);
    {
        // As if the first run had not divided disks.
        let journal = Journal::open(&Journal::path_in(folder.path())).unwrap();
        let mut entries = journal.entries().unwrap();
        entries.iter_mut().for_each(|entry| drop(entry.saved.0.remove("disk")));
        journal.put(&entries).unwrap();
        machine.world().workloads.values_mut().for_each(|sim| sim.weights[1] = 44);
    }
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 20, 20);
    assert!(agent.release().failed.is_empty());
    assert_eq!(machine.weights(), [0, 1, 2].map(|i| [before[i][0], 44]));
}

/// Returns the paths of the groups in the journal of an agent that has ended.
fn in_journal(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = Journal::open(&Journal::path_in(folder.path())).unwrap().entries().unwrap();
    entries.into_iter().map(|entry| entry.group.path).collect()
}

#[test]
fn a_group_that_is_no_longer_listed_is_restored_while_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, mut agent) = after_20_updates(folder.path());
    assert_ne!(machine.weights()[1], before[1]);
    // The first time it cannot be restored at once, and the next update does it.
    machine.world().unlisted = vec!["d.2"];
    machine.world().workloads.get_mut("d.2").unwrap().fails = Some("restore");
    run(&mut [(&machine, &mut agent)], 20, 1);
    machine.world().workloads.get_mut("d.2").unwrap().fails = None;
    run(&mut [(&machine, &mut agent)], 21, 1);
    assert_eq!(machine.weights()[1], before[1]);
    // When it is listed again, what is saved is what it had first.
    machine.world().unlisted.clear();
    run(&mut [(&machine, &mut agent)], 22, 20);
    assert_ne!(machine.weights()[1], before[1]);
    machine.world().unlisted = vec!["d.1", "d.2", "e.1"];
    run(&mut [(&machine, &mut agent)], 42, 1);
    assert_eq!(machine.weights(), before);
    drop(agent);
    assert!(in_journal(&folder).is_empty());
}

#[test]
fn what_ends_between_listing_and_reading_leaves_nothing_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    let ghost = evenhand_agent::discovery::RunningWorkload {
        name: "d.2".into(),
        owner: "d".into(),
        group: evenhand_enforcers::cgroups::Group { path: "fair/d.2".into(), ..Default::default() },
        identity: 1,
        processors: Some(1.0),
        memory_bytes: None,
    };
    machine.world().workloads.remove("d.2");
    machine.world().ghosts = vec![ghost];
    run(&mut [(&machine, &mut agent)], 5, 1);
    machine.world().ghosts.clear();
    run(&mut [(&machine, &mut agent)], 6, 1);
    drop(agent);
    assert_eq!(in_journal(&folder), ["fair/d.1", "fair/e.1"]);
}

#[test]
fn an_isolated_node_restores_what_failed_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let peers = Bus::default().peers(0);
    let cut = std::sync::Arc::clone(&peers.cut);
    let mut agent = Setting { peers: Box::new(peers), ..Setting::in_folder(folder.path()) }.start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 40);
    *cut.lock().unwrap() = Some(Duration::from_secs(40));
    machine.world().workloads.get_mut("e.1").unwrap().fails = Some("restore");
    run(&mut [(&machine, &mut agent)], 40, 6);
    let warns = |agent: &Agent, text: &str| agent.status(0.0).warnings.iter().any(|w| w.contains(text));
    assert_ne!(machine.weights()[2], [100; 2]);
    assert!(warns(&agent, "1 group is still to be restored") && !warns(&agent, "all groups have"));
    machine.world().workloads.get_mut("e.1").unwrap().fails = None;
    run(&mut [(&machine, &mut agent)], 46, 1);
    assert_eq!(machine.weights(), [[100; 2]; 3]);
    assert!(warns(&agent, "all groups have their earlier settings"));
}

#[test]
fn a_crash_loses_no_saved_weights_of_a_workload_that_is_rejected_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let before = machine.weights();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 20);
    drop(agent);
    assert_ne!(machine.weights()[2], before[2]);
    // The enforcer neither admits nor restores it, as when systemd does not answer.
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    machine.world().workloads.get_mut("e.1").unwrap().fails = Some("admit or restore");
    run(&mut [(&machine, &mut agent)], 20, 1);
    machine.world().workloads.get_mut("e.1").unwrap().fails = None;
    run(&mut [(&machine, &mut agent)], 21, 20);
    // A second crash: the journal still has what was there before the first.
    drop(agent);
    assert_eq!(in_journal(&folder).len(), 3);
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    agent.release();
    assert_eq!(machine.weights(), before);
}

/// When a workload ends and another starts in the same snapshot, the new one does not inherit the weight.
#[test]
fn a_new_workload_starts_at_the_neutral_weight() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 60);
    {
        let mut world = machine.world();
        let new = workload("f", [0.0; 2]);
        world.workloads.remove("d.1");
        world.workloads.insert("f.1".into(), new);
    }
    agent.update(Duration::from_secs(60)).unwrap();
    let weight = |name: &str| agent.status(0.0).workloads.iter().find(|g| g.name == name).unwrap().weight;
    // One update after 1.
    assert!((0.5..=1.5).contains(&weight("f.1")) && weight("e.1") > 1.0, "{} {}", weight("f.1"), weight("e.1"));
}

#[test]
fn counters_that_go_backwards_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let machine = experiment_1();
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    machine.world().workloads.get_mut("d.1").unwrap().used = [0.0; 2];
    run(&mut [(&machine, &mut agent)], 5, 1);
    assert_eq!(agent.status(0.0).totals.backwards, 1);
}

#[test]
fn ten_thousand_users_are_handled() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new([64.0, 0.0], []);
    for user in 0..10_000 {
        let name: &'static str = Box::leak(format!("u{user:05}").into_boxed_str());
        machine.world().workloads.insert(name.into(), workload(name, [if user < 100 { 1.0 } else { 0.001 }, 0.0]));
    }
    let mut agent = Setting { law: Law::Integral(IntegralSettings::default()), ..Setting::in_folder(folder.path()) }
        .start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 5);
    let status = agent.status(0.0);
    assert_eq!((status.users.len(), status.workloads.len()), (10_000, 10_000));
    assert!(status.users[..100].iter().all(|user| user.name.as_str() < "u00100"));
}

#[test]
fn a_digest_depends_on_texts_and_their_boundaries() {
    assert_eq!(digest(["ab", "c"]), digest(["ab", "c"]));
    assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
    assert_ne!(digest(["ab"]), digest(["ab", ""]));
}

#[test]
fn what_no_workload_uses_is_zero_and_not_negative_zero() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new([2.0, 0.0], []);
    let mut agent = Setting::in_folder(folder.path()).start(&machine);
    run(&mut [(&machine, &mut agent)], 0, 2);
    let status = agent.status(0.0);
    assert!(status.resources.values().all(|of| of.used == 0.0 && of.used.is_sign_positive()), "{:?}", status.resources);
}
