//! A directory of plain directories and files with the layout of control groups.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};

use evenhand_agent::discovery::{Discovery, Snapshot};
use evenhand_documents::{Document, Format};
use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};
use tempfile::TempDir;

/// A fake machine.
pub(crate) struct Machine {
    folder: TempDir,
    pub(crate) hierarchies: Hierarchies,
}

impl Machine {
    /// Creates a machine with cgroup v2 only.
    pub(crate) fn unified() -> Machine {
        Machine::unified_in(tempfile::tempdir().unwrap())
    }

    /// As [`unified`](Machine::unified), in memory if there is such a file system: for thousands of groups.
    pub(crate) fn large() -> Machine {
        Machine::unified_in(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn unified_in(folder: TempDir) -> Machine {
        let root = folder.path().join("cgroup");
        fs::create_dir(&root).unwrap();
        let hierarchies = Hierarchies { unified: Some(root), ..Hierarchies::default() };
        Machine { folder, hierarchies }
    }

    /// Creates a machine with the controllers of cgroup v1.
    pub(crate) fn legacy() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let root = |name: &str| {
            let root = folder.path().join(name);
            fs::create_dir(&root).unwrap();
            (name.to_owned(), root)
        };
        let legacy = ["cpu", "memory", "cpuset"].map(root).into();
        Machine { hierarchies: Hierarchies { legacy, unified: None }, folder }
    }

    /// Returns a path outside the groups.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn root(&self) -> &Path {
        self.hierarchies.main().unwrap()
    }

    pub(crate) fn group(&self, path: &str) {
        fs::create_dir_all(self.root().join(path)).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_dir_all(self.root().join(path)).unwrap();
    }

    pub(crate) fn try_discovery(&self, text: &str) -> Result<Discovery, String> {
        self.discovery_in(text, "")
    }

    /// Creates the sources for a process whose `/proc/PID/cgroup` is `own`.
    pub(crate) fn discovery_in(&self, text: &str, own: &str) -> Result<Discovery, String> {
        let document = Document::parse("agent.toml", text, Some(Format::Toml)).map_err(|e| e.to_string())?;
        let list = document.root().unwrap().required("guests", "[[guests]]").unwrap();
        let tables = list.list().unwrap().map(|node| node.table().unwrap());
        Discovery::read(tables, &self.hierarchies, ProtectedCgroups::from_text(own)).map_err(|e| e.to_string())
    }

    pub(crate) fn discovery(&self, text: &str) -> Discovery {
        self.try_discovery(text).unwrap()
    }
}

/// Formats each workload of a snapshot as a line: path, owner, name.
pub(crate) fn lines(seen: &Snapshot) -> Vec<String> {
    seen.workloads.iter().map(|w| format!("{} {} {}", w.group.path, w.owner, w.name)).collect()
}

pub(crate) fn warnings(seen: &Snapshot) -> Vec<String> {
    seen.warnings.iter().map(ToString::to_string).collect()
}
