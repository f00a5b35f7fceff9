//! Against a manager of the test's own on a bus of the test's own. They skip where there is no `dbus-daemon`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[allow(unreachable_pub)]
mod support;

use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::{
    Before, Change, Control, Enforcer, Group, GroupId, Hierarchies, KernelError, Levels, Own, Protection,
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
    let patience = Duration::from_secs(2);
    let unified = Some("/u".into());
    let own = Own::from_text("0::/system.slice/agent.service\n", &Hierarchies { unified, ..Hierarchies::default() });
    SystemdDbus::new(Settings { address, memory: Some(Protection::Low), patience, ..Settings::default() }, own).unwrap()
}

fn group(unit: &str) -> Group {
    Group { path: format!("machine.slice/{unit}"), unit: Some(unit.into()), ..Group::default() }
}

fn call(unit: &str, values: &[(&str, u64)]) -> Call {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Call { unit: unit.into(), runtime: true, values }
}

fn apply(enforcer: &mut SystemdDbus, id: u32, levels: Levels) -> Vec<Change> {
    let mut changes = Vec::new();
    enforcer.apply(GroupId(id), &levels, &mut changes).unwrap();
    changes
}

/// Signals come when they come.
fn eventually(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_call_a_unit_and_only_for_what_changed() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    let mut enforcer = enforcer(&daemon);
    assert_eq!(enforcer.controls(), [Control::Cpu, Control::Memory, Control::Disk]);
    for (id, unit) in [(0, A), (1, B)] {
        let before = enforcer.admit(GroupId(id), &group(unit)).unwrap();
        let found: Vec<_> = before.0.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, [("CPUWeight", "not set"), ("IOWeight", "not set"), ("MemoryLow", "0")]);
    }
    assert_eq!(fake.state.lock().unwrap().subscribers, 1);

    let levels = Levels { memory: Some(4096), ..Levels::weight(2.0) };
    let changes: Vec<_> = apply(&mut enforcer, 0, levels).iter().map(|c| (c.control, c.value)).collect();
    assert_eq!(changes, [(Control::Cpu, 200), (Control::Memory, 4096), (Control::Disk, 200)]);
    apply(&mut enforcer, 1, Levels { cpu: Some(0.5), ..Levels::default() });
    assert_eq!(fake.calls(), []);
    enforcer.flush().unwrap();
    let mut calls = fake.calls();
    calls.sort_by(|a, b| a.unit.cmp(&b.unit));
    let all = [("CPUWeight", 200), ("MemoryLow", 4096), ("IOWeight", 200)];
    assert_eq!(calls, [call(A, &all), call(B, &[("CPUWeight", 50)])]);

    // The same on systemd's scale is the same.
    assert_eq!(apply(&mut enforcer, 0, Levels { cpu: Some(2.001), ..levels }), []);
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), []);
    assert_eq!(apply(&mut enforcer, 0, Levels { disk: Some(3.0), ..levels }).len(), 1);
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), [call(A, &[("IOWeight", 300)])]);
    assert!(matches!(enforcer.apply(GroupId(9), &levels, &mut Vec::new()), Err(KernelError::Unknown(_))));
}

