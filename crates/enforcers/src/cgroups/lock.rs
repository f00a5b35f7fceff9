//! One agent at a time.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::cgroups::own::check_path;
use crate::cgroups::sources::failed;
use crate::cgroups::{Hierarchies, KernelError};

/// That no other agent weighs groups in the same place, for as long as this is held; the kernel lets go of it
/// when the process ends, however it ends.
///
/// The folder itself is locked for this agent alone, those around it together with others that have places
/// within: so one agent for the whole machine keeps out all others, and two for separate slices do not meet.
#[derive(Debug)]
pub struct HostLock(#[expect(dead_code, reason = "held, not used")] Vec<File>);

impl HostLock {
    /// For the groups below `under` ("" is the root) in the [main](Hierarchies::main) hierarchy.
    ///
    /// # Errors
    /// [`KernelError::Locked`] with the folder that somebody else has, [`KernelError::Gone`] if there is no such
    /// group.
    pub fn take(hierarchies: &Hierarchies, under: &str) -> Result<HostLock, KernelError> {
        if !under.is_empty() {
            check_path(under)?;
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
        Err(error) => return Err(failed(folder, error)),
    };
    match flock(&file, how) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(KernelError::Locked(name())),
        Err(error) => Err(failed(folder, error.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn agents_keep_out_of_each_others_way() {
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
        assert!(matches!(take("a/../b"), Err(KernelError::Path(_))));
        assert!(matches!(HostLock::take(&Hierarchies::default(), ""), Err(KernelError::Gone(_))));
    }
}
