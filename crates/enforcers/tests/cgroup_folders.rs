//! Enforcers and meters on folders of plain files, laid out as version 2 lays out its groups.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use evenhand_enforcers::cgroups::{
    Before, Budget, CgroupV1, CgroupV2, CgroupV2Meter, Control, DiskWeight, Enforcer, Group, GroupId, Hierarchies,
    KernelError, Levels, Meter, Own, Protection, Stall,
};
use proptest::prelude::*;

const ID: GroupId = GroupId(7);

struct Tree {
    folder: tempfile::TempDir,
    hierarchies: Hierarchies,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a.slice/g")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join("a.slice/g").join(name), text).unwrap();
        }
        let unified = Some(folder.path().to_owned());
        Tree { folder, hierarchies: Hierarchies { unified, ..Hierarchies::default() } }
    }

    fn weights() -> Tree {
        Tree::new(&[
            ("cpu.weight", "100\n"),
            ("memory.low", "0\n"),
            ("memory.min", "max\n"),
            ("io.bfq.weight", "default 100\n8:0 300\n"),
            ("io.weight", "default 100\n"),
        ])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("a.slice/g").join(name)
    }

    /// The first line: a shorter number written over a longer one leaves the end of that in a plain file.
    fn line(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap().lines().next().unwrap().to_owned()
    }

    fn enforcer(&self, disk: DiskWeight, memory: Protection, files: usize) -> CgroupV2 {
        CgroupV2::new(&self.hierarchies, true, Some(disk), Some(memory), Own::default(), &Budget::of(files))
    }
}

fn group() -> Group {
    Group { path: "a.slice/g".into(), ..Group::default() }
}

#[test]
fn weights_are_written_once_and_put_back() {
    for files in [0, 1, 100] {
        let tree = Tree::weights();
        let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, files);
        assert_eq!(enforcer.controls(), [Control::Cpu, Control::Memory, Control::Disk]);
        let before = enforcer.admit(ID, &group()).unwrap();
        let said: Vec<_> = before.0.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(said, [("cpu.weight", "100"), ("io.bfq.weight", "default 100\n8:0 300"), ("memory.low", "0")]);
        let mut changes = Vec::new();
        // What is there already is not written, unless single disks have something else.
        enforcer.apply(ID, &Levels { memory: Some(100), ..Levels::weight(1.0) }, &mut changes).unwrap();
        let said = |changes: &mut Vec<evenhand_enforcers::cgroups::Change>| {
            changes.drain(..).map(|c| (c.control, c.value)).collect::<Vec<_>>()
        };
        assert_eq!(said(&mut changes), [(Control::Disk, 100)]);
        let levels = Levels { memory: Some(1 << 20), ..Levels::weight(2.0) };
        enforcer.apply(ID, &levels, &mut changes).unwrap();
        assert_eq!(said(&mut changes), [(Control::Cpu, 200), (Control::Memory, 1 << 20), (Control::Disk, 200)]);
        let lines = ["cpu.weight", "memory.low", "io.bfq.weight"].map(|n| tree.line(n));
        assert_eq!(lines, ["200", "1048576", "200"]);
        enforcer.apply(ID, &levels, &mut changes).unwrap();
        enforcer.apply(ID, &Levels::default(), &mut changes).unwrap();
        assert_eq!(said(&mut changes), []);
        // By another process, which admitted nothing.
        tree.enforcer(DiskWeight::Bfq, Protection::Low, 0).restore(&group(), &before).unwrap();
        for (name, text) in &before.0 {
            assert_eq!(fs::read_to_string(tree.path(name)).unwrap(), format!("{text}\n"));
        }
        // By the same one: what it wrote last no longer holds.
        enforcer.restore(&group(), &before).unwrap();
        enforcer.apply(ID, &levels, &mut changes).unwrap();
        assert_eq!(said(&mut changes).len(), 3);
    }
}

#[test]
fn other_files_where_these_do_nothing() {
    let tree = Tree::weights();
    let mut enforcer = tree.enforcer(DiskWeight::Cost, Protection::Min, 100);
    let before = enforcer.admit(ID, &group()).unwrap();
    assert_eq!(before.0.into_keys().collect::<Vec<_>>(), ["cpu.weight", "io.weight", "memory.min"]);
    enforcer.apply(ID, &Levels { memory: Some(0), ..Levels::weight(2.0) }, &mut Vec::new()).unwrap();
    assert_eq!(["io.weight", "memory.min", "memory.low"].map(|n| tree.line(n)), ["200", "0", "0"]);
}

