//! The temporary files in which results are written, and those that killed processes left.
//!
//! A writer holds a lock on its file (`flock`), which the kernel releases when the process ends in any way. A partial
//! file that can be locked is therefore abandoned. Between its creation and its lock, a new file can be taken for
//! abandoned and removed; the writer notices after locking and creates another.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

const PREFIX: &str = ".evenhand-";
const SUFFIX: &str = ".partial";
/// Temporary files are private by default; a result should be as readable as any other new file. The umask of the
/// process still applies.
const MODE: u32 = 0o666;
/// How often a writer's file may be taken for abandoned before that is an error.
const ATTEMPTS: usize = 100;

/// Creates a locked, empty file in `folder`, which is removed when dropped.
pub(super) fn create_partial_file(folder: &Path, mode: Option<u32>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).permissions(Permissions::from_mode(mode.unwrap_or(MODE)));
    for _ in 0..ATTEMPTS {
        let partial = builder.tempfile_in(folder).map_err(|error| not_created(folder, &error))?;
        match partial.as_file().lock() {
            // A file system without locks: nobody can take the file for abandoned.
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Ok(partial),
            other => other?,
        }
        let opened = partial.as_file().metadata()?;
        if opened.is_file() && opened.nlink() == 1 {
            return Ok(partial);
        }
    }
    Err(io::Error::other("another process removes its temporary files; run the command again"))
}

/// Describes why no file can be created in `folder`, without the random name of the file.
fn not_created(folder: &Path, error: &io::Error) -> io::Error {
    let (kind, folder) = (error.kind(), folder.display());
    let problem = match kind {
        io::ErrorKind::NotFound => format!("the folder {folder} does not exist; create it, or name another"),
        io::ErrorKind::NotADirectory => format!("{folder} is not a folder; name another"),
        io::ErrorKind::PermissionDenied => format!("permission denied: this user may not create files in {folder}"),
        _ => format!("cannot create a file in the folder {folder}: {kind}"),
    };
    io::Error::new(kind, problem)
}

/// Removes the abandoned partial files in `folder`, once in each process: a folder of a sweep has many files.
pub(super) fn remove_abandoned(folder: &Path) {
    static DONE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let Ok(folder) = fs::canonicalize(folder) else { return };
    if DONE.lock().unwrap_or_else(|e| e.into_inner()).insert(folder.clone()) {
        remove_all_abandoned(&folder);
    }
}

/// Removes the abandoned partial files in `folder`. What cannot be read or removed stays: it does no harm to results.
pub(super) fn remove_all_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_partial = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_partial && let Ok(Some(_lock)) = lock_abandoned(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Locks a partial file, if it is a regular file that no process writes.
fn lock_abandoned(path: &Path) -> io::Result<Option<File>> {
    // Not through a link, and without waiting for the other end of a pipe of such a name.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}
