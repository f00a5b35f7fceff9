//! Writing of folders and files.

use std::path::Path;
#[cfg(feature = "slurm")]
use std::path::PathBuf;

use evenhand_model::files::FolderLock;

use crate::failure::Failure;

/// Creates a folder and its parents.
#[cfg(feature = "slurm")]
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    evenhand_model::files::create_folder(path)
        .map_err(|e| Failure::Environment(format!("cannot create the folder {}: {e}", path.display())))
}

/// Creates a folder for results and its parents, and keeps other processes out of it until the lock is dropped.
pub(crate) fn lock_folder(path: &Path) -> Result<FolderLock, Failure> {
    FolderLock::take(path).map_err(|e| Failure::Environment(format!("cannot use the folder {}: {e}", path.display())))
}

/// Writes a file atomically: after a failure the old content remains.
#[cfg(feature = "analysis")]
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    evenhand_model::files::write_atomically(path, text.as_bytes())
        .map_err(|e| Failure::Environment(format!("cannot write {}: {e}", path.display())))
}

/// Writes several files, each atomically: if one cannot be written, as on a full disk, no old file is replaced.
#[cfg(feature = "slurm")]
pub(crate) fn write_files(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    let files: Vec<(&Path, &[u8])> = files.iter().map(|(path, text)| (path.as_path(), text.as_bytes())).collect();
    evenhand_model::files::write_all_atomically(&files)
        .map_err(|(path, e)| Failure::Environment(format!("cannot write {}: {e}", path.display())))
}

/// Returns a file name for a name from an input: characters other than ASCII letters and digits become `_`.
#[cfg(feature = "analysis")]
pub(crate) fn file_name(name: &str) -> String {
    name.chars().take(60).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
