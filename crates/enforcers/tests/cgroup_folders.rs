//! Enforcers and meters on directories of plain files with the layout of control groups.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use evenhand_enforcers::cgroups::{
    CgroupEnforcer, CgroupMeter, DescriptorBudget, DiskWeight, Enforcer, Group, GroupId, Hierarchies, KernelError,
    Meter, ProtectedCgroups, Protection, Resource, SavedState, Stall, Targets,
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

    /// Returns the first line: in a plain file, a shorter number leaves the end of a longer one that it overwrites.
    fn line(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap().lines().next().unwrap().to_owned()
    }

    fn enforcer(&self, disk: DiskWeight, memory: Protection, files: usize) -> CgroupEnforcer {
        CgroupEnforcer::v2(
            &self.hierarchies,
            true,
            Some(disk),
            Some(memory),
            ProtectedCgroups::default(),
            &DescriptorBudget::of(files),
        )
    }
}

fn group() -> Group {
    Group { path: "a.slice/g".into(), ..Group::default() }
}

#[test]
fn weights_are_written_once_and_restored() {
    for files in [0, 1, 100] {
        let tree = Tree::weights();
        let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, files);
        assert_eq!(enforcer.resources(), [Resource::Cpu, Resource::Memory, Resource::Disk]);
        let saved = enforcer.admit(ID, &group()).unwrap();
        let settings: Vec<_> = saved.0.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(settings, [("cpu.weight", "100"), ("io.bfq.weight", "default 100\n8:0 300"), ("memory.low", "0")]);
        let mut changes = Vec::new();
        // A value that is already set is not written, unless single disks have another.
        enforcer.apply(ID, &Targets { memory: Some(100.0), ..Targets::equal_weights(1.0) }, &mut changes).unwrap();
        let drain = |changes: &mut Vec<evenhand_enforcers::cgroups::Change>| {
            changes.drain(..).map(|c| (c.resource, c.value)).collect::<Vec<_>>()
        };
        assert_eq!(drain(&mut changes), [(Resource::Disk, 100)]);
        let targets = Targets { memory: Some(f64::from(1 << 20)), ..Targets::equal_weights(2.0) };
        enforcer.apply(ID, &targets, &mut changes).unwrap();
        assert_eq!(drain(&mut changes), [(Resource::Cpu, 200), (Resource::Memory, 1 << 20), (Resource::Disk, 200)]);
        let lines = ["cpu.weight", "memory.low", "io.bfq.weight"].map(|n| tree.line(n));
        assert_eq!(lines, ["200", "1048576", "200"]);
        enforcer.apply(ID, &targets, &mut changes).unwrap();
        enforcer.apply(ID, &Targets::default(), &mut changes).unwrap();
        assert_eq!(drain(&mut changes), []);
        // By another process, which has not admitted the group.
        tree.enforcer(DiskWeight::Bfq, Protection::Low, 0).restore(&group(), &saved).unwrap();
        for (name, text) in &saved.0 {
            assert_eq!(fs::read_to_string(tree.path(name)).unwrap(), format!("{text}\n"));
        }
        // By the same process: afterwards the values that it wrote last are no longer set.
        enforcer.restore(&group(), &saved).unwrap();
        enforcer.apply(ID, &targets, &mut changes).unwrap();
        assert_eq!(drain(&mut changes).len(), 3);
    }
}

#[test]
fn a_dry_run_reports_the_changes_that_would_be_written() {
    let reported = |mut enforcer: CgroupEnforcer| {
        let saved = enforcer.admit(ID, &group()).unwrap();
        let mut changes = Vec::new();
        for weight in [1.0, 2.0, 2.0, 0.5] {
            let targets = Targets { memory: Some(5000.0 * weight), ..Targets::equal_weights(weight) };
            enforcer.apply(ID, &targets, &mut changes).unwrap();
        }
        enforcer.restore(&group(), &saved).unwrap();
        changes.iter().map(|change| (change.resource, change.value)).collect::<Vec<_>>()
    };
    for disk in [DiskWeight::Bfq, DiskWeight::Cost] {
        let (tree, untouched) = (Tree::weights(), Tree::weights());
        let enforcer = |tree: &Tree| tree.enforcer(disk, Protection::Low, 100);
        let dry = reported(enforcer(&untouched).dry_run());
        assert_eq!(dry, reported(enforcer(&tree)));
        assert!(dry.contains(&(Resource::Memory, 8192)) && !dry.contains(&(Resource::Cpu, 100)), "{dry:?}");
        for name in ["cpu.weight", "memory.low", "io.bfq.weight", "io.weight"] {
            let text = |tree: &Tree| fs::read_to_string(tree.path(name)).unwrap();
            assert_eq!(text(&untouched), text(&Tree::weights()), "{name}");
        }
    }
}

