//! Groups that are never guests: this process's own and what the machine itself runs in.

use std::collections::HashSet;
use std::fs;

use evenhand_enforcers::cgroups::KernelError;

use crate::discovery::GuestError;

/// In which groups a process runs.
#[derive(Clone, Debug, Default)]
pub struct Own {
    watched: bool,
    text: String,
    paths: HashSet<String>,
}

/// Wholes of which guests are parts.
const WHOLES: [&str; 6] = ["system.slice", "user.slice", "machine.slice", "machine", "init.scope", "-.slice"];

impl Own {
    /// Of this process. [`refresh`](Own::refresh) sees when it is moved.
    ///
    /// # Errors
    /// If `/proc/self/cgroup` cannot be read.
    pub fn detect() -> Result<Own, GuestError> {
        let mut own = Own { watched: true, ..Own::default() };
        own.refresh()?;
        Ok(own)
    }

    /// From the text of a process's `/proc/PID/cgroup` (cgroups(7)).
    pub fn from_text(text: &str) -> Own {
        let mut own = Own { watched: false, text: text.to_owned(), paths: HashSet::new() };
        for line in text.lines() {
            // Hierarchy, controllers, path. Which controllers does not matter: a group is weighed in all.
            let Some(path) = line.splitn(3, ':').nth(2).and_then(|path| path.strip_prefix('/')) else { continue };
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            own.paths.extend(ends.map(|end| path[..end].to_owned()).filter(|p| !p.is_empty()));
        }
        own
    }

    /// Reads it again, if it is this process's.
    ///
    /// # Errors
    /// As [`detect`](Own::detect); what was read last stays.
    pub fn refresh(&mut self) -> Result<(), GuestError> {
        const FILE: &str = "/proc/self/cgroup";
        if !self.watched {
            return Ok(());
        }
        let text = fs::read_to_string(FILE).map_err(|source| KernelError::Io { what: FILE.into(), source })?;
        if text != self.text {
            *self = Own { watched: true, ..Own::from_text(&text) };
        }
        Ok(())
    }

    /// Whether the group is one in which the process runs, or around it.
    pub fn is_around(&self, path: &str) -> bool {
        self.paths.contains(path)
    }
}

/// Whether the group is a whole of which guests are parts.
pub(crate) fn is_whole(path: &str) -> bool {
    path.is_empty() || WHOLES.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_and_all_around_them() {
        let own = Own::from_text("4:memory:/a/b\n1:name=systemd:/\n0::/user.slice/x:y.scope (deleted)\nnonsense\n");
        for path in ["a", "a/b", "user.slice", "user.slice/x:y.scope"] {
            assert!(own.is_around(path), "{path}");
        }
        for path in ["", "a/b/c", "b", "x:y.scope"] {
            assert!(!own.is_around(path), "{path}");
        }
    }

    #[test]
    fn this_process_runs_somewhere() {
        let mut own = Own::detect().unwrap();
        assert!(!own.text.is_empty());
        own.refresh().unwrap();
        assert!(!own.is_around("nobody/here"));
    }
}
