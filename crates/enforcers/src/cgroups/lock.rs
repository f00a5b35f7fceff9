//! Locks that keep two agents from managing the same groups.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::cgroups::cgroup_meter::io_error;
use crate::cgroups::protected_cgroups::check_group_path;
use crate::cgroups::{Hierarchies, KernelError};

/// Holds the right to manage the groups below one path. The kernel releases it when the process ends, however it
/// ends.
///
/// The directory itself is locked exclusively, its ancestors in shared mode: so one agent for the whole machine
/// excludes all others, while two agents for separate slices do not conflict.
#[derive(Debug)]
pub struct HostLock(#[expect(dead_code, reason = "held, not used")] Vec<File>);

impl HostLock {
    /// Locks the groups below `under` ("" is the root) in the [main](Hierarchies::main) hierarchy.
    ///
    /// # Errors
    /// Returns [`KernelError::Locked`] with the directory that another agent has locked, or [`KernelError::Gone`] if
    /// there is no such group.
    pub fn take(hierarchies: &Hierarchies, under: &str) -> Result<HostLock, KernelError> {
        if !under.is_empty() {
            check_group_path(under)?;
        }
        let Some(root) = hierarchies.main() else { return Err(KernelError::Gone(under.to_owned())) };
        let mut folder = root.to_owned();
        let mut held = Vec::new();
        for part in under.split('/').filter(|part| !part.is_empty()) {
            held.push(lock(&folder, FlockOperation::NonBlockingLockShared)?);
            folder.push(part);
        }
        held.push(lock(&folder, FlockOperation::NonBlockingLockExclusive)?);
        Ok(HostLock(held))
    }
}

fn lock(folder: &Path, how: FlockOperation) -> Result<File, KernelError> {
    let name = || folder.display().to_string();
    let file = match File::open(folder) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(KernelError::Gone(name())),
        Err(error) => return Err(io_error(folder, error)),
    };
    match flock(&file, how) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(KernelError::Locked(name())),
        Err(error) => Err(io_error(folder, error.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn agents_exclude_each_other_only_where_their_groups_overlap() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/x")).unwrap();
        fs::create_dir_all(folder.path().join("b")).unwrap();
        let all = Hierarchies { unified: Some(folder.path().to_owned()), ..Hierarchies::default() };
        let take = |under| HostLock::take(&all, under);
        let refused = |under, by: &str| match take(under).unwrap_err() {
            KernelError::Locked(at) => assert_eq!(Path::new(&at), folder.path().join(by), "{under}"),
            other => panic!("{other}"),
        };
        let whole = take("").unwrap();
        ["", "a", "a/x", "b"].into_iter().for_each(|under| refused(under, ""));
        drop(whole);
        let inner = take("a/x").unwrap();
        refused("", "");
        refused("a", "a");
        refused("a/x", "a/x");
        let other = take("b").unwrap();
        drop((inner, other));
        drop(take("a").unwrap());
        assert!(matches!(take("none"), Err(KernelError::Gone(_))));
        assert!(matches!(take("a/../b"), Err(KernelError::InvalidPath(_))));
        assert!(matches!(HostLock::take(&Hierarchies::default(), ""), Err(KernelError::Gone(_))));
    }
}