#[test]
fn the_files_are_those_that_take_effect() {
    let tree = Tree::weights();
    let mut enforcer = tree.enforcer(DiskWeight::Cost, Protection::Min, 100);
    let saved = enforcer.admit(ID, &group()).unwrap();
    assert_eq!(saved.0.into_keys().collect::<Vec<_>>(), ["cpu.weight", "io.weight", "memory.min"]);
    enforcer.apply(ID, &Targets { memory: Some(0.0), ..Targets::equal_weights(2.0) }, &mut Vec::new()).unwrap();
    assert_eq!(["io.weight", "memory.min", "memory.low"].map(|n| tree.line(n)), ["200", "0", "0"]);
}

#[test]
fn files_that_a_group_does_not_have_are_not_created() {
    let tree = Tree::new(&[("cpu.weight", "100\n")]);
    let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, 100);
    assert_eq!(enforcer.admit(ID, &group()).unwrap().0.len(), 1);
    let mut changes = Vec::new();
    enforcer.apply(ID, &Targets { memory: Some(1.0), ..Targets::equal_weights(3.0) }, &mut changes).unwrap();
    assert_eq!(changes.len(), 1);
    assert!(!tree.path("memory.low").exists());
}

#[test]
fn a_lost_file_means_withdrawn_and_a_lost_group_means_gone() {
    let tree = Tree::weights();
    // No file is kept open: an open plain file does not show that it was removed.
    let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, 0);
    let saved = enforcer.admit(ID, &group()).unwrap();
    fs::remove_file(tree.path("cpu.weight")).unwrap();
    let mut changes = Vec::new();
    let error = enforcer.apply(ID, &Targets::equal_weights(2.0), &mut changes).unwrap_err();
    assert!(matches!(error, KernelError::Withdrawn { resource: Resource::Cpu, .. }), "{error}");
    assert_eq!(changes.len(), 1, "the other values are written");
    enforcer.apply(ID, &Targets::equal_weights(3.0), &mut changes).unwrap();
    assert_eq!(changes.len(), 2);
    fs::remove_dir_all(tree.path("")).unwrap();
    assert!(matches!(enforcer.apply(ID, &Targets::equal_weights(2.0), &mut changes), Err(KernelError::Gone(_))));
    enforcer.restore(&group(), &saved).unwrap();
    assert!(matches!(enforcer.admit(ID, &group()), Err(KernelError::Gone(_))));
    assert!(matches!(
        enforcer.apply(ID, &Targets::equal_weights(2.0), &mut changes),
        Err(KernelError::NotAdmitted(ID))
    ));
}

#[test]
fn invalid_paths_and_protected_groups_are_refused() {
    let tree = Tree::weights();
    let protected = ProtectedCgroups::from_text("0::/a.slice/g/inner\n");
    let mut enforcer = CgroupEnforcer::v2(&tree.hierarchies, true, None, None, protected, &DescriptorBudget::of(9));
    let saved = SavedState([("cpu.weight".to_owned(), "7".to_owned())].into());
    for path in ["", "/a.slice/g", "a.slice/../a.slice/g"] {
        let group = Group { path: path.into(), ..Group::default() };
        assert!(matches!(enforcer.admit(ID, &group), Err(KernelError::InvalidPath(_))), "{path}");
        assert!(matches!(enforcer.restore(&group, &saved), Err(KernelError::InvalidPath(_))), "{path}");
    }
    assert!(matches!(enforcer.admit(ID, &group()), Err(KernelError::Protected(_))));
    assert!(matches!(enforcer.restore(&group(), &saved), Err(KernelError::Protected(_))));
    assert_eq!(tree.line("cpu.weight"), "100");
}

#[test]
fn only_files_of_the_enforcer_are_restored() {
    let tree = Tree::weights();
    let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, 0);
    let outside = tree.folder.path().join("outside");
    fs::write(&outside, "x").unwrap();
    let foreign = [("../../outside", "y"), ("cpu.weight", "50")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let error = enforcer.restore(&group(), &SavedState(foreign.into())).unwrap_err();
    assert!(matches!(error, KernelError::Content { .. }), "{error}");
    assert_eq!((fs::read_to_string(outside).unwrap(), tree.line("cpu.weight")), ("x".into(), "50".into()));
}

