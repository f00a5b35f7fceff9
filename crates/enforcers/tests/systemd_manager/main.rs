//! The enforcer for systemd against a fake manager on a private bus. The tests are skipped where there is no `dbus-daemon`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[allow(unreachable_pub)]
mod support;

use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::{
    Change, Enforcer, Group, GroupId, KernelError, ProtectedCgroups, Protection, Resource, SavedState, Targets,
};
use evenhand_enforcers::systemd::{Settings, SystemdDbus};

use support::{Call, Daemon, Fake};

macro_rules! bus_or_skip {
    () => {
        match Daemon::start() {
            Some(daemon) => daemon,
            None => {
                eprintln!("skipped: no dbus-daemon");
                return;
            }
        }
    };
}

const A: &str = "machine-qemu\\x2d1\\x2da.scope";
const B: &str = "machine-qemu\\x2d2\\x2db.scope";

fn enforcer(daemon: &Daemon) -> SystemdDbus {
    let address = Some(daemon.address.clone());
    let timeout = Duration::from_secs(2);
    let protected = ProtectedCgroups::from_text(
        "0::/system.slice/agent.service
",
    );
    SystemdDbus::new(Settings { address, memory: Some(Protection::Low), timeout, ..Settings::default() }, protected)
        .unwrap()
}

fn group(unit: &str) -> Group {
    Group { path: format!("machine.slice/{unit}"), unit: Some(unit.into()), ..Group::default() }
}

fn call(unit: &str, values: &[(&str, u64)]) -> Call {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Call { unit: unit.into(), runtime: true, values }
}

fn apply(enforcer: &mut SystemdDbus, id: u32, targets: Targets) -> Vec<Change> {
    let mut changes = Vec::new();
    enforcer.apply(GroupId(id), &targets, &mut changes).unwrap();
    changes
}

/// Waits for a condition, because signals arrive asynchronously.
fn eventually(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_dry_run_reports_what_it_would_set_and_sets_nothing() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A]);
    let mut enforcer = enforcer(&daemon).dry_run();
    let saved = enforcer.admit(GroupId(0), &group(A)).unwrap();
    let targets = Targets { memory: Some(4096.0), ..Targets::equal_weights(2.0) };
    let changes: Vec<_> = apply(&mut enforcer, 0, targets).iter().map(|c| (c.resource, c.value)).collect();
    assert_eq!(changes, [(Resource::Cpu, 200), (Resource::Memory, 4096), (Resource::Disk, 200)]);
    enforcer.flush().unwrap();
    assert_eq!(apply(&mut enforcer, 0, targets), []);
    enforcer.restore(&group(A), &saved).unwrap();
    assert_eq!(fake.calls(), []);
}

#[test]
fn each_unit_takes_one_call_for_all_values_that_changed() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    let mut enforcer = enforcer(&daemon);
    assert_eq!(enforcer.resources(), [Resource::Cpu, Resource::Memory, Resource::Disk]);
    for (id, unit) in [(0, A), (1, B)] {
        let saved = enforcer.admit(GroupId(id), &group(unit)).unwrap();
        let found: Vec<_> = saved.0.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, [("CPUWeight", "not set"), ("IOWeight", "not set"), ("MemoryLow", "0")]);
    }
    assert_eq!(fake.state.lock().unwrap().subscribers, 1);

    let targets = Targets { memory: Some(4096.0), ..Targets::equal_weights(2.0) };
    let changes: Vec<_> = apply(&mut enforcer, 0, targets).iter().map(|c| (c.resource, c.value)).collect();
    assert_eq!(changes, [(Resource::Cpu, 200), (Resource::Memory, 4096), (Resource::Disk, 200)]);
    apply(&mut enforcer, 1, Targets { cpu: Some(0.5), ..Targets::default() });
    assert_eq!(fake.calls(), []);
    enforcer.flush().unwrap();
    let mut calls = fake.calls();
    calls.sort_by(|a, b| a.unit.cmp(&b.unit));
    let all = [("CPUWeight", 200), ("MemoryLow", 4096), ("IOWeight", 200)];
    assert_eq!(calls, [call(A, &all), call(B, &[("CPUWeight", 50)])]);

    // A value that is equal on systemd's scale is not sent.
    assert_eq!(apply(&mut enforcer, 0, Targets { cpu: Some(2.001), ..targets }), []);
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), []);
    assert_eq!(apply(&mut enforcer, 0, Targets { disk: Some(3.0), ..targets }).len(), 1);
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), [call(A, &[("IOWeight", 300)])]);
    assert!(matches!(enforcer.apply(GroupId(9), &targets, &mut Vec::new()), Err(KernelError::NotAdmitted(_))));
}

