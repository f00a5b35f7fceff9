//! Folders that survive a power failure.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Creates a folder and its parents, each synced into the folder above it. A folder that exists is left as it is.
///
/// # Errors
/// Returns an error if a folder cannot be created, or if the path is something else.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let is_other = |p: &&Path| !p.as_os_str().is_empty() && p.exists() && !p.is_dir();
    if let Some(other) = path.ancestors().find(is_other) {
        let problem = format!("{} is a file, not a folder; name another", other.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, problem));
    }
    let missing: Vec<PathBuf> =
        path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.is_dir()).map(Path::to_owned).collect();
    fs::create_dir_all(path)?;
    for folder in missing.iter().rev() {
        sync_folder(folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Makes the creation, renaming and removal of files in a folder durable.
///
/// # Errors
/// Returns an error if the folder cannot be synced. A folder that this user may write but not read cannot be opened for
/// it, and some network file systems sync no folders; that is no error, because nothing can be done about it.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(e) if !matches!(e.kind(), PermissionDenied | Unsupported | InvalidInput) => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_created_and_a_file_in_the_way_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        create_folder(&path).unwrap();
        create_folder(&path).unwrap();
        assert!(path.is_dir());
        fs::write(path.join("file"), "").unwrap();
        for below in ["file/d", "file"] {
            let error = create_folder(&path.join(below)).unwrap_err().to_string();
            assert_eq!(error, format!("{}/file is a file, not a folder; name another", path.display()));
        }
    }
}
