//! Restoring by the journal alone, what of a configuration releasing needs, and an agent that could write nothing.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use evenhand_agent::{
    AgentPlaces, AssembleError, Configuration, Entry, Journal, JournalError, Released, RestoreError, assemble,
    lock_folder, restore_entries, restore_journal,
};
use evenhand_documents::{Document, Format};
use evenhand_enforcers::cgroups::{
    CgroupEnforcer, DescriptorBudget, Enforcer, Group, GroupId, Hierarchies, HostLock, KernelError, ProtectedCgroups,
    Resource, SavedState, SystemRoot,
};

/// A machine whose `proc/self/mountinfo` names plain folders.
fn machine() -> (tempfile::TempDir, SystemRoot, Hierarchies) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("proc/self")).unwrap();
    let mounts = "26 29 0:24 / /cpu rw - cgroup cgroup rw,cpu\n27 29 0:25 / /memory rw - cgroup cgroup rw,memory\n";
    fs::write(folder.path().join("proc/self/mountinfo"), mounts).unwrap();
    for (file, text) in [("cpu/hE/a/cpu.shares", "512\n"), ("memory/hE/a/memory.soft_limit_in_bytes", "4096\n")] {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let system = SystemRoot::below(folder.path());
    let hierarchies = system.hierarchies().unwrap();
    (folder, system, hierarchies)
}

fn entry(hierarchies: &Hierarchies) -> Entry {
    let saved = [("cgroup-v1/cpu.shares", "1024"), ("cgroup-v1/memory.soft_limit_in_bytes", "8192")];
    Entry {
        group: Group { path: "hE/a".into(), ..Group::default() },
        identity: hierarchies.identity("hE/a").unwrap(),
        saved: SavedState(saved.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
    }
}

#[test]
fn a_journal_is_restored_by_itself_and_then_empty() {
    let (folder, system, hierarchies) = machine();
    let path = Journal::path_in(folder.path());
    let journal = Journal::open(&path).unwrap();
    journal.put(&[entry(&hierarchies)]).unwrap();
    let in_use = restore_journal(&path, &system).unwrap_err();
    assert!(matches!(in_use, RestoreError::Journal(JournalError::InUse { .. })), "{in_use}");
    drop(journal);
    // An agent that manages the groups by another journal.
    let locks = lock_folder(&system, folder.path()).unwrap();
    let lock = HostLock::take(&hierarchies, "hE", &locks).unwrap();
    let locked = restore_journal(&path, &system).unwrap_err();
    assert!(matches!(locked, RestoreError::Kernel(KernelError::Locked(_))), "{locked}");
    drop(lock);
    assert_eq!(restore_journal(&path, &system).unwrap().groups, 1);
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
    assert_eq!(
        (read("cpu/hE/a/cpu.shares").as_str(), read("memory/hE/a/memory.soft_limit_in_bytes").as_str()),
        ("1024\n", "8192\n")
    );
    // The identity of the memory's group is saved by the enforcer; this entry has none, as those of earlier versions.
    assert_eq!(Journal::open(&path).unwrap().entries().unwrap(), []);
    assert_eq!(restore_journal(&path, &system).unwrap(), Released::default());
}

#[test]
fn the_memory_of_a_group_whose_processor_group_has_ended_is_restored() {
    let (folder, system, hierarchies) = machine();
    let budget = DescriptorBudget::of(9);
    let mut enforcer = CgroupEnforcer::v1(&hierarchies, &Resource::ALL, ProtectedCgroups::default(), &budget);
    let SavedState(saved) = enforcer.admit(GroupId(0), &entry(&hierarchies).group).unwrap();
    let saved = saved.into_iter().map(|(name, value)| (format!("cgroup-v1/{name}"), value)).collect();
    let entry = Entry { saved: SavedState(saved), ..entry(&hierarchies) };
    let memory = folder.path().join("memory/hE/a/memory.soft_limit_in_bytes");
    fs::write(&memory, "12288\n").unwrap();
    fs::remove_dir_all(folder.path().join("cpu/hE/a")).unwrap();
    assert_eq!(
        restore_entries(&[entry], &Journal::path_in(folder.path()), &system).unwrap().failed,
        Vec::<String>::new()
    );
    assert_eq!(fs::read_to_string(memory).unwrap(), "4096\n");
}

#[test]
fn an_agent_that_can_write_nothing_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("proc/self")).unwrap();
    fs::write(folder.path().join("proc/self/mountinfo"), "").unwrap();
    let text = "[[guests]]\nfrom = 'user-slices'\n";
    let document = Document::parse("agent.toml", text, Some(Format::Toml)).unwrap();
    let configuration =
        Configuration::read(&document, &Hierarchies::default(), ProtectedCgroups::from_text("")).unwrap();
    match assemble(configuration, true, &SystemRoot::below(folder.path())) {
        Err(error @ AssembleError::NothingToWrite { .. }) => {
            let error = error.to_string();
            assert!(
                error.starts_with("nothing can be written here: cpu: no control groups are mounted; mem: "),
                "{error}"
            );
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it starts"),
    }
}

#[test]
fn places_are_read_from_a_configuration_with_errors_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    std::fs::write(&file, "[contrl]\ngain = 'x'\n[node]\nstate = '/s'\nunder = 7\n").unwrap();
    let socket = ("EVENHAND_AGENT__NODE__SOCKET".into(), "/run/x".into());
    let places = AgentPlaces::read(&file, [socket]);
    assert_eq!((places.state, places.socket, places.left_out), ("/s".into(), "/run/x".into(), Vec::<String>::new()));
    // What cannot be read is named, and the other layers count.
    let drop_ins = folder.path().join("agent.toml.d");
    std::fs::create_dir(&drop_ins).unwrap();
    std::fs::write(drop_ins.join("10-site.toml"), "[node\n").unwrap();
    std::fs::write(drop_ins.join("20-node.toml"), "[node]\nstate = '/t'\nsocket = 3\n").unwrap();
    let places = AgentPlaces::read(&file, []);
    assert_eq!(places.state, Path::new("/t"));
    assert_eq!(places.left_out.len(), 2, "{places:?}");
    assert!(places.left_out[0].contains("10-site.toml:1:"), "{places:?}");
    assert!(places.left_out[1].contains("20-node.toml:3:10"), "{places:?}");
    assert_eq!(AgentPlaces::read(&folder.path().join("nowhere"), []).left_out.len(), 1);
}