#[test]
fn version_1_has_one_hierarchy_for_each_controller() {
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
    // A hierarchy that does not contain the group.
    hierarchies.legacy.insert("blkio".into(), folder.path().join("blkio"));
    let mut enforcer =
        CgroupEnforcer::v1(&hierarchies, &Resource::ALL, ProtectedCgroups::default(), &DescriptorBudget::of(9));
    assert_eq!(enforcer.resources(), [Resource::Cpu, Resource::Memory, Resource::Disk]);
    let saved = enforcer.admit(ID, &group()).unwrap();
    let mut changes = Vec::new();
    let targets = Targets { memory: Some(f64::from(1 << 30)), ..Targets::equal_weights(0.5) };
    enforcer.apply(ID, &targets, &mut changes).unwrap();
    assert_eq!(changes.iter().map(|c| c.value).collect::<Vec<_>>(), [512, 1 << 30]);
    // A dry run is on the scale of version 1 too: a weight of 2 is 2048 there, not 200.
    let (all, budget) = (Resource::ALL, DescriptorBudget::of(9));
    let mut dry = CgroupEnforcer::v1(&hierarchies, &all, ProtectedCgroups::default(), &budget).dry_run();
    dry.admit(ID, &group()).unwrap();
    let mut reported = Vec::new();
    dry.apply(ID, &Targets::equal_weights(2.0), &mut reported).unwrap();
    assert_eq!(reported.iter().map(|c| (c.resource, c.value)).collect::<Vec<_>>(), [(Resource::Cpu, 2048)]);
    // The kernel takes -1 for no limit.
    enforcer.restore(&group(), &saved).unwrap();
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("memory/a.slice/g/memory.soft_limit_in_bytes"), "-1\n");
    assert_eq!(read("cpu/a.slice/g/cpu.shares"), "1024\n");
    // Removed from one hierarchy only.
    let mut enforcer =
        CgroupEnforcer::v1(&hierarchies, &Resource::ALL, ProtectedCgroups::default(), &DescriptorBudget::of(0));
    enforcer.admit(ID, &group()).unwrap();
    fs::remove_dir_all(folder.path().join("memory/a.slice")).unwrap();
    let error = enforcer.apply(ID, &Targets { memory: Some(0.0), ..Targets::default() }, &mut changes).unwrap_err();
    assert!(matches!(error, KernelError::Withdrawn { resource: Resource::Memory, .. }), "{error}");
    assert!(
        CgroupEnforcer::v1(
            &Hierarchies::default(),
            &Resource::ALL,
            ProtectedCgroups::default(),
            &DescriptorBudget::of(0)
        )
        .resources()
        .is_empty()
    );
}

#[test]
fn what_a_group_leaves_in_another_hierarchy_is_restored_as_long_as_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("cpu", "cpu.shares", "1024\n"), ("memory", "memory.soft_limit_in_bytes", "8192\n")];
    let mut hierarchies = Hierarchies::default();
    let file = |(controller, name, _): (&str, &str, &str)| folder.path().join(controller).join("a.slice/g").join(name);
    for it in files {
        fs::create_dir_all(file(it).parent().unwrap()).unwrap();
        fs::write(file(it), it.2).unwrap();
        hierarchies.legacy.insert(it.0.into(), folder.path().join(it.0));
    }
    let enforcer =
        || CgroupEnforcer::v1(&hierarchies, &Resource::ALL, ProtectedCgroups::default(), &DescriptorBudget::of(9));
    let saved = enforcer().admit(ID, &group()).unwrap();
    let read = |it| fs::read_to_string(file(it)).unwrap();
    let write = || files.iter().for_each(|it| fs::write(file(*it), "4096\n").unwrap());
    // The group of the main hierarchy is another one: only the memory is still that of the saved group.
    write();
    enforcer().restore_remains(&group(), &saved).unwrap();
    assert_eq!(files.map(read), ["4096\n", "8192\n"]);
    fs::remove_dir_all(folder.path().join("cpu/a.slice")).unwrap();
    fs::write(file(files[1]), "4096\n").unwrap();
    enforcer().restore_remains(&group(), &saved).unwrap();
    assert_eq!(read(files[1]), "8192\n");
    // A new memory group of the same path was never changed.
    let parent = file(files[1]).parent().unwrap().to_owned();
    fs::rename(&parent, folder.path().join("earlier")).unwrap();
    fs::create_dir(&parent).unwrap();
    fs::create_dir_all(file(files[0]).parent().unwrap()).unwrap();
    write();
    enforcer().restore_remains(&group(), &saved).unwrap();
    enforcer().restore(&group(), &saved).unwrap();
    assert_eq!(files.map(read), ["1024\n", "4096\n"]);
    // The settings of a new group count, those of the same group do not.
    let memory = "memory.soft_limit_in_bytes";
    let before = enforcer().admit(ID, &group()).unwrap().before(saved.clone());
    assert_eq!((before.0["cpu.shares"].as_str(), before.0[memory].as_str()), ("1024", "4096"));
}

