//! Files on which the agent's rights depend.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file is not trusted: another user could change what it says.
#[derive(Debug, Error)]
pub enum TrustError {
    /// It cannot be examined.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// It, or a symbolic link to it, belongs to another user.
    #[error("{}: found {what} of user {owner}, expected one of root or of the user who runs this; chown it", path.display())]
    Owner {
        /// The file or link.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// The number of the user.
        owner: u32,
    },
    /// Users other than its owner may write it.
    #[error("{}: users other than its owner may write it (mode {mode:03o}; expected no w for group and others: chmod go-w)", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
    /// It is not of the expected kind, but a device or a pipe, for instance.
    #[error("{}: expected a {expected}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// The kind.
        expected: &'static str,
    },
}

/// Checks that only root and the user who runs this process can change a file: by its owner and permissions, and by the
/// owner of a symbolic link in its place.
///
/// # Errors
/// Returns the first violation.
pub fn check_trusted(path: &Path) -> Result<(), TrustError> {
    check(path, "regular file", fs::Metadata::is_file)
}

/// Checks that only root and the user who runs this process can add files to a folder.
///
/// # Errors
/// Returns the first violation.
pub(crate) fn check_trusted_folder(path: &Path) -> Result<(), TrustError> {
    check(path, "folder", fs::Metadata::is_dir)
}

fn check(path: &Path, expected: &'static str, is_expected: fn(&fs::Metadata) -> bool) -> Result<(), TrustError> {
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    let user = rustix::process::geteuid().as_raw();
    let owned = |found: &fs::Metadata, what| match found.uid() {
        owner if owner == 0 || owner == user => Ok(()),
        owner => Err(TrustError::Owner { path: path.to_owned(), what, owner }),
    };
    let named = fs::symlink_metadata(path).map_err(read)?;
    if named.is_symlink() {
        owned(&named, "a symbolic link")?;
    }
    let file = fs::metadata(path).map_err(read)?;
    if !is_expected(&file) {
        return Err(TrustError::Kind { path: path.to_owned(), expected });
    }
    owned(&file, if file.is_dir() { "a folder" } else { "a file" })?;
    match file.permissions().mode() & 0o777 {
        mode if mode & 0o022 != 0 => Err(TrustError::Writable { path: path.to_owned(), mode }),
        _ => Ok(()),
    }
}

/// Opens a file for reading and writing, and creates it if it is not there. Only its owner may read and write it, also if it
/// was there with more permissions.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let found = file.metadata()?;
    if found.permissions().mode() & 0o077 != 0 && found.uid() == rustix::process::geteuid().as_raw() {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_that_others_may_write_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.toml");
        fs::write(&file, "").unwrap();
        let check = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            check_trusted(&file)
        };
        assert!(check(0o644).is_ok() && check(0o400).is_ok());
        assert!(matches!(check(0o664), Err(TrustError::Writable { mode: 0o664, .. })));
        assert!(matches!(check(0o602), Err(TrustError::Writable { .. })));
        assert!(matches!(check_trusted(folder.path()), Err(TrustError::Kind { .. })));
        assert!(check_trusted_folder(folder.path()).is_ok());
        assert!(matches!(check_trusted_folder(&file), Err(TrustError::Kind { expected: "folder", .. })));
        assert!(matches!(check_trusted(Path::new("/nowhere")), Err(TrustError::Read { .. })));
        check(0o600).unwrap();
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(check_trusted(&link).is_ok(), "a link of this user");
    }

    #[test]
    fn a_file_and_a_link_of_another_user_are_not_trusted() {
        // Only root can give files away.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("agent.toml"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(1), None).unwrap();
        let what = |path: &Path| match check_trusted(path) {
            Err(TrustError::Owner { what, owner: 1, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(&link), "a symbolic link");
        std::os::unix::fs::chown(&file, Some(1), None).unwrap();
        assert_eq!(what(&file), "a file");
    }

    #[test]
    fn a_private_file_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        open_private(&path).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        open_private(&path).unwrap();
        assert_eq!(mode(), 0o600);
    }
}
