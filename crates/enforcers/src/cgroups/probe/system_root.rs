//! The directory tree through which the kernel describes a machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroups::{Hierarchies, KernelError};

/// The directory that contains `proc`, `sys`, `run` and all mount points: `/` on this machine, or a copy of another
/// machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemRoot {
    root: PathBuf,
}

impl Default for SystemRoot {
    fn default() -> SystemRoot {
        SystemRoot::below("/")
    }
}

impl SystemRoot {
    /// Uses the tree below this directory.
    pub fn below(root: impl Into<PathBuf>) -> SystemRoot {
        SystemRoot { root: root.into() }
    }

    /// Detects the cgroup hierarchies that are mounted for this process.
    ///
    /// # Errors
    /// Returns an error if `/proc/self/mountinfo` cannot be read.
    pub fn hierarchies(&self) -> Result<Hierarchies, KernelError> {
        let path = self.at("proc/self/mountinfo");
        let text =
            fs::read_to_string(&path).map_err(|source| KernelError::Io { what: path.display().to_string(), source })?;
        let mut found = Hierarchies::from_mountinfo(&text);
        for mount in found.unified.iter_mut().chain(found.legacy.values_mut()) {
            *mount = self.at(mount.strip_prefix("/").unwrap_or(mount));
        }
        Ok(found)
    }

    /// Returns where a path without a leading slash is, such as `run/evenhand`.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the path as it is on the described machine.
    pub(super) fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest))
            .display()
            .to_string()
    }

    /// Reads a file and trims its text. Returns `None` if it cannot be read.
    pub(super) fn text(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    }
}