#[test]
fn use_and_stall_times_are_read() {
    for files in [0, 2, 100] {
        let tree = Tree::new(&[
            ("cpu.stat", "usage_usec 1500\nuser_usec 1500\n"),
            ("memory.current", "4096\n"),
            ("io.stat", "8:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n"),
            ("cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
            ("io.pressure", "some avg10=0.00 total=7\nfull avg10=0.00 total=6\n"),
        ]);
        let mut meter = CgroupMeter::v2(&tree.hierarchies, &DescriptorBudget::of(files));
        assert!(matches!(meter.read(ID), Err(KernelError::NotAdmitted(_))));
        meter.admit(ID, &group()).unwrap();
        let usage = meter.read(ID).unwrap();
        assert_eq!((usage.cpu, usage.memory, usage.disk), (Some(1_500_000), Some(4096), Some(3)));
        let pressure = meter.pressure(ID).unwrap();
        assert_eq!(pressure.cpu, Some(Stall { some_us: 5, full_us: 0 }));
        assert_eq!((pressure.memory, pressure.disk), (None, Some(Stall { some_us: 7, full_us: 6 })));
        // A counter that went backwards is left to the caller.
        fs::write(tree.path("cpu.stat"), "usage_usec 1\n").unwrap();
        assert_eq!(meter.read(ID).unwrap().cpu, Some(1000));
        fs::write(tree.path("memory.current"), "many\n").unwrap();
        let error = meter.read(ID).unwrap_err();
        assert!(matches!(&error, KernelError::Content { found, .. } if found == "many\n"), "{error}");
        fs::write(tree.path("memory.current"), "1\n").unwrap();
        meter.dismiss(ID);
        assert!(matches!(meter.read(ID), Err(KernelError::NotAdmitted(_))));
    }
}

#[test]
fn a_withdrawn_counter_is_reported_once() {
    let tree = Tree::new(&[("cpu.stat", "usage_usec 1\n"), ("io.stat", "")]);
    let mut meter = CgroupMeter::v2(&tree.hierarchies, &DescriptorBudget::of(0));
    meter.admit(ID, &group()).unwrap();
    fs::remove_file(tree.path("io.stat")).unwrap();
    assert!(matches!(meter.read(ID), Err(KernelError::Withdrawn { resource: Resource::Disk, .. })));
    let usage = meter.read(ID).unwrap();
    assert_eq!((usage.cpu, usage.disk), (Some(1000), None));
    fs::remove_dir_all(tree.path("")).unwrap();
    assert!(matches!(meter.read(ID), Err(KernelError::Gone(_))));
}

fn any_weight() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0_f64..100.0, Just(f64::NAN), Just(f64::INFINITY)]
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).unwrap().lines().next().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// For arbitrary targets, each written value is in the kernel's range and is reported.
    #[test]
    fn written_values_are_in_the_kernels_range(cpu in any_weight(), disk in any_weight(), memory in any::<u64>(), files in 0_usize..3) {
        let tree = Tree::weights();
        let mut enforcer = tree.enforcer(DiskWeight::Bfq, Protection::Low, files);
        enforcer.admit(ID, &group()).unwrap();
        let targets = Targets { cpu: Some(cpu), disk: Some(disk), memory: Some(memory as f64), network: None };
        let mut changes = Vec::new();
        enforcer.apply(ID, &targets, &mut changes).unwrap();
        for change in changes {
            let (file, minimum, maximum) = match change.resource {
                Resource::Cpu => ("cpu.weight", 1, 10_000),
                Resource::Disk => ("io.bfq.weight", 1, 1000),
                Resource::Memory => ("memory.low", 0, (memory as f64) as u64),
                Resource::Network => unreachable!(),
            };
            prop_assert_eq!(number(&tree.path(file)), change.value);
            prop_assert!((minimum..=maximum).contains(&change.value));
        }
        // Applying the same targets again writes nothing.
        let mut changes = Vec::new();
        enforcer.apply(ID, &targets, &mut changes).unwrap();
        prop_assert_eq!(changes.len(), 0);
    }
}
