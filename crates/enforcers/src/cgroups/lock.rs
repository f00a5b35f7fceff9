//! Locks that keep two agents from managing the same groups.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::cgroups::cgroup_meter::io_error;
use crate::cgroups::protected_cgroups::check_group_path;
use crate::cgroups::{Hierarchies, KernelError};

/// Holds the right to manage the groups below one path. The kernel releases it when the process ends, however it
/// ends.
///
/// A group itself is locked exclusively, its ancestors in shared mode: so one agent for the whole machine excludes all
/// others, while two agents for separate slices do not conflict.
///
/// Each group is locked by a file in a folder for locks, and not by its own directory: everybody who may open a file can
/// lock it (flock(2)), and the directories of groups are open to all users of the machine. The file has the name of the
/// directory's device and number, so that it is the same wherever the hierarchy is mounted; it stays, since one that is
/// removed while another agent opens it would lock nothing.
#[derive(Debug)]
pub struct HostLock(#[expect(dead_code, reason = "held, not used")] Vec<File>);

impl HostLock {
    /// Locks the groups below `under` ("" is the root) in the [main](Hierarchies::main) hierarchy, by files in the folder
    /// `locks`, which all agents of the machine share and nobody else may open.
    ///
    /// # Errors
    /// Returns [`KernelError::Locked`] with the directory of the group that another agent has locked, [`KernelError::Gone`]
    /// if there is no such group, or an error if a file cannot be created.
    pub fn take(hierarchies: &Hierarchies, under: &str, locks: &Path) -> Result<HostLock, KernelError> {
        if !under.is_empty() {
            check_group_path(under)?;
        }
        let Some(root) = hierarchies.main() else { return Err(KernelError::Gone(under.to_owned())) };
        let mut folder = root.to_owned();
        let mut held = Vec::new();
        for part in under.split('/').filter(|part| !part.is_empty()) {
            held.push(lock(&folder, locks, FlockOperation::NonBlockingLockShared)?);
            folder.push(part);
        }
        held.push(lock(&folder, locks, FlockOperation::NonBlockingLockExclusive)?);
        Ok(HostLock(held))
    }
}

fn lock(folder: &Path, locks: &Path, how: FlockOperation) -> Result<File, KernelError> {
    let name = || folder.display().to_string();
    let group = match std::fs::metadata(folder) {
        Ok(group) => group,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(KernelError::Gone(name())),
        Err(error) => return Err(io_error(folder, error)),
    };
    let path = locks.join(format!("{:x}-{:x}", group.dev(), group.ino()));
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = options.open(&path).map_err(|error| io_error(&path, error))?;
    match flock(&file, how) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(KernelError::Locked(name())),
        Err(error) => Err(io_error(&path, error.into())),
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
        let locks = tempfile::tempdir().unwrap();
        let take = |under| HostLock::take(&all, under, locks.path());
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
        assert!(matches!(HostLock::take(&Hierarchies::default(), "", locks.path()), Err(KernelError::Gone(_))));
    }

    #[test]
    fn a_lock_on_the_directory_of_a_group_blocks_no_agent() {
        let folder = tempfile::tempdir().unwrap();
        let all = Hierarchies { unified: Some(folder.path().to_owned()), ..Hierarchies::default() };
        // As every user can take it who may list the directory.
        let other = File::open(folder.path()).unwrap();
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        let locks = tempfile::tempdir().unwrap();
        HostLock::take(&all, "", locks.path()).unwrap();
        let error = HostLock::take(&all, "", Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/"), "{error}");
    }
}
