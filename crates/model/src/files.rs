//! Files that appear whole or not at all.
//!
//! Every room that writes results writes them through here, so that a full disk, a crash or a
//! Ctrl-C leaves the old file or the new one, never a part. This room knows nothing of what it
//! writes.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `path` through a temporary file beside it that is renamed at the end; on failure
/// nothing is left behind and an older `path` is untouched.
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
/// If the file system refuses, or `write` fails.
pub fn replace_file<T, E: From<io::Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".evenhand-").suffix(".partial");
    // Temporary files are private by default; what is renamed into place should be as readable
    // as any other new file (the process's umask still applies).
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    let done = write(file.as_file_mut())?;
    file.as_file_mut().flush()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(done)
}

/// Writes `bytes` to `path`, whole or not at all.
///
/// # Errors
/// If the file system refuses.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_file(path, |file| file.write_all(bytes))
}