#[test]
fn what_was_there_comes_back() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("IOWeight".into(), 700);
    let mut first = enforcer(&daemon);
    let before = first.admit(GroupId(0), &group(A)).unwrap();
    apply(&mut first, 0, Levels { memory: Some(1 << 20), ..Levels::weight(4.0) });
    first.flush().unwrap();
    assert_eq!(fake.value(A, "CPUWeight"), 400);
    fake.calls();
    drop(first);

    // By another process, which has only what was kept.
    let mut second = enforcer(&daemon);
    second.restore(&group(A), &before).unwrap();
    let back = [("CPUWeight", u64::MAX), ("IOWeight", 700), ("MemoryLow", 0)];
    assert_eq!(fake.calls(), [call(A, &back)]);
    second.restore(&group(A), &before).unwrap();
    // What is so already is not said again.
    assert_eq!(fake.calls(), []);

    // Whoever is restored can be weighed again, with the same weights.
    second.admit(GroupId(0), &group(A)).unwrap();
    for _ in 0..2 {
        assert_eq!(apply(&mut second, 0, Levels { cpu: Some(4.0), ..Levels::default() }).len(), 1);
        second.flush().unwrap();
        assert_eq!(fake.value(A, "CPUWeight"), 400);
        second.restore(&group(A), &before).unwrap();
        assert_eq!(fake.value(A, "CPUWeight"), u64::MAX);
    }
    // A unit that is gone has nothing to be put back; a file that says nonsense is told, after the rest.
    second.restore(&group("gone.scope"), &before).unwrap();
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("CPUWeight".into(), 9);
    let mut odd = before.clone();
    odd.0.insert("IOWeight".into(), "many".into());
    assert!(matches!(second.restore(&group(A), &odd), Err(KernelError::Content { .. })));
    assert_eq!(fake.value(A, "CPUWeight"), u64::MAX);
    second.restore(&group(A), &Before::default()).unwrap();
}

#[test]
fn all_is_said_again_after_a_reload() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A, B]);
    let mut enforcer = enforcer(&daemon);
    for (id, unit) in [(0, A), (1, B)] {
        enforcer.admit(GroupId(id), &group(unit)).unwrap();
        apply(&mut enforcer, id, Levels { cpu: Some(f64::from(id) + 2.0), ..Levels::default() });
    }
    enforcer.flush().unwrap();
    fake.calls();
    fake.reload();
    assert_eq!(fake.value(A, "CPUWeight"), 50);
    // Nobody's weight changes.
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
        apply(&mut enforcer, id, Levels::weight(2.0));
    }
    fake.state.lock().unwrap().units.remove(A);
    assert!(matches!(enforcer.flush(), Err(KernelError::Gone(path)) if path.ends_with(A)));
    // The other one had its call.
    assert_eq!(fake.value(B, "CPUWeight"), 200);
    fake.calls();
    assert!(matches!(enforcer.apply(GroupId(0), &Levels::weight(3.0), &mut Vec::new()), Err(KernelError::Gone(_))));
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), []);
    enforcer.dismiss(GroupId(0));
    assert!(matches!(enforcer.admit(GroupId(0), &group(A)), Err(KernelError::Gone(_))));
    for bad in ["-.slice", "init.scope", "a.timer"] {
        assert!(matches!(enforcer.admit(GroupId(0), &group(bad)), Err(KernelError::Path(_))), "{bad}");
    }
    for own in ["system.slice", "system.slice/agent.service"] {
        let unit = Some(own.rsplit('/').next().unwrap().to_owned());
        let error = enforcer.admit(GroupId(0), &Group { path: own.into(), unit, ..Group::default() }).unwrap_err();
        assert!(matches!(error, KernelError::Own(_)), "{error}");
    }
    let none = Group { path: "a".into(), ..Group::default() };
    assert!(matches!(enforcer.admit(GroupId(0), &none), Err(KernelError::Withdrawn { .. })));
}

#[test]
fn a_refusal_is_told_and_tried_again() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A]);
    let mut enforcer = enforcer(&daemon);
    enforcer.admit(GroupId(0), &group(A)).unwrap();
    fake.state.lock().unwrap().denies = true;
    for _ in 0..2 {
        assert_eq!(apply(&mut enforcer, 0, Levels { disk: Some(2.0), ..Levels::default() }).len(), 1);
        let error = enforcer.flush().unwrap_err();
        assert!(matches!(error, KernelError::Withdrawn { control: Control::Disk, .. }), "{error}");
    }
    fake.state.lock().unwrap().denies = false;
    apply(&mut enforcer, 0, Levels { disk: Some(2.0), ..Levels::default() });
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), [call(A, &[("IOWeight", 200)])]);
}