#[test]
fn what_a_group_does_not_have_is_not_offered_for_it() {
    let tree = Tree::new(&[("cpu.weight", "100\n")]);
    let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, 100);
    assert_eq!(enforcer.admit(ID, &group()).unwrap().0.len(), 1);
    let mut changes = Vec::new();
    enforcer.apply(ID, &Levels { memory: Some(1), ..Levels::weight(3.0) }, &mut changes).unwrap();
    assert_eq!(changes.len(), 1);
    assert!(!tree.path("memory.low").exists());
}

#[test]
fn withdrawn_is_not_gone() {
    let tree = Tree::weights();
    // No descriptors are kept: a plain file that is open does not know that it was removed.
    let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, 0);
    let before = enforcer.admit(ID, &group()).unwrap();
    fs::remove_file(tree.path("cpu.weight")).unwrap();
    let mut changes = Vec::new();
    let error = enforcer.apply(ID, &Levels::weight(2.0), &mut changes).unwrap_err();
    assert!(matches!(error, KernelError::Withdrawn { control: Control::Cpu, .. }), "{error}");
    assert_eq!(changes.len(), 1, "the rest is written");
    enforcer.apply(ID, &Levels::weight(3.0), &mut changes).unwrap();
    assert_eq!(changes.len(), 2);
    fs::remove_dir_all(tree.path("")).unwrap();
    assert!(matches!(enforcer.apply(ID, &Levels::weight(2.0), &mut changes), Err(KernelError::Gone(_))));
    enforcer.restore(&group(), &before).unwrap();
    assert!(matches!(enforcer.admit(ID, &group()), Err(KernelError::Gone(_))));
    assert!(matches!(enforcer.apply(ID, &Levels::weight(2.0), &mut changes), Err(KernelError::Unknown(ID))));
}

#[test]
fn not_every_path_and_not_our_own() {
    let tree = Tree::weights();
    let own = Own::from_text("0::/a.slice/g/inner\n", &tree.hierarchies);
    let mut enforcer = CgroupV2::new(&tree.hierarchies, true, None, None, own, &Budget::of(9));
    let before = Before([("cpu.weight".to_owned(), "7".to_owned())].into());
    for path in ["", "/a.slice/g", "a.slice/../a.slice/g"] {
        let group = Group { path: path.into(), ..Group::default() };
        assert!(matches!(enforcer.admit(ID, &group), Err(KernelError::Path(_))), "{path}");
        assert!(matches!(enforcer.restore(&group, &before), Err(KernelError::Path(_))), "{path}");
    }
    assert!(matches!(enforcer.admit(ID, &group()), Err(KernelError::Own(_))));
    assert!(matches!(enforcer.restore(&group(), &before), Err(KernelError::Own(_))));
    assert_eq!(tree.line("cpu.weight"), "100");
}

#[test]
fn only_files_that_are_known_are_put_back() {
    let tree = Tree::weights();
    let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, 0);
    let outside = tree.folder.path().join("outside");
    fs::write(&outside, "x").unwrap();
    let foreign = [("../../outside", "y"), ("cpu.weight", "50")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let error = enforcer.restore(&group(), &Before(foreign.into())).unwrap_err();
    assert!(matches!(error, KernelError::Content { .. }), "{error}");
    assert_eq!((fs::read_to_string(outside).unwrap(), tree.line("cpu.weight")), ("x".into(), "50".into()));
}

#[test]
fn version_1_has_a_hierarchy_a_controller() {
    let folder = tempfile::tempdir().unwrap();
    let mut hierarchies = Hierarchies::default();
    for (controller, file, text) in
        [("cpu", "cpu.shares", "1024"), ("memory", "memory.soft_limit_in_bytes", "9223372036854771712")]
    {
        let root = folder.path().join(controller);
        fs::create_dir_all(root.join("a.slice/g")).unwrap();
        fs::write(root.join("a.slice/g").join(file), format!("{text}\n")).unwrap();
        hierarchies.legacy.insert(controller.into(), root);
    }
    // A hierarchy in which the group is not.
    hierarchies.legacy.insert("blkio".into(), folder.path().join("blkio"));
    let mut enforcer = CgroupV1::new(&hierarchies, &Control::ALL, Own::default(), &Budget::of(9));
    assert_eq!(enforcer.controls(), [Control::Cpu, Control::Memory, Control::Disk]);
    let before = enforcer.admit(ID, &group()).unwrap();
    let mut changes = Vec::new();
    let levels = Levels { memory: Some(1 << 30), ..Levels::weight(0.5) };
    enforcer.apply(ID, &levels, &mut changes).unwrap();
    assert_eq!(changes.iter().map(|c| c.value).collect::<Vec<_>>(), [512, 1 << 30]);
    // No limit is written as -1.
    enforcer.restore(&group(), &before).unwrap();
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("memory/a.slice/g/memory.soft_limit_in_bytes"), "-1\n");
    assert_eq!(read("cpu/a.slice/g/cpu.shares"), "1024\n");
    // Gone from one hierarchy only.
    let mut enforcer = CgroupV1::new(&hierarchies, &Control::ALL, Own::default(), &Budget::of(0));
    enforcer.admit(ID, &group()).unwrap();
    fs::remove_dir_all(folder.path().join("memory/a.slice")).unwrap();
    let error = enforcer.apply(ID, &Levels { memory: Some(0), ..Levels::default() }, &mut changes).unwrap_err();
    assert!(matches!(error, KernelError::Withdrawn { control: Control::Memory, .. }), "{error}");
    assert!(
        CgroupV1::new(&Hierarchies::default(), &Control::ALL, Own::default(), &Budget::of(0)).controls().is_empty()
    );
}

