//! What the kernel of this machine makes of the numbers that are written: in groups that these tests make and
//! remove. Where there are no controllers of version 1, or no rights, each says so and does nothing.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod disk;
mod rig;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use evenhand_enforcers::cgroups::{
    Before, Budget, CgroupV1, CgroupV1Meter, CgroupV2Meter, Change, Control, Enforcer, Group, GroupId, HostLock,
    KernelError, Levels, Meter, Own, Places, probe,
};

use crate::rig::{Rig, rig, within};

const A: GroupId = GroupId(0);
const B: GroupId = GroupId(1);

fn enforcer(rig: &Rig, files: usize) -> CgroupV1 {
    let own = Own::detect(&rig.hierarchies).unwrap();
    CgroupV1::new(&rig.hierarchies, &Control::ALL, own, &Budget::of(files))
}

#[test]
fn processors_are_divided_as_weights_say() {
    let Some(mut rig) = rig(&["cpu", "cpuacct"]) else { return };
    let (a, b) = (rig.group("a"), rig.group("b"));
    for group in [&a, &b] {
        rig.run(group, &["sh", "-c", "while :; do :; done"], Some(1));
    }
    let mut enforcer = enforcer(&rig, 100);
    let mut meter = CgroupV1Meter::new(&rig.hierarchies, &Budget::of(100));
    for (id, group, weight) in [(A, &a, 2.0), (B, &b, 0.5)] {
        meter.admit(id, group).unwrap();
        enforcer.admit(id, group).unwrap();
        enforcer.apply(id, &Levels { cpu: Some(weight), ..Levels::default() }, &mut Vec::new()).unwrap();
    }
    let ratio = || {
        let used = |meter: &mut CgroupV1Meter| [A, B].map(|id| meter.read(id).unwrap().cpu_ns.unwrap());
        sleep(Duration::from_millis(200));
        let begun = used(&mut meter);
        sleep(Duration::from_millis(1500));
        let ended = used(&mut meter);
        (ended[0] - begun[0]) as f64 / (ended[1] - begun[1]) as f64
    };
    within(3, 3.6..=4.4, ratio);
}

#[test]
fn what_was_there_is_put_back() {
    let Some(mut rig) = rig(&["cpu", "memory"]) else { return };
    let a = rig.group("a");
    rig.write("cpu", &a, "cpu.shares", "700");
    let all = |rig: &Rig| {
        let files = [("cpu", "cpu.shares"), ("memory", "memory.soft_limit_in_bytes"), ("blkio", "blkio.bfq.weight")];
        files.map(|(controller, file)| rig.read(controller, &a, file))
    };
    let first = all(&rig);
    for limit in [None, Some("8192")] {
        if let Some(limit) = limit {
            rig.write("memory", &a, "memory.soft_limit_in_bytes", limit);
        }
        let text = all(&rig);
        assert_eq!(text == first, limit.is_none());
        let mut enforcer = enforcer(&rig, 100);
        let before = enforcer.admit(A, &a).unwrap();
        let mut changes = Vec::new();
        let levels = Levels { memory: Some((64 << 20) + 5), ..Levels::weight(4.0) };
        enforcer.apply(A, &levels, &mut changes).unwrap();
        let said: Vec<_> = changes.drain(..).map(|c| (c.control, c.value)).collect();
        assert_eq!(said[..2], [(Control::Cpu, 4096), (Control::Memory, 64 << 20)]);
        let written = all(&rig);
        assert_eq!(written[0].as_deref(), Some("4096\n"));
        assert_eq!(written[1].as_deref(), Some("67108864\n"));
        if rig.has("blkio", &a, "blkio.bfq.weight") {
            assert_eq!((said[2], written[2].as_deref()), ((Control::Disk, 400), Some("400\n")));
        }
        enforcer.apply(A, &levels, &mut changes).unwrap();
        assert_eq!(changes, []);
        enforcer.restore(&a, &before).unwrap();
        assert_eq!(all(&rig), text);
        // Twice is once.
        enforcer.restore(&a, &before).unwrap();
        assert_eq!(all(&rig), text);
    }
}

#[test]
fn a_group_may_vanish_at_any_time() {
    let Some(mut rig) = rig(&["cpu", "cpuacct", "memory"]) else { return };
    for files in [0, 100] {
        let a = rig.group("a");
        let mut enforcer = enforcer(&rig, files);
        let mut meter = CgroupV1Meter::new(&rig.hierarchies, &Budget::of(files));
        let mut changes = Vec::new();
        let admit = |enforcer: &mut CgroupV1, meter: &mut CgroupV1Meter| -> Before {
            meter.admit(A, &a).unwrap();
            enforcer.admit(A, &a).unwrap()
        };
        // From one hierarchy only.
        admit(&mut enforcer, &mut meter);
        rig.remove("memory", &a);
        let error = meter.read(A).unwrap_err();
        assert!(matches!(error, KernelError::Withdrawn { control: Control::Memory, .. }), "{error}");
        let usage = meter.read(A).unwrap();
        assert!(usage.cpu_ns.is_some() && usage.memory_bytes.is_none());
        let levels = Levels { memory: Some(1 << 20), ..Levels::weight(3.0) };
        let error = enforcer.apply(A, &levels, &mut changes).unwrap_err();
        assert!(matches!(error, KernelError::Withdrawn { control: Control::Memory, .. }), "{error}");
        assert!(changes.contains(&Change { group: A, control: Control::Cpu, value: 3072 }));
        // And made again: that is another group, unless nothing was kept open and nobody noticed.
        let a = rig.group("a");
        let before = admit(&mut enforcer, &mut meter);
        rig.remove_all(&a);
        let again = rig.group("a");
        assert_eq!(a, again);
        assert_eq!(matches!(meter.read(A), Err(KernelError::Gone(_))), files > 0);
        // From all.
        admit(&mut enforcer, &mut meter);
        rig.remove_all(&a);
        assert!(matches!(meter.read(A), Err(KernelError::Gone(_))));
        assert!(matches!(enforcer.apply(A, &Levels::weight(2.0), &mut changes), Err(KernelError::Gone(_))));
        assert!(matches!(meter.admit(B, &a), Err(KernelError::Gone(_))));
        assert!(matches!(enforcer.admit(B, &a), Err(KernelError::Gone(_))));
        enforcer.restore(&a, &before).unwrap();
    }
}

