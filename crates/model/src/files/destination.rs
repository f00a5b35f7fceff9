//! What stands at the path to write to.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where a result goes.
pub(super) enum Destination {
    /// To a regular file, which need not exist yet.
    File(RegularFile),
    /// Into a pipe or a character device, which is open for writing.
    Stream(File),
}

/// A regular file to create or replace.
pub(super) struct RegularFile {
    /// Its path without links in the last place.
    pub(super) path: PathBuf,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// The file that is replaced.
    pub(super) old: Option<Box<Metadata>>,
}

impl Destination {
    /// Finds out what `path` is. Opens pipes and devices: a pipe waits for its reader.
    pub(super) fn of(path: &Path) -> io::Result<Destination> {
        let old = match fs::metadata(path) {
            Ok(old) => old,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(refused(
                        "is a symbolic link whose target does not exist; remove the link or create its target",
                    ));
                }
                return Ok(Destination::File(RegularFile::new(path.to_owned(), None)));
            }
            Err(e) => return Err(e),
        };
        let kind = old.file_type();
        if is_stream(kind) {
            return Ok(Destination::Stream(open_stream(path, &old)?));
        }
        if !kind.is_file() {
            return Err(not_a_file(kind));
        }
        if !fs::symlink_metadata(path)?.is_symlink() {
            return Ok(Destination::File(RegularFile::new(path.to_owned(), Some(old.into()))));
        }
        let target = fs::canonicalize(path)?;
        let found = fs::symlink_metadata(&target)?;
        if (found.dev(), found.ino()) != (old.dev(), old.ino()) {
            return Err(refused("is a symbolic link to a file that has no path; name the file itself"));
        }
        Ok(Destination::File(RegularFile::new(target, Some(old.into()))))
    }
}

impl RegularFile {
    fn new(path: PathBuf, old: Option<Box<Metadata>>) -> RegularFile {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        RegularFile { path, folder, old }
    }

    /// Checks, just before the file is renamed to its path, that nothing but a regular file would be lost by it.
    pub(super) fn check_unchanged(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(now) if !now.is_file() => Err(not_a_file(now.file_type())),
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

fn is_stream(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device()
}

/// Opens a pipe or device, and checks that what was opened is what was found.
fn open_stream(path: &Path, found: &Metadata) -> io::Result<File> {
    let stream = OpenOptions::new().write(true).open(path)?;
    let opened = stream.metadata()?;
    if !is_stream(opened.file_type()) || (opened.dev(), opened.ino()) != (found.dev(), found.ino()) {
        return Err(refused("was replaced by another file while it was opened; run the command again"));
    }
    Ok(stream)
}

fn not_a_file(kind: FileType) -> io::Error {
    let what = if kind.is_dir() {
        "is a folder"
    } else if kind.is_socket() {
        "is a socket"
    } else if kind.is_block_device() {
        "is a block device"
    } else if kind.is_symlink() {
        "became a symbolic link while the result was written"
    } else {
        "is no regular file"
    };
    refused(&format!("{what}; expected a file, a pipe or a character device"))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
