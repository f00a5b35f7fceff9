//! Replacement of one file.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use tempfile::NamedTempFile;

use super::destination::{Destination, RegularFile};
use super::folder::sync_folder;
use super::partial_file::{create_partial_file, remove_abandoned};

/// Replaces `path` atomically and durably: `write` fills a temporary file in the same folder, which is then synced and
/// renamed. On failure the temporary file is removed and an older `path` is untouched. If `path` is a pipe or a device,
/// `write` writes to it directly.
///
/// ```
/// use std::io::{self, Write};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("result");
/// evenhand_model::files::replace_file(&path, |file| file.write_all(b"old"))?;
/// let failed: io::Result<()> = evenhand_model::files::replace_file(&path, |file| {
///     file.write_all(b"ne")?;
///     Err(io::Error::other("disk full"))
/// });
/// assert!(failed.is_err());
/// assert_eq!(std::fs::read(&path)?, b"old");
/// assert_eq!(std::fs::read_dir(dir.path())?.count(), 1);
/// # io::Result::Ok(())
/// ```
///
/// # Errors
/// Returns an error if `path` is something that cannot be replaced (a folder, a socket, a link without target), if the
/// temporary file cannot be created, synced or renamed, or if `write` fails.
pub fn replace_file<T, E: From<io::Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
    let (done, filled) = fill(path, write)?;
    if let Some(filled) = filled {
        filled.rename()?;
    }
    Ok(done)
}

/// A temporary file with its whole content on disk, and the file that it will be.
struct Filled {
    partial: NamedTempFile,
    file: RegularFile,
}

impl Filled {
    fn rename(self) -> io::Result<()> {
        let Filled { partial, file } = self;
        file.check_unchanged()?;
        // The lock is released when `_locked` is dropped, after the name is no longer that of a partial file.
        let (_locked, partial) = partial.into_parts();
        fs::rename(&partial, &file.path)?;
        partial.keep().map_err(|e| e.error)?;
        sync_folder(&file.folder)
    }
}

/// Writes a temporary file beside `path` and syncs it; a pipe or a device is written to directly.
fn fill<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<(T, Option<Filled>), E> {
    let file = match Destination::of(path)? {
        Destination::File(file) => file,
        Destination::Stream(mut stream) => {
            let done = write(&mut stream)?;
            stream.flush()?;
            return Ok((done, None));
        }
    };
    remove_abandoned(&file.folder);
    let mut partial = create_partial_file(&file.folder, file.old.as_ref().map(|old| old.mode() & 0o777))?;
    let done = write(partial.as_file_mut())?;
    partial.as_file_mut().flush()?;
    if let Some(old) = &file.old {
        keep_owner_and_permissions(partial.as_file(), old)?;
    }
    partial.as_file().sync_all()?;
    Ok((done, Some(Filled { partial, file })))
}

/// Writes several files durably, each atomically: all are written beside their destinations before the first of them is
/// renamed, so that a full disk leaves every old file as it is.
///
/// # Errors
/// Returns the path of the file that cannot be written, and the cause.
pub fn write_all_atomically<'a>(files: &[(&'a Path, &[u8])]) -> Result<(), (&'a Path, io::Error)> {
    let mut all = Vec::new();
    for (path, bytes) in files {
        let ((), filled) = fill(path, |file| file.write_all(bytes)).map_err(|error: io::Error| (*path, error))?;
        all.extend(filled.map(|filled| (*path, filled)));
    }
    all.into_iter().try_for_each(|(path, filled)| filled.rename().map_err(|error| (path, error)))
}

/// Writes `bytes` to `path` atomically and durably, as [`replace_file`] does.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_file(path, |file| file.write_all(bytes))
}

/// Gives the new file what writing into the old one would have kept.
fn keep_owner_and_permissions(new: &File, old: &Metadata) -> io::Result<()> {
    let created = new.metadata()?;
    if (created.uid(), created.gid()) != (old.uid(), old.gid()) {
        // Only root may give files away; for others the new file is their own, as any file that they create.
        match fchown(new, Some(old.uid()), Some(old.gid())) {
            Err(e) if e.kind() != io::ErrorKind::PermissionDenied => return Err(e),
            _ => {}
        }
    }
    new.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        (folder, path)
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        let (folder, path) = folder();
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_link_is_followed_and_stays() {
        let (folder, path) = folder();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("target"), "old").unwrap();
        symlink("elsewhere/target", &path).unwrap();
        write_atomically(&path, b"new").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(fs::read(elsewhere.join("target")).unwrap(), b"new");
        assert_eq!((entries(folder.path()), entries(&elsewhere)), (2, 1));
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        let (folder, path) = folder();
        let refused = |words: &str| {
            let before = fs::symlink_metadata(&path).unwrap();
            let error = write_atomically(&path, b"new").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            let after = fs::symlink_metadata(&path).unwrap();
            assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
            assert_eq!(entries(folder.path()), 1, "no temporary file is left");
        };
        symlink("absent", &path).unwrap();
        refused("target does not exist");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused("is a folder");
        fs::remove_dir(&path).unwrap();
        let socket = UnixListener::bind(&path).unwrap();
        refused("is a socket");
        drop(socket);
    }

    #[test]
    fn of_several_files_none_is_replaced_if_one_cannot_be_written() {
        let (folder, path) = folder();
        fs::write(&path, "old").unwrap();
        let absent = folder.path().join("absent/file");
        let (failed, error) = write_all_atomically(&[(&path, b"new"), (&absent, b"new")]).unwrap_err();
        assert_eq!((failed, error.kind()), (absent.as_path(), io::ErrorKind::NotFound));
        assert_eq!((fs::read(&path).unwrap(), entries(folder.path())), (b"old".to_vec(), 1));
        let other = folder.path().join("other");
        write_all_atomically(&[(&path, b"new"), (&other, b"2")]).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&other).unwrap()), (b"new".to_vec(), b"2".to_vec()));
    }

    #[test]
    fn a_missing_folder_is_named_and_not_the_temporary_file() {
        let (folder, _) = folder();
        let error = write_atomically(&folder.path().join("a/b"), b"new").unwrap_err();
        let expected = format!("the folder {}/a does not exist; create it, or name another", folder.path().display());
        assert_eq!((error.to_string(), error.kind()), (expected, io::ErrorKind::NotFound));
    }

    #[test]
    fn a_pipe_is_written_to_as_a_stream() {
        let (folder, path) = folder();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let reader = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut text = String::new();
                File::open(path).unwrap().read_to_string(&mut text).unwrap();
                text
            })
        };
        write_atomically(&path, b"through the pipe").unwrap();
        assert_eq!(reader.join().unwrap(), "through the pipe");
        assert_eq!(entries(folder.path()), 1, "the pipe is still there, and nothing else");
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        for path in ["/dev/null", "/dev/full"] {
            let Ok(before) = fs::metadata(path) else { continue };
            let written = write_atomically(Path::new(path), b"text");
            assert_eq!(written.is_ok(), path == "/dev/null", "{written:?}");
            let after = fs::metadata(path).unwrap();
            assert_eq!((before.ino(), before.rdev()), (after.ino(), after.rdev()));
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_being_written_is_not() {
        let (folder, path) = folder();
        let abandoned = folder.path().join(".evenhand-Abc123.partial");
        fs::write(&abandoned, "half").unwrap();
        let written = replace_file(&path, |file| {
            // Another writer's file, in the same folder, at the same time.
            super::super::partial_file::remove_all_abandoned(folder.path());
            file.write_all(b"new")
        });
        written.unwrap();
        assert!(!abandoned.exists());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(entries(folder.path()), 1);
    }
}