#[test]
fn what_groups_used_and_waited_for() {
    for files in [0, 2, 100] {
        let tree = Tree::new(&[
            ("cpu.stat", "usage_usec 1500\nuser_usec 1500\n"),
            ("memory.current", "4096\n"),
            ("io.stat", "8:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n"),
            ("cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
            ("io.pressure", "some avg10=0.00 total=7\nfull avg10=0.00 total=6\n"),
        ]);
        let mut meter = CgroupV2Meter::new(&tree.hierarchies, &Budget::of(files));
        assert!(matches!(meter.read(ID), Err(KernelError::Unknown(_))));
        meter.admit(ID, &group()).unwrap();
        let usage = meter.read(ID).unwrap();
        assert_eq!((usage.cpu_ns, usage.memory_bytes, usage.disk_bytes), (Some(1_500_000), Some(4096), Some(3)));
        let pressure = meter.pressure(ID).unwrap();
        assert_eq!(pressure.cpu, Some(Stall { some_us: 5, full_us: 0 }));
        assert_eq!((pressure.memory, pressure.disk), (None, Some(Stall { some_us: 7, full_us: 6 })));
        // A counter that went back is the caller's matter.
        fs::write(tree.path("cpu.stat"), "usage_usec 1\n").unwrap();
        assert_eq!(meter.read(ID).unwrap().cpu_ns, Some(1000));
        fs::write(tree.path("memory.current"), "many\n").unwrap();
        let error = meter.read(ID).unwrap_err();
        assert!(matches!(&error, KernelError::Content { found, .. } if found == "many\n"), "{error}");
        fs::write(tree.path("memory.current"), "1\n").unwrap();
        meter.dismiss(ID);
        assert!(matches!(meter.read(ID), Err(KernelError::Unknown(_))));
    }
}

#[test]
fn a_number_that_is_withdrawn_is_missed_once() {
    let tree = Tree::new(&[("cpu.stat", "usage_usec 1\n"), ("io.stat", "")]);
    let mut meter = CgroupV2Meter::new(&tree.hierarchies, &Budget::of(0));
    meter.admit(ID, &group()).unwrap();
    fs::remove_file(tree.path("io.stat")).unwrap();
    assert!(matches!(meter.read(ID), Err(KernelError::Withdrawn { control: Control::Disk, .. })));
    let usage = meter.read(ID).unwrap();
    assert_eq!((usage.cpu_ns, usage.disk_bytes), (Some(1000), None));
    fs::remove_dir_all(tree.path("")).unwrap();
    assert!(matches!(meter.read(ID), Err(KernelError::Gone(_))));
}

fn any_level() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0_f64..100.0, Just(f64::NAN), Just(f64::INFINITY)]
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).unwrap().lines().next().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked for, what is written is in the kernel's range, and said.
    #[test]
    fn nothing_out_of_range_is_written(cpu in any_level(), disk in any_level(), memory in any::<u64>(), files in 0_usize..3) {
        let tree = Tree::weights();
        let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, files);
        enforcer.admit(ID, &group()).unwrap();
        let levels = Levels { cpu: Some(cpu), disk: Some(disk), memory: Some(memory), network: None };
        let mut changes = Vec::new();
        enforcer.apply(ID, &levels, &mut changes).unwrap();
        for change in changes {
            let (file, least, most) = match change.control {
                Control::Cpu => ("cpu.weight", 1, 10_000),
                Control::Disk => ("io.bfq.weight", 1, 1000),
                Control::Memory => ("memory.low", 0, memory),
                Control::Network => unreachable!(),
            };
            prop_assert_eq!(number(&tree.path(file)), change.value);
            prop_assert!((least..=most).contains(&change.value));
        }
        // The same again is nothing.
        let mut changes = Vec::new();
        enforcer.apply(ID, &levels, &mut changes).unwrap();
        prop_assert_eq!(changes.len(), 0);
    }
}
