//! A file appears whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `path` through a temporary file beside it that is renamed at the end; on failure
/// nothing is left behind and an older `path` is untouched.
pub(crate) fn replace_file<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
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
