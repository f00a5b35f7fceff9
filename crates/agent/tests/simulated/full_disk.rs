//! An agent whose journal cannot be written: what was there before stays known until it is restored.

use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenhand_agent::{Agent, AgentError, Journal};
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use crate::machine::{MUCH, Machine, Setting, run, workload};
use crate::{after_20_updates, in_journal};

/// A file on a disk that may be full.
#[derive(Debug)]
struct Storage {
    file: FileBackend,
    is_full: Arc<AtomicBool>,
}

impl Storage {
    fn check(&self) -> io::Result<()> {
        match self.is_full.load(Ordering::SeqCst) {
            true => Err(rustix::io::Errno::NOSPC.into()),
            false => Ok(()),
        }
    }
}

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

/// Starts an agent with the journal of this folder, and returns the switch that makes its disk full.
fn start(folder: &Path, machine: &Machine) -> (Agent, Arc<AtomicBool>) {
    let is_full = Arc::new(AtomicBool::new(false));
    let path = Journal::path_in(folder);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
    let storage = Storage { file: FileBackend::new(file).unwrap(), is_full: Arc::clone(&is_full) };
    let journal = Journal::open_in(storage, &path).unwrap();
    let agent = Setting { journal: Some(journal), ..Setting::without_journal() }.start(machine);
    (agent, is_full)
}

/// Starts an agent as [`start`] after one that ended in the middle of its work; with the weights before both.
fn started_again(folder: &Path) -> (Machine, Vec<[u64; 2]>, Agent, Arc<AtomicBool>) {
    let (machine, before, agent) = after_20_updates(folder);
    drop(agent);
    let (agent, is_full) = start(folder, &machine);
    (machine, before, agent, is_full)
}

/// Makes what is named fail of the workload d.2, or nothing.
fn fail(machine: &Machine, what: Option<&'static str>) {
    machine.world().workloads.get_mut("d.2").unwrap().fails = what;
}

fn fails(agent: &mut Agent, second: u64) {
    let error = agent.update(Duration::from_secs(second)).unwrap_err();
    assert!(matches!(error, AgentError::Journal(_)), "{error}");
    assert!(error.to_string().contains("No space left on device"), "{error}");
}

#[test]
fn groups_of_an_earlier_run_are_restored_when_the_journal_cannot_forget_them() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, mut agent, is_full) = started_again(folder.path());
    machine.world().unlisted = vec!["d.1", "d.2", "e.1"];
    fail(&machine, Some("restore"));
    is_full.store(true, Ordering::SeqCst);
    fails(&mut agent, 20);
    // Neither the journal nor another group keeps a group from being restored.
    let weights = machine.weights();
    assert_eq!([weights[0], weights[2]], [before[0], before[2]]);
    assert_ne!(weights[1], before[1]);
    fail(&machine, None);
    let released = agent.release();
    assert_eq!(machine.weights(), before);
    assert!(released.left.is_empty() && released.failed.len() == 1, "{released:?}");
    drop(agent);
    assert_eq!(in_journal(&folder).len(), 3);
    let (mut agent, _) = start(folder.path(), &machine);
    assert!(agent.release().failed.is_empty());
    drop(agent);
    assert!(in_journal(&folder).is_empty());
}

#[test]
fn a_rejected_workload_keeps_its_saved_weights_when_they_cannot_be_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, mut agent, is_full) = started_again(folder.path());
    fail(&machine, Some("admit or restore"));
    run(&mut [(&machine, &mut agent)], 20, 1);
    is_full.store(true, Ordering::SeqCst);
    // The enforcer admits it now, and what it had before cannot be stored: what is known of it stays.
    fail(&machine, Some("restore"));
    fails(&mut agent, 21);
    assert_ne!(machine.weights()[1], before[1]);
    fail(&machine, None);
    agent.release();
    assert_eq!(machine.weights(), before);
}

#[test]
fn a_new_workload_is_not_changed_and_the_others_are_restored_when_it_cannot_be_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, before, mut agent, is_full) = started_again(folder.path());
    // One that an earlier run changed is admitted again, in the same transaction as the new one.
    machine.world().unlisted = vec!["d.2"];
    fail(&machine, Some("restore"));
    run(&mut [(&machine, &mut agent)], 20, 5);
    assert_ne!(machine.weights()[1], before[1]);
    machine.world().unlisted.clear();
    machine.world().workloads.insert("f.1".into(), workload("f", [MUCH; 2]));
    is_full.store(true, Ordering::SeqCst);
    fails(&mut agent, 25);
    assert_eq!(machine.weights()[3], [100; 2]);
    fail(&machine, None);
    agent.release();
    assert_eq!(machine.weights()[..3], before);
    assert_eq!(machine.weights()[3], [100; 2]);
}
