//! The control groups that are never changed.

use std::collections::HashSet;
use std::fs;

use crate::cgroups::KernelError;

const OWN_CGROUPS: &str = "/proc/self/cgroup";

/// The control groups in which this process runs, and all their ancestors: these are never changed, because the agent
/// would throttle itself and everything beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedCgroups {
    /// Whether the groups are those of this process, so that [`refresh`](ProtectedCgroups::refresh) reads them again.
    detected: bool,
    text: String,
    paths: HashSet<String>,
}

impl ProtectedCgroups {
    /// Detects the groups of this process. [`refresh`](ProtectedCgroups::refresh) notices when it is moved.
    ///
    /// # Errors
    /// Returns an error if `/proc/self/cgroup` cannot be read.
    pub fn detect() -> Result<ProtectedCgroups, KernelError> {
        let mut protected = ProtectedCgroups { detected: true, ..ProtectedCgroups::default() };
        protected.refresh()?;
        Ok(protected)
    }

    /// Parses the `/proc/PID/cgroup` file of a process (cgroups(7)).
    pub fn from_text(text: &str) -> ProtectedCgroups {
        let mut paths = HashSet::new();
        for line in text.lines() {
            // Hierarchy, controllers, path. The controllers do not matter: a group is changed in all hierarchies.
            let Some(path) = line.splitn(3, ':').nth(2).and_then(|path| path.strip_prefix('/')) else { continue };
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            paths.extend(ends.map(|end| path[..end].to_owned()).filter(|path| !path.is_empty()));
        }
        ProtectedCgroups { detected: false, text: text.to_owned(), paths }
    }

    /// Reads the groups again if they were [detected](ProtectedCgroups::detect).
    ///
    /// # Errors
    /// As [`detect`](ProtectedCgroups::detect); the groups read last then stay protected.
    pub fn refresh(&mut self) -> Result<(), KernelError> {
        if !self.detected {
            return Ok(());
        }
        let text =
            fs::read_to_string(OWN_CGROUPS).map_err(|source| KernelError::Io { what: OWN_CGROUPS.into(), source })?;
        if text != self.text {
            *self = ProtectedCgroups { detected: true, ..ProtectedCgroups::from_text(&text) };
        }
        Ok(())
    }

    /// Returns whether the process runs in this group or in a descendant of it.
    pub fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Checks that a group may be changed.
    ///
    /// # Errors
    /// Returns [`KernelError::InvalidPath`] if `path` [is not a group's path](is_group_path), and
    /// [`KernelError::Protected`] if the group is protected.
    pub fn check(&self, path: &str) -> Result<(), KernelError> {
        check_group_path(path)?;
        if self.contains(path) { Err(KernelError::Protected(path.to_owned())) } else { Ok(()) }
    }
}

/// Returns whether `path` can be the path of a group below a hierarchy's root: `a/b.slice`, but not `/a`, `a//b` or
/// `a/../b`.
pub fn is_group_path(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\0', '\n']);
    path.split('/').all(is_name)
}

pub(crate) fn check_group_path(path: &str) -> Result<(), KernelError> {
    if is_group_path(path) { Ok(()) } else { Err(KernelError::InvalidPath(path.to_owned())) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_paths_and_the_groups_of_this_process_are_rejected() {
        let text = "9:name=systemd:/s\n4:memory:/m\n2:cpu,cpuacct:/a/b:c\n0::/system.slice/agent.service\nnonsense\n";
        let protected = ProtectedCgroups::from_text(text);
        for path in ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "a\0", "a\nb"] {
            assert!(matches!(protected.check(path), Err(KernelError::InvalidPath(_))), "{path:?}");
        }
        for path in ["a", "a/b:c", "s", "m", "system.slice", "system.slice/agent.service"] {
            assert!(matches!(protected.check(path), Err(KernelError::Protected(_))), "{path}");
        }
        for path in ["a/b", "a/b:c/d", "system.slice/agent", "..a", "machine.slice/qemu\\x2d1.scope", "a/b c/\u{e9}"] {
            assert!(protected.check(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn the_groups_of_a_process_and_their_ancestors_are_protected() {
        let text = "4:memory:/a/b\n1:name=systemd:/\n0::/user.slice/x:y.scope (deleted)\nnonsense\n";
        let protected = ProtectedCgroups::from_text(text);
        for path in ["a", "a/b", "user.slice", "user.slice/x:y.scope"] {
            assert!(protected.contains(path), "{path}");
        }
        for path in ["", "a/b/c", "b", "x:y.scope"] {
            assert!(!protected.contains(path), "{path}");
        }
    }

    #[test]
    fn the_groups_of_this_process_are_detected() {
        let mut protected = ProtectedCgroups::detect().unwrap();
        assert!(!protected.text.is_empty());
        protected.refresh().unwrap();
        assert!(!protected.contains("no/such/group"));
    }

    proptest! {
        #[test]
        fn accepted_paths_stay_below_the_root(path in "[./a]{0,8}") {
            if ProtectedCgroups::default().check(&path).is_ok() {
                let joined = Path::new("/root").join(&path);
                prop_assert!(joined != Path::new("/root") && joined.starts_with("/root"));
                prop_assert!(joined.components().all(|c| c != std::path::Component::ParentDir));
            }
        }
    }
}
