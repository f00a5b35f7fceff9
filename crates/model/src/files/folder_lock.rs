//! Exclusive use of a result folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;

use super::folder::create_folder;
use crate::calendar::date_and_time;

/// The name of the lock file.
const NAME: &str = ".evenhand-lock";
/// The longest description of a holder that is read.
const LONGEST: u64 = 4096;

/// A folder that no other process may use, until this is dropped or the process ends in any way.
///
/// The lock is the kernel's (`flock`) on a file in the folder, so that a killed process leaves no lock behind. On a file
/// system without locks, nothing is locked.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    _file: File,
}

impl FolderLock {
    /// Creates the folder if it is missing, and locks it.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or written, or if another process has it; the error then names
    /// the process, its machine and its command.
    pub fn take(folder: &Path) -> io::Result<FolderLock> {
        create_folder(folder)?;
        let path = folder.join(NAME);
        loop {
            let mut file = open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(held(&mut file)),
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(e)) => return Err(e),
            }
            // The last holder removes the file before it unlocks it: a file that is no longer there locks nothing.
            let locked = file.metadata()?;
            if fs::symlink_metadata(&path).is_ok_and(|now| (now.dev(), now.ino()) == (locked.dev(), locked.ino())) {
                file.set_len(0)?;
                // Only for messages; a full disk will be noticed by what matters.
                let _ = file.write_all(this_process().as_bytes());
                return Ok(FolderLock { path, _file: file });
            }
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{NAME} in this folder is no regular file; remove it")))
}

/// Describes this process for others that find the folder locked.
fn this_process() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let since = date_and_time(since).map_or(String::new(), |since| format!(" since {since} UTC"));
    let command: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("process {} on {host}{since}: evenhand {}\n", std::process::id(), command.join(" "))
}

fn held(file: &mut File) -> io::Error {
    let mut holder = String::new();
    let read = file.take(LONGEST).read_to_string(&mut holder);
    let holder = holder.lines().next().filter(|line| read.is_ok() && !line.is_empty()).unwrap_or("another process");
    io::Error::new(
        io::ErrorKind::ResourceBusy,
        format!("this folder is in use by {holder}; wait until it has ended, or name another folder"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_at_a_time_and_the_message_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("a/results");
        let lock = FolderLock::take(&results).unwrap();
        let error = FolderLock::take(&results).unwrap_err().to_string();
        assert!(error.contains(&format!("in use by process {} on ", std::process::id())), "{error}");
        drop(lock);
        assert_eq!(fs::read_dir(&results).unwrap().count(), 0, "no lock file is left");
        drop(FolderLock::take(&results).unwrap());
    }

    #[test]
    fn a_lock_file_that_a_killed_process_left_does_not_lock() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "process 1 on another: evenhand study\n").unwrap();
        drop(FolderLock::take(folder.path()).unwrap());
    }

    #[test]
    fn something_else_in_the_place_of_the_lock_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(NAME)).unwrap();
        assert!(FolderLock::take(folder.path()).is_err());
    }

    #[test]
    fn many_threads_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let held = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut taken = 0;
                    while taken < 20 {
                        let Ok(_lock) = FolderLock::take(folder.path()) else { continue };
                        assert_eq!(held.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        taken += 1;
                        held.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