#[test]
fn earlier_values_are_restored() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("IOWeight".into(), 700);
    let mut first = enforcer(&daemon);
    let saved = first.admit(GroupId(0), &group(A)).unwrap();
    apply(&mut first, 0, Targets { memory: Some(f64::from(1 << 20)), ..Targets::equal_weights(4.0) });
    first.flush().unwrap();
    assert_eq!(fake.value(A, "CPUWeight"), 400);
    fake.calls();
    drop(first);

    // By another process, which has only the saved state.
    let mut second = enforcer(&daemon);
    second.restore(&group(A), &saved).unwrap();
    let back = [("CPUWeight", u64::MAX), ("IOWeight", 700), ("MemoryLow", 0)];
    assert_eq!(fake.calls(), [call(A, &back)]);
    second.restore(&group(A), &saved).unwrap();
    // Values that are already set are not sent.
    assert_eq!(fake.calls(), []);

    // A restored unit can be given the same weights again.
    second.admit(GroupId(0), &group(A)).unwrap();
    for _ in 0..2 {
        assert_eq!(apply(&mut second, 0, Targets { cpu: Some(4.0), ..Targets::default() }).len(), 1);
        second.flush().unwrap();
        assert_eq!(fake.value(A, "CPUWeight"), 400);
        second.restore(&group(A), &saved).unwrap();
        assert_eq!(fake.value(A, "CPUWeight"), u64::MAX);
    }
    // A unit that no longer exists needs nothing; an invalid saved value is reported after the others are restored.
    second.restore(&group("gone.scope"), &saved).unwrap();
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("CPUWeight".into(), 9);
    let mut odd = saved.clone();
    odd.0.insert("IOWeight".into(), "many".into());
    assert!(matches!(second.restore(&group(A), &odd), Err(KernelError::Content { .. })));
    assert_eq!(fake.value(A, "CPUWeight"), u64::MAX);
    second.restore(&group(A), &SavedState::default()).unwrap();
}

#[test]
fn all_values_are_sent_again_after_a_reload() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    let mut enforcer = enforcer(&daemon);
    for (id, unit) in [(0, A), (1, B)] {
        enforcer.admit(GroupId(id), &group(unit)).unwrap();
        apply(&mut enforcer, id, Targets { cpu: Some(f64::from(id) + 2.0), ..Targets::default() });
    }
    enforcer.flush().unwrap();
    fake.calls();
    fake.reload();
    assert_eq!(fake.value(A, "CPUWeight"), 50);
    // No weight changes, and still all are sent.
    eventually(|| {
        enforcer.flush().unwrap();
        [A, B].map(|unit| fake.value(unit, "CPUWeight")) == [200, 300]
    });
    assert_eq!(fake.calls().len(), 2);
    for _ in 0..5 {
        enforcer.flush().unwrap();
    }
    assert_eq!(fake.calls(), []);
}

#[test]
fn a_unit_that_vanishes_is_gone() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    let mut enforcer = enforcer(&daemon);
    for (id, unit) in [(0, A), (1, B)] {
        enforcer.admit(GroupId(id), &group(unit)).unwrap();
        apply(&mut enforcer, id, Targets::equal_weights(2.0));
    }
    fake.state.lock().unwrap().units.remove(A);
    assert!(matches!(enforcer.flush(), Err(KernelError::Gone(path)) if path.ends_with(A)));
    // The other unit got its call.
    assert_eq!(fake.value(B, "CPUWeight"), 200);
    fake.calls();
    assert!(matches!(
        enforcer.apply(GroupId(0), &Targets::equal_weights(3.0), &mut Vec::new()),
        Err(KernelError::Gone(_))
    ));
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), []);
    enforcer.dismiss(GroupId(0));
    assert!(matches!(enforcer.admit(GroupId(0), &group(A)), Err(KernelError::Gone(_))));
    for bad in ["-.slice", "init.scope", "a.timer"] {
        assert!(matches!(enforcer.admit(GroupId(0), &group(bad)), Err(KernelError::InvalidPath(_))), "{bad}");
    }
    for path in ["system.slice", "system.slice/agent.service"] {
        let unit = Some(path.rsplit('/').next().unwrap().to_owned());
        let error = enforcer.admit(GroupId(0), &Group { path: path.into(), unit, ..Group::default() }).unwrap_err();
        assert!(matches!(error, KernelError::Protected(_)), "{error}");
    }
    let none = Group { path: "a".into(), ..Group::default() };
    assert!(matches!(enforcer.admit(GroupId(0), &none), Err(KernelError::Withdrawn { .. })));
}