#[test]
fn fewer_descriptors_say_the_same() {
    let Some(mut rig) = rig(&["cpu", "cpuacct", "memory"]) else { return };
    let groups: Vec<Group> = (0..8).map(|i| rig.group(&format!("g{i}"))).collect();
    // Something to count, that then stays as it is.
    let mut child = rig.run(&groups[3], &["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"], None);
    child.wait();
    let read = |files: usize| {
        let budget = Budget::of(files);
        let mut meter = CgroupV1Meter::new(&rig.hierarchies, &budget);
        let mut enforcer = enforcer(&rig, files);
        let mut changes = Vec::new();
        let usage: Vec<_> = (0..)
            .map(GroupId)
            .zip(&groups)
            .map(|(id, group)| {
                meter.admit(id, group).unwrap();
                enforcer.admit(id, group).unwrap();
                enforcer.apply(id, &Levels::weight(1.5 + f64::from(id.0)), &mut changes).unwrap();
                (meter.read(id).unwrap().cpu_ns, rig.read("cpu", group, "cpu.shares"))
            })
            .collect();
        assert_eq!(budget.left() > 0, files > 100);
        (0..8).map(GroupId).for_each(|id| meter.dismiss(id));
        assert_eq!(budget.left(), files);
        usage
    };
    let plenty = read(1000);
    assert!(plenty[3].0.unwrap() > 1_000_000, "{plenty:?}");
    assert_eq!(plenty[2].1.as_deref(), Some("3584\n"));
    assert_eq!(read(3), plenty);
    assert_eq!(read(0), plenty);
}

#[test]
fn waits_are_read_from_version_2() {
    let Some(mut rig) = rig(&["cpu"]) else { return };
    if rig.hierarchies.unified.is_none() {
        return eprintln!("skipped: version 2 is not mounted");
    }
    let a = rig.group("a");
    if !rig.has("", &a, "cpu.pressure") {
        return eprintln!("skipped: pressure is not counted here");
    }
    let mut meter = CgroupV2Meter::new(&rig.hierarchies, &Budget::of(10));
    // Two on one processor: one of them waits.
    (0..2).for_each(|_| drop(rig.run(&a, &["sh", "-c", "while :; do :; done"], Some(1))));
    meter.admit(A, &a).unwrap();
    let before = meter.pressure(A).unwrap().cpu.unwrap();
    sleep(Duration::from_millis(500));
    let after = meter.pressure(A).unwrap().cpu.unwrap();
    assert!(after.some_us > before.some_us + 100_000, "{before:?} {after:?}");
}

#[test]
fn agents_lock_groups() {
    let Some(mut rig) = rig(&["cpu"]) else { return };
    let (a, b) = (rig.group("a"), rig.group("b"));
    let take = |under: &str| HostLock::take(&rig.hierarchies, under);
    let first = take(&a.path).unwrap();
    let Err(KernelError::Locked(at)) = take(&a.path) else { panic!("two in one place") };
    assert!(at.ends_with(&a.path), "{at}");
    let Err(KernelError::Locked(at)) = take(&rig.parent) else { panic!("one around another") };
    assert!(at.ends_with(&rig.parent), "{at}");
    let second = take(&b.path).unwrap();
    drop((first, second));
    take(&rig.parent).unwrap();
}

#[test]
fn what_was_found_here_can_be_used() {
    let Some(mut rig) = rig(&["cpu", "cpuacct", "memory"]) else { return };
    let a = rig.group("a");
    let findings = probe(&Places::default(), &rig.parent).unwrap();
    let able = |control| findings.row(control).unwrap();
    assert_eq!((able(Control::Cpu).able, able(Control::Cpu).by.as_str()), (true, "cgroup-v1 cpu.shares"));
    assert!(able(Control::Memory).able);
    let own = Own::detect(&findings.hierarchies).unwrap();
    let budget = Budget::of(50);
    let mut enforcers = findings.enforcers(&own, &budget);
    let mut meters = findings.meters(&budget);
    assert_eq!(enforcers.len(), 1);
    enforcers[0].admit(A, &a).unwrap();
    enforcers[0].apply(A, &Levels::weight(2.0), &mut Vec::new()).unwrap();
    assert_eq!(rig.read("cpu", &a, "cpu.shares").as_deref(), Some("2048\n"));
    meters.admit(A, &a).unwrap();
    assert!(meters.read(A).unwrap().memory_bytes.is_some());
    rig.remove_all(&a);
    assert!(matches!(meters.read(A), Err(KernelError::Gone(_))));
    let nowhere = probe(&Places::default(), &format!("{}/none", rig.parent)).unwrap();
    assert!(nowhere.rows.iter().all(|row| !row.able && row.why.starts_with("there is no group")), "{nowhere:?}");
    assert!(fs::read_dir("/sys/block").is_err() || !findings.disks.iter().any(|d| d.name.starts_with("zram")));
}
