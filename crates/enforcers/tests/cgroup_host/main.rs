//! The effect of written values on the kernel of this machine, in groups that these tests create and remove. Each test
//! is skipped with a message if cgroup v1 has no controllers, or if the rights are missing.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod disk;
mod rig;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use evenhand_enforcers::cgroups::{
    CgroupEnforcer, CgroupMeter, Change, DescriptorBudget, Enforcer, Group, GroupId, HostLock, KernelError, Meter,
    ProtectedCgroups, Resource, SavedState, SystemRoot, Targets, probe,
};

use crate::rig::{Rig, rig, within};

const A: GroupId = GroupId(0);
const B: GroupId = GroupId(1);

fn enforcer(rig: &Rig, files: usize) -> CgroupEnforcer {
    let protected = ProtectedCgroups::detect().unwrap();
    CgroupEnforcer::v1(&rig.hierarchies, &Resource::ALL, protected, &DescriptorBudget::of(files))
}

#[test]
fn cpu_time_is_divided_in_proportion_to_weights() {
    let Some(mut rig) = rig(&["cpu", "cpuacct"]) else { return };
    let (a, b) = (rig.group("a"), rig.group("b"));
    for group in [&a, &b] {
        rig.run(group, &["sh", "-c", "while :; do :; done"], Some(1));
    }
    let mut enforcer = enforcer(&rig, 100);
    let mut meter = CgroupMeter::v1(&rig.hierarchies, &DescriptorBudget::of(100));
    for (id, group, weight) in [(A, &a, 2.0), (B, &b, 0.5)] {
        meter.admit(id, group).unwrap();
        enforcer.admit(id, group).unwrap();
        enforcer.apply(id, &Targets { cpu: Some(weight), ..Targets::default() }, &mut Vec::new()).unwrap();
    }
    let ratio = || {
        let used = |meter: &mut CgroupMeter| [A, B].map(|id| meter.read(id).unwrap().cpu.unwrap());
        sleep(Duration::from_millis(200));
        let begun = used(&mut meter);
        sleep(Duration::from_millis(1500));
        let ended = used(&mut meter);
        (ended[0] - begun[0]) as f64 / (ended[1] - begun[1]) as f64
    };
    within(3, 3.6..=4.4, ratio);
}

#[test]
fn earlier_values_are_restored() {
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
        let saved = enforcer.admit(A, &a).unwrap();
        let mut changes = Vec::new();
        let targets = Targets { memory: Some(f64::from((64 << 20) + 5)), ..Targets::equal_weights(4.0) };
        enforcer.apply(A, &targets, &mut changes).unwrap();
        let written: Vec<_> = changes.drain(..).map(|c| (c.resource, c.value)).collect();
        assert_eq!(written[..2], [(Resource::Cpu, 4096), (Resource::Memory, 64 << 20)]);
        let files = all(&rig);
        assert_eq!(files[0].as_deref(), Some("4096\n"));
        assert_eq!(files[1].as_deref(), Some("67108864\n"));
        if rig.has("blkio", &a, "blkio.bfq.weight") {
            assert_eq!((written[2], files[2].as_deref()), ((Resource::Disk, 400), Some("400\n")));
        }
        enforcer.apply(A, &targets, &mut changes).unwrap();
        assert_eq!(changes, []);
        enforcer.restore(&a, &saved).unwrap();
        assert_eq!(all(&rig), text);
        // Restoring twice has the same effect.
        enforcer.restore(&a, &saved).unwrap();
        assert_eq!(all(&rig), text);
    }
}

#[test]
fn a_group_may_vanish_at_any_time() {
    let Some(mut rig) = rig(&["cpu", "cpuacct", "memory"]) else { return };
    for files in [0, 100] {
        let a = rig.group("a");
        let mut enforcer = enforcer(&rig, files);
        let mut meter = CgroupMeter::v1(&rig.hierarchies, &DescriptorBudget::of(files));
        let mut changes = Vec::new();
        let admit = |enforcer: &mut CgroupEnforcer, meter: &mut CgroupMeter| -> SavedState {
            meter.admit(A, &a).unwrap();
            enforcer.admit(A, &a).unwrap()
        };
        // It is removed from one hierarchy only.
        admit(&mut enforcer, &mut meter);
        rig.remove("memory", &a);
        let error = meter.read(A).unwrap_err();
        assert!(matches!(error, KernelError::Withdrawn { resource: Resource::Memory, .. }), "{error}");
        let usage = meter.read(A).unwrap();
        assert!(usage.cpu.is_some() && usage.memory.is_none());
        let targets = Targets { memory: Some(f64::from(1 << 20)), ..Targets::equal_weights(3.0) };
        let error = enforcer.apply(A, &targets, &mut changes).unwrap_err();
        assert!(matches!(error, KernelError::Withdrawn { resource: Resource::Memory, .. }), "{error}");
        assert!(changes.contains(&Change { group: A, resource: Resource::Cpu, value: 3072 }));
        // A group created again is a new one; without an open file this is not noticed.
        let a = rig.group("a");
        let saved = admit(&mut enforcer, &mut meter);
        rig.remove_all(&a);
        let again = rig.group("a");
        assert_eq!(a, again);
        assert_eq!(matches!(meter.read(A), Err(KernelError::Gone(_))), files > 0);
        // It is removed from all hierarchies.
        admit(&mut enforcer, &mut meter);
        rig.remove_all(&a);
        assert!(matches!(meter.read(A), Err(KernelError::Gone(_))));
        assert!(matches!(enforcer.apply(A, &Targets::equal_weights(2.0), &mut changes), Err(KernelError::Gone(_))));
        assert!(matches!(meter.admit(B, &a), Err(KernelError::Gone(_))));
        assert!(matches!(enforcer.admit(B, &a), Err(KernelError::Gone(_))));
        enforcer.restore(&a, &saved).unwrap();
    }
}

