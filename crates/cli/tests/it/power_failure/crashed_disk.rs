//! The disk after a power failure, from a record of operations on files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a power failure takes that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The content of files, and new names, renames and removals in folders.
    EverythingUnsynced,
    /// The content of files; names are as the program saw them.
    UnsyncedContent,
}

#[derive(Debug)]
enum Operation {
    Create(PathBuf),
    Sync(PathBuf, Vec<u8>),
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    MakeFolder(PathBuf),
}

/// The operations of a program below one folder, with paths relative to it.
pub(crate) struct OperationLog(Vec<Operation>);

impl OperationLog {
    /// Reads what `record_file_operations.c` wrote.
    pub(crate) fn read(log: &Path, snapshots: &Path, root: &Path) -> OperationLog {
        let root = std::fs::canonicalize(root).unwrap();
        // The components, because `a/./b` is `a/b`.
        let relative = |path: &str| Path::new(path).strip_prefix(&root).unwrap().components().collect::<PathBuf>();
        let operation = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
            ["create", path] => Operation::Create(relative(path)),
            ["sync", path, number] => Operation::Sync(relative(path), std::fs::read(snapshots.join(number)).unwrap()),
            ["sync-folder", path] => Operation::SyncFolder(relative(path)),
            ["rename", from, to] => Operation::Rename(relative(from), relative(to)),
            ["unlink", path] => Operation::Unlink(relative(path)),
            ["mkdir", path] => Operation::MakeFolder(relative(path)),
            _ => panic!("{line}"),
        };
        OperationLog(std::fs::read_to_string(log).unwrap().lines().map(operation).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes to the empty folder `to` what is on the disk if the power fails after the first `count` operations, with
    /// `files` on it before the first.
    pub(crate) fn write_disk_after(&self, count: usize, lost: Lost, files: &BTreeMap<PathBuf, Vec<u8>>, to: &Path) {
        let mut disk = Disk::default();
        for (path, content) in files {
            disk.contents.push(content.clone());
            disk.seen.insert(path.clone(), Entry::File(disk.contents.len() - 1));
        }
        disk.synced = disk.seen.clone();
        for operation in &self.0[..count] {
            disk.apply(operation);
        }
        let entries = if lost == Lost::EverythingUnsynced { disk.reachable() } else { disk.seen };
        // A folder comes before what is in it.
        for (path, entry) in entries {
            match entry {
                Entry::Folder => std::fs::create_dir(to.join(path)).unwrap(),
                Entry::File(inode) => std::fs::write(to.join(path), &disk.contents[inode]).unwrap(),
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Entry {
    File(usize),
    Folder,
}

#[derive(Default)]
struct Disk {
    /// What was synced of each file; empty at first.
    contents: Vec<Vec<u8>>,
    /// The names as the program sees them.
    seen: BTreeMap<PathBuf, Entry>,
    /// The names that were synced.
    synced: BTreeMap<PathBuf, Entry>,
}

impl Disk {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Create(path) => {
                self.contents.push(Vec::new());
                self.seen.insert(path.clone(), Entry::File(self.contents.len() - 1));
            }
            Operation::Sync(path, content) => {
                let Some(Entry::File(inode)) = self.seen.get(path) else { panic!("{} is no file", path.display()) };
                self.contents[*inode].clone_from(content);
            }
            Operation::Rename(from, to) => {
                let entry = self.seen.remove(from).unwrap();
                self.seen.insert(to.clone(), entry);
            }
            Operation::Unlink(path) => drop(self.seen.remove(path)),
            Operation::MakeFolder(path) => drop(self.seen.insert(path.clone(), Entry::Folder)),
            Operation::SyncFolder(folder) => {
                let is_in = |path: &Path| path.parent() == Some(folder);
                self.synced.retain(|path, _| !is_in(path));
                let now: Vec<_> =
                    self.seen.iter().filter(|(path, _)| is_in(path)).map(|(p, e)| (p.clone(), *e)).collect();
                self.synced.extend(now);
            }
        }
    }

    /// Returns the synced names whose folders have synced names too.
    fn reachable(&self) -> BTreeMap<PathBuf, Entry> {
        let mut folders = BTreeSet::from([PathBuf::new()]);
        let mut found = BTreeMap::new();
        for (path, entry) in &self.synced {
            if !path.parent().is_some_and(|parent| folders.contains(parent)) {
                continue;
            }
            if matches!(entry, Entry::Folder) {
                folders.insert(path.clone());
            }
            found.insert(path.clone(), *entry);
        }
        found
    }
}
