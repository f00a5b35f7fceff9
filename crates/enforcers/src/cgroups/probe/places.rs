//! Where the kernel shows itself.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroups::{Hierarchies, KernelError};

/// The folders in which the kernel shows itself: this machine's, or a copy of another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Under which everything is; `/` for this machine.
    root: PathBuf,
}

impl Default for Places {
    fn default() -> Places {
        Places::below("/")
    }
}

impl Places {
    /// With `proc`, `sys` and `run`, and all that is mounted, below this folder.
    pub fn below(root: impl Into<PathBuf>) -> Places {
        Places { root: root.into() }
    }

    /// The hierarchies of control groups, as mounted for this process.
    ///
    /// # Errors
    /// If `/proc/self/mountinfo` cannot be read.
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

    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// As it is called on the machine.
    pub(super) fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest))
            .display()
            .to_string()
    }

    /// The text of a file without the space around it. `None` if there is none to read.
    pub(super) fn text(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    }
}