#[test]
fn an_older_systemd_knows_less() {
    let daemon = bus_or_skip!();
    let fake = Fake::start(&daemon.address, &[A]);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().remove("MemoryLow");
    let mut enforcer = enforcer(&daemon);
    let before = enforcer.admit(GroupId(0), &group(A)).unwrap();
    assert_eq!(before.0.keys().map(String::as_str).collect::<Vec<_>>(), ["CPUWeight", "IOWeight"]);
    let levels = Levels { memory: Some(4096), ..Levels::weight(2.0) };
    assert_eq!(apply(&mut enforcer, 0, levels).len(), 2);
    enforcer.flush().unwrap();
    assert_eq!(fake.calls(), [call(A, &[("CPUWeight", 200), ("IOWeight", 200)])]);
}

#[test]
fn a_connection_that_is_lost_is_made_again() {
    let daemon = bus_or_skip!();
    let address = daemon.address.clone();
    let mut enforcer = enforcer(&daemon);
    // Nobody there yet.
    assert!(matches!(enforcer.check(), Err(KernelError::Io { .. })));
    assert!(matches!(enforcer.admit(GroupId(0), &group(A)), Err(KernelError::Io { .. })));
    let fake = Fake::start(&address, &[A]);
    enforcer.check().unwrap();
    enforcer.admit(GroupId(0), &group(A)).unwrap();
    apply(&mut enforcer, 0, Levels { cpu: Some(2.0), ..Levels::default() });
    enforcer.flush().unwrap();

    // The manager goes away and comes back, with nothing of what it was told.
    let state = fake.stop();
    apply(&mut enforcer, 0, Levels { cpu: Some(3.0), ..Levels::default() });
    assert!(matches!(enforcer.flush(), Err(KernelError::Io { .. })));
    let fake = Fake::with(&address, state);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("CPUWeight".into(), u64::MAX);
    apply(&mut enforcer, 0, Levels { cpu: Some(3.0), ..Levels::default() });
    enforcer.flush().unwrap();
    assert_eq!(fake.value(A, "CPUWeight"), 300);

    // The same, between two updates: nobody's call fails, and still it is told everything again.
    let state = fake.stop();
    let subscribed = state.lock().unwrap().subscribers;
    let fake = Fake::with(&address, state);
    fake.state.lock().unwrap().units.get_mut(A).unwrap().insert("CPUWeight".into(), u64::MAX);
    eventually(|| {
        enforcer.flush().unwrap();
        fake.value(A, "CPUWeight") == 300
    });
    assert_eq!(fake.state.lock().unwrap().subscribers, subscribed + 1);

    // The bus goes away for good.
    drop(fake);
    drop(daemon);
    apply(&mut enforcer, 0, Levels { cpu: Some(4.0), ..Levels::default() });
    assert!(matches!(enforcer.flush(), Err(KernelError::Io { .. })));
}

#[test]
fn many_units_are_asked_at_once() {
    let daemon = bus_or_skip!();
    let names: Vec<String> = (0..300).map(|i| format!("job{i}.scope")).collect();
    let fake = Fake::start(&daemon.address, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut enforcer = enforcer(&daemon);
    for (i, name) in names.iter().enumerate() {
        enforcer.admit(GroupId(i as u32), &group(name)).unwrap();
        apply(&mut enforcer, i as u32, Levels::weight(1.0 + i as f64 / 100.0));
    }
    let begun = Instant::now();
    enforcer.flush().unwrap();
    eprintln!("{:.0} us a unit", begun.elapsed().as_secs_f64() * 1e6 / names.len() as f64);
    assert_eq!(fake.calls().len(), names.len());
    for (i, name) in names.iter().enumerate() {
        assert_eq!(fake.value(name, "CPUWeight"), 100 + i as u64);
    }
}
