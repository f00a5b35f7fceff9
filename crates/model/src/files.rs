//! Atomic writes of files.
//!
//! All results are written with these functions, so that a full disk, a crash or Ctrl-C leaves the old file or the new
//! one, never a part of it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Replaces `path` atomically: `write` fills a temporary file in the same folder, which is then renamed. On failure the
/// temporary file is removed and an older `path` is untouched.
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
/// Returns an error if the temporary file cannot be created or renamed, or if `write` fails.
pub fn replace_file<T, E: From<io::Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".evenhand-").suffix(".partial");
    // Temporary files are private by default; a result should be as readable as any other new file. The umask of the
    // process still applies.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    let done = write(file.as_file_mut())?;
    file.as_file_mut().flush()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(done)
}

/// Writes `bytes` to `path` atomically, as [`replace_file`] does.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_file(path, |file| file.write_all(bytes))
}
