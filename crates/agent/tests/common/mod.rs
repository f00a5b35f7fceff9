//! A folder of plain folders and files that looks like control groups.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};

use evenhand_agent::discovery::{Guests, Own, Seen};
use evenhand_documents::{Document, Format};
use evenhand_enforcers::cgroups::Hierarchies;
use tempfile::TempDir;

/// A machine, made up.
pub(crate) struct Machine {
    folder: TempDir,
    pub(crate) hierarchies: Hierarchies,
}

impl Machine {
    /// With version 2 only.
    pub(crate) fn unified() -> Machine {
        Machine::unified_in(tempfile::tempdir().unwrap())
    }

    /// The same in memory, if there is such a file system: for thousands of groups.
    pub(crate) fn large() -> Machine {
        Machine::unified_in(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn unified_in(folder: TempDir) -> Machine {
        let root = folder.path().join("cgroup");
        fs::create_dir(&root).unwrap();
        let hierarchies = Hierarchies { unified: Some(root), ..Hierarchies::default() };
        Machine { folder, hierarchies }
    }

    /// With the controllers of version 1.
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

    /// A path outside the groups.
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

    pub(crate) fn try_guests(&self, text: &str) -> Result<Guests, String> {
        self.guests_around(text, "")
    }

    /// `own` is where the process that looks runs.
    pub(crate) fn guests_around(&self, text: &str, own: &str) -> Result<Guests, String> {
        let document = Document::parse("agent.toml", text, Some(Format::Toml)).map_err(|e| e.to_string())?;
        let list = document.root().unwrap().required("guests", "[[guests]]").unwrap();
        let tables = list.list().unwrap().map(|node| node.table().unwrap());
        Guests::read(tables, &self.hierarchies, Own::from_text(own)).map_err(|e| e.to_string())
    }

    pub(crate) fn guests(&self, text: &str) -> Guests {
        self.try_guests(text).unwrap()
    }
}

/// What was seen, a guest a line: path, owner, name.
pub(crate) fn lines(seen: &Seen) -> Vec<String> {
    seen.guests.iter().map(|g| format!("{} {} {}", g.group.path, g.owner, g.name)).collect()
}

pub(crate) fn remarks(seen: &Seen) -> Vec<String> {
    seen.remarks.iter().map(ToString::to_string).collect()
}
