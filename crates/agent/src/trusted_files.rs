//! Files on which the agent's rights depend.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use evenhand_documents::{Document, DocumentError, Format, Source};
use rustix::fs::OFlags;
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

/// Opens a regular file for reading. A pipe or a device in its place, which may have no end or no writer, is an error, and opening
/// it does not wait.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not a regular one.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(rustix::io::Errno::ISDIR.into()),
        // As a folder, the fault of the path that was given.
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "found a pipe or a device, expected a regular file")),
    }
}

/// The largest file of a configuration: a table of half a million groups.
const LARGEST: u64 = 64 << 20;

/// Reads a file of the configuration, or standard input if `path` is `-`.
///
/// # Errors
/// Returns an error if it is not a regular file, is larger than any such file has to be, cannot be read, or is not UTF-8.
pub(crate) fn read_source(path: &Path) -> Result<Source, DocumentError> {
    if path == Path::new("-") {
        return Source::read(path);
    }
    let name = path.display().to_string();
    let read = || {
        let mut bytes = Vec::new();
        // Not only by the size in the metadata: a file may grow.
        open_regular(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            let problem = format!("found more than {} MiB, expected a smaller file", LARGEST >> 20);
            return Err(io::Error::other(problem));
        }
        Ok(bytes)
    };
    let bytes = read().map_err(|source| DocumentError::Read { path: name.clone(), source })?;
    Source::of_bytes(name, bytes)
}

/// Reads a file of the configuration as [`read_source`] does, and parses it; its extension decides the format, or else the text.
///
/// # Errors
/// As [`read_source`], and if the text is not in the format.
pub(crate) fn read_document(path: &Path) -> Result<Document, DocumentError> {
    Document::of(read_source(path)?, Format::of_path(path))
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
    fn only_regular_files_of_a_limited_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let error = read_source(path).unwrap_err().to_string();
            assert!(error.contains("expected a regular file"), "{error}");
        }
        let error = read_source(folder.path()).unwrap_err().to_string();
        assert!(error.contains("Is a directory"), "{error}");
        let large = folder.path().join("large");
        fs::File::create(&large).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(read_source(&large).unwrap_err().to_string().contains("found more than 64 MiB"));
        fs::write(&large, "a b").unwrap();
        assert_eq!(read_source(&large).unwrap().text(), "a b");
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