#[test]
fn a_refusal_is_reported_and_the_call_is_repeated() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A]);
    let mut enforcer = enforcer(&daemon);
    enforcer.admit(GroupId(0), &group(A)).unwrap();
    fake.state.lock().unwrap().denies = true;
    for _ in 0..2 {
        assert_eq!(apply(&mut enforcer, 0, Targets { disk: Some(2.0), ..Targets::default() }).len(), 1);
        let error = enforcer.flush().unwrap_err();
        assert!(matches!(error, KernelError::Withdrawn { resource: Resource::Disk, .. }), "{error}");
    }
    fake.state.lock().unwrap().denies = false;
    apply(&mut enforcer, 0, Targets { disk: Some(2.0), ..Targets::default() });
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), [call(A, &[("IOWeight", 200)])]);
}

#[test]
fn properties_that_an_older_systemd_does_not_know_are_skipped() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A]);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().remove("MemoryLow");
    let mut enforcer = enforcer(&daemon);
    let saved = enforcer.admit(GroupId(0), &group(A)).unwrap();
    assert_eq!(saved.0.keys().map(String::as_str).collect::<Vec<_>>(), ["CPUWeight", "IOWeight"]);
    let targets = Targets { memory: Some(4096.0), ..Targets::equal_weights(2.0) };
    assert_eq!(apply(&mut enforcer, 0, targets).len(), 2);
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), [call(A, &[("CPUWeight", 200), ("IOWeight", 200)])]);
}

#[test]
fn a_lost_connection_is_reestablished() {
    let daemon = bus_or_skip!();
    let address = daemon.address.clone();
    let mut enforcer = enforcer(&daemon);
    // There is no manager yet.
    assert!(matches!(enforcer.check(), Err(KernelError::Io { .. })));
    assert!(matches!(enforcer.admit(GroupId(0), &group(A)), Err(KernelError::Io { .. })));
    let fake = Fake::start(&address, &[A]);
    enforcer.check().unwrap();
    enforcer.admit(GroupId(0), &group(A)).unwrap();
    apply(&mut enforcer, 0, Targets { cpu: Some(2.0), ..Targets::default() });
    enforcer.flush().unwrap();

    // The manager leaves the bus and returns without the values that were set.
    let state = fake.stop();
    apply(&mut enforcer, 0, Targets { cpu: Some(3.0), ..Targets::default() });
    assert!(matches!(enforcer.flush(), Err(KernelError::Io { .. })));
    let fake = Fake::with(&address, state);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("CPUWeight".into(), u64::MAX);
    apply(&mut enforcer, 0, Targets { cpu: Some(3.0), ..Targets::default() });
    enforcer.flush().unwrap();
    assert_eq!(fake.value(A, "CPUWeight"), 300);

    // The same between two updates: no call fails, and still all values are sent again.
    let state = fake.stop();
    let subscribed = state.lock().unwrap().subscribers;
    let fake = Fake::with(&address, state);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("CPUWeight".into(), u64::MAX);
    eventually(|| {
        enforcer.flush().unwrap();
        fake.value(A, "CPUWeight") == 300
    });
    assert_eq!(fake.state.lock().unwrap().subscribers, subscribed + 1);

    // The bus itself ends.
    drop(fake);
    drop(daemon);
    apply(&mut enforcer, 0, Targets { cpu: Some(4.0), ..Targets::default() });
    assert!(matches!(enforcer.flush(), Err(KernelError::Io { .. })));
}

#[test]
fn many_units_are_set_concurrently() {
    let daemon = bus_or_skip!();
    let names: Vec<String> = (0..300).map(|i| format!("job{i}.scope")).collect();
    let fake = Fake::start(&daemon.address, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut enforcer = enforcer(&daemon);
    for (i, name) in names.iter().enumerate() {
        enforcer.admit(GroupId(i as u32), &group(name)).unwrap();
        apply(&mut enforcer, i as u32, Targets::equal_weights(1.0 + i as f64 / 100.0));
    }
    let begun = Instant::now();
    enforcer.flush().unwrap();
    eprintln!("{:.0} us per unit", begun.elapsed().as_secs_f64() * 1e6 / names.len() as f64);
    assert_eq!(fake.calls().len(), names.len());
    for (i, name) in names.iter().enumerate() {
        assert_eq!(fake.value(name, "CPUWeight"), 100 + i as u64);
    }
}
