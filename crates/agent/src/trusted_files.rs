//! Files on which the agent's rights depend.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
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
    #[error(
        "{}: found {what} of user {owner} (mode {mode:03o}), expected one of {}: chown -h {user} {}",
        path.display(), owners(*user), path.display()
    )]
    Owner {
        /// The file or link.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// The number of the user.
        owner: u32,
        /// The permissions.
        mode: u32,
        /// The number of the user who runs this.
        user: u32,
    },
    /// Users other than its owner may write it.
    #[error(
        "{}: users other than its owner may write it (mode {mode:03o} of user {owner}; expected no w for group and others: chmod \
         go-w {})",
        path.display(), path.display()
    )]
    Writable {
        /// The file.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
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

/// Names who may own what is trusted by a process of this user.
fn owners(user: u32) -> String {
    if user == 0 { "root".into() } else { format!("root or of user {user}, who runs this") }
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

/// Checks that only root and the user who runs this process can change or replace what it keeps in a folder. Others may have files
/// of their own in it, as in one with the sticky bit.
///
/// # Errors
/// Returns the first violation.
pub(crate) fn check_state_folder(path: &Path) -> Result<(), TrustError> {
    match check_trusted_folder(path) {
        Err(TrustError::Writable { mode, .. }) if mode & STICKY != 0 => Ok(()),
        checked => checked,
    }
}

/// Only the owner of a file removes or renames it in a folder with this bit (inode(7)).
const STICKY: u32 = 0o1000;

fn check(path: &Path, expected: &'static str, is_expected: fn(&fs::Metadata) -> bool) -> Result<(), TrustError> {
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    let named = fs::symlink_metadata(path).map_err(read)?;
    if named.is_symlink() {
        check_owner(path, &named, "a symbolic link")?;
    }
    let file = fs::metadata(path).map_err(read)?;
    if !is_expected(&file) {
        return Err(TrustError::Kind { path: path.to_owned(), expected });
    }
    check_owner(path, &file, if file.is_dir() { "a folder" } else { "a file" })?;
    check_mode(path, &file)
}

fn check_owner(path: &Path, found: &fs::Metadata, what: &'static str) -> Result<(), TrustError> {
    let user = rustix::process::geteuid().as_raw();
    match found.uid() {
        owner if owner == 0 || owner == user => Ok(()),
        owner => Err(TrustError::Owner { path: path.to_owned(), what, owner, mode: found.mode() & 0o7777, user }),
    }
}

fn check_mode(path: &Path, found: &fs::Metadata) -> Result<(), TrustError> {
    match found.mode() & 0o7777 {
        mode if mode & 0o022 != 0 => Err(TrustError::Writable { path: path.to_owned(), owner: found.uid(), mode }),
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

/// Opens a file of the state for reading: a regular one in the folder itself, which only root and the user who runs this process
/// can change, or replace in its folder.
///
/// # Errors
/// Returns the first violation, or an error if the file cannot be opened.
pub(crate) fn open_state_file(path: &Path) -> Result<File, TrustError> {
    check_state_folder(folder_of(path))?;
    open_checked(path, OpenOptions::new().read(true))
}

/// As [`open_state_file`], for reading and writing; creates the file if it is not there. Only its owner may read it, also if it
/// was there with more permissions.
///
/// # Errors
/// As [`open_state_file`].
pub(crate) fn open_private(path: &Path) -> Result<File, TrustError> {
    check_state_folder(folder_of(path))?;
    let file = match open_checked(path, OpenOptions::new().read(true).write(true)) {
        // Only then with the right to create it: where others may have files, that would fail in place of the check of its owner
        // (fs.protected_regular).
        Err(TrustError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            open_checked(path, OpenOptions::new().read(true).write(true).create_new(true).mode(0o600))?
        }
        opened => opened?,
    };
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    let found = file.metadata().map_err(read)?;
    if found.mode() & 0o077 != 0 && found.uid() == rustix::process::geteuid().as_raw() {
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(read)?;
    }
    Ok(file)
}

/// Opens a file, without waiting and without following a symbolic link in its place, and checks what was opened.
fn open_checked(path: &Path, options: &mut OpenOptions) -> Result<File, TrustError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let kind = || TrustError::Kind { path: path.to_owned(), expected: "regular file, and no symbolic link" };
    let opened = options.custom_flags(flags).open(path);
    let read = |source: io::Error| match source.raw_os_error() {
        Some(error) if error == rustix::io::Errno::LOOP.raw_os_error() => kind(),
        _ => TrustError::Read { path: path.to_owned(), source },
    };
    let file = opened.map_err(read)?;
    let found = file.metadata().map_err(read)?;
    if !found.is_file() {
        return Err(kind());
    }
    check_owner(path, &found, "a file")?;
    check_mode(path, &found)?;
    Ok(file)
}

/// Returns the folder of a file, which is the current one for a name alone.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a folder, and those above it, if it is missing. A new one is for its owner alone.
///
/// # Errors
/// Returns an error if it cannot be created.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        created => created,
    }
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
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        let error = open_private(&path).unwrap_err().to_string();
        let expected = format!("{0}: users other than its owner may write it (mode 620 of user ", path.display());
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.ends_with(&format!("chmod go-w {})", path.display())), "{error}");
        assert_eq!(mode(), 0o620);
    }

    #[test]
    fn the_state_is_not_kept_where_others_may_replace_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("above/state");
        create_private_folder(&state).unwrap();
        create_private_folder(&state).unwrap();
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        let path = state.join("agent.redb");
        let open_in = |mode| {
            fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
            (open_private(&path), open_state_file(&path))
        };
        for mode in [0o700, 0o755, 0o1777] {
            assert!(matches!(open_in(mode), (Ok(_), Ok(_))), "{mode:o}");
        }
        for mode in [0o770, 0o757] {
            let (written, read) = open_in(mode);
            for error in [written.unwrap_err(), read.unwrap_err()] {
                assert!(matches!(&error, TrustError::Writable { path, .. } if *path == state), "{error}");
            }
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        // What a link in its place names is neither read nor made.
        fs::rename(&path, state.join("other")).unwrap();
        for to in ["other", "nowhere"] {
            symlink(state.join(to), &path).unwrap();
            for error in [open_private(&path).unwrap_err(), open_state_file(&path).unwrap_err()] {
                assert!(error.to_string().ends_with("expected a regular file, and no symbolic link"), "{error}");
            }
            fs::remove_file(&path).unwrap();
        }
        assert!(!state.join("nowhere").exists());
        assert!(create_private_folder(&state.join("other")).is_err());
    }

    #[test]
    fn a_state_of_another_user_is_not_trusted() {
        // Only root can give files away.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        open_private(&path).unwrap();
        let give = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), None).unwrap();
        give(&path, 1);
        let error = open_private(&path).unwrap_err().to_string();
        let remedy = format!("found a file of user 1 (mode 600), expected one of root: chown -h 0 {}", path.display());
        assert_eq!(error, format!("{}: {remedy}", path.display()));
        // As a file that another user made first in a folder for all.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(matches!(open_private(&path), Err(TrustError::Owner { what: "a file", owner: 1, .. })));
        give(&path, 0);
        open_private(&path).unwrap();
        give(folder.path(), 1);
        assert!(matches!(open_private(&path), Err(TrustError::Owner { what: "a folder", owner: 1, .. })));
        give(folder.path(), 0);
    }
}