#[test]
fn the_descriptor_budget_does_not_affect_the_results() {
    let Some(mut rig) = rig(&["cpu", "cpuacct", "memory"]) else { return };
    let groups: Vec<Group> = (0..8).map(|i| rig.group(&format!("g{i}"))).collect();
    // Uses some CPU time and ends, so that the count stays constant.
    let mut child = rig.run(&groups[3], &["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"], None);
    child.wait();
    let read = |files: usize| {
        let budget = DescriptorBudget::of(files);
        let mut meter = CgroupMeter::v1(&rig.hierarchies, &budget);
        let mut enforcer = enforcer(&rig, files);
        let mut changes = Vec::new();
        let usage: Vec<_> = (0..)
            .map(GroupId)
            .zip(&groups)
            .map(|(id, group)| {
                meter.admit(id, group).unwrap();
                enforcer.admit(id, group).unwrap();
                enforcer.apply(id, &Targets::equal_weights(1.5 + f64::from(id.0)), &mut changes).unwrap();
                (meter.read(id).unwrap().cpu, rig.read("cpu", group, "cpu.shares"))
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
fn stall_times_are_read_from_version_2() {
    let Some(mut rig) = rig(&["cpu"]) else { return };
    if rig.hierarchies.unified.is_none() {
        return eprintln!("skipped: version 2 is not mounted");
    }
    let a = rig.group("a");
    if !rig.has("", &a, "cpu.pressure") {
        return eprintln!("skipped: pressure is not counted here");
    }
    let mut meter = CgroupMeter::v2(&rig.hierarchies, &DescriptorBudget::of(10));
    // Of two processes on one processor, one waits.
    (0..2).for_each(|_| drop(rig.run(&a, &["sh", "-c", "while :; do :; done"], Some(1))));
    meter.admit(A, &a).unwrap();
    let before = meter.pressure(A).unwrap().cpu.unwrap();
    sleep(Duration::from_millis(500));
    let after = meter.pressure(A).unwrap().cpu.unwrap();
    assert!(after.some_us > before.some_us + 100_000, "{before:?} {after:?}");
}

#[test]
fn an_agent_locks_its_groups() {
    let Some(mut rig) = rig(&["cpu"]) else { return };
    let (a, b) = (rig.group("a"), rig.group("b"));
    let locks = tempfile::tempdir().unwrap();
    let take = |under: &str| HostLock::take(&rig.hierarchies, under, locks.path());
    let first = take(&a.path).unwrap();
    let Err(KernelError::Locked(at)) = take(&a.path) else { panic!("two agents hold the same lock") };
    assert!(at.ends_with(&a.path), "{at}");
    let Err(KernelError::Locked(at)) = take(&rig.parent) else { panic!("an agent holds the lock of an ancestor") };
    assert!(at.ends_with(&rig.parent), "{at}");
    let second = take(&b.path).unwrap();
    drop((first, second));
    take(&rig.parent).unwrap();
}

#[test]
fn the_enforcers_that_probing_finds_work() {
    let Some(mut rig) = rig(&["cpu", "cpuacct", "memory"]) else { return };
    let a = rig.group("a");
    let report = probe(&SystemRoot::default(), &rig.parent).unwrap();
    let support = |resource| report.support(resource).unwrap();
    let cpu = support(Resource::Cpu);
    assert_eq!((cpu.supported, cpu.mechanism.as_str()), (true, "cgroup-v1 cpu.shares"));
    assert!(support(Resource::Memory).supported);
    let protected = ProtectedCgroups::detect().unwrap();
    let budget = DescriptorBudget::of(50);
    let mut enforcers = report.enforcers(&protected, &budget);
    let mut meter = report.meter(&budget);
    assert_eq!(enforcers.len(), 1);
    enforcers[0].admit(A, &a).unwrap();
    enforcers[0].apply(A, &Targets::equal_weights(2.0), &mut Vec::new()).unwrap();
    assert_eq!(rig.read("cpu", &a, "cpu.shares").as_deref(), Some("2048\n"));
    meter.admit(A, &a).unwrap();
    assert!(meter.read(A).unwrap().memory.is_some());
    rig.remove_all(&a);
    assert!(matches!(meter.read(A), Err(KernelError::Gone(_))));
    let nowhere = probe(&SystemRoot::default(), &format!("{}/none", rig.parent)).unwrap();
    assert!(nowhere.resources.iter().all(|r| !r.supported && r.reason.starts_with("there is no group")), "{nowhere:?}");
    assert!(fs::read_dir("/sys/block").is_err() || !report.disks.iter().any(|d| d.name.starts_with("zram")));
}
