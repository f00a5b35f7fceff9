//! The folder of the locks that keep two agents from managing the same groups.

use std::env::var_os;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use evenhand_enforcers::cgroups::SystemRoot;

use crate::trusted_files::{TrustError, check_trusted_folder, create_private_folder};

/// Returns the folder for locks, which only this user may open, and creates it if it is missing: of root one for all agents of the
/// machine; of another user the one in the folder of the session, or else in the agent's `state`.
///
/// # Errors
/// Returns an error if it cannot be created, or if another user could take the locks of this one.
pub fn lock_folder(system: &SystemRoot, state: &Path) -> Result<PathBuf, TrustError> {
    let is_root = rustix::process::geteuid().is_root();
    let folder = place(is_root, var_os("XDG_RUNTIME_DIR"), system, state);
    // The state, too, is for this user alone.
    for path in [state, folder.as_path()].into_iter().filter(|path| folder.starts_with(path)) {
        create_private_folder(path).map_err(|source| TrustError::Read { path: path.to_owned(), source })?;
    }
    check_trusted_folder(&folder)?;
    Ok(folder)
}

fn place(is_root: bool, session: Option<OsString>, system: &SystemRoot, state: &Path) -> PathBuf {
    if is_root {
        return system.at("run/evenhand/locks");
    }
    match session.map(PathBuf::from).filter(|session| session.is_absolute()) {
        Some(session) => session.join("evenhand/locks"),
        None => state.join("locks"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn locks_are_where_other_users_cannot_take_them() {
        let root = tempfile::tempdir().unwrap();
        let system = SystemRoot::below(root.path());
        let state = root.path().join("state");
        let of = |is_root, session: Option<&str>| place(is_root, session.map(OsString::from), &system, &state);
        assert_eq!(of(true, Some("/run/user/7")), root.path().join("run/evenhand/locks"));
        assert_eq!(of(false, Some("/run/user/7")), Path::new("/run/user/7/evenhand/locks"));
        for relative_or_none in [Some("x"), Some(""), None] {
            assert_eq!(of(false, relative_or_none), state.join("locks"));
        }
        let folder = lock_folder(&system, &state).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(lock_folder(&system, &state).unwrap(), folder);
        fs::set_permissions(&folder, Permissions::from_mode(0o733)).unwrap();
        assert!(matches!(lock_folder(&system, &state), Err(TrustError::Writable { .. })));
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    }
}
