//! Writes files of a report so that each appears whole or not at all.

use std::path::Path;

use crate::ReportError;

/// Writes `text` to `path` atomically. On failure an older file stays as it was.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), ReportError> {
    evenhand_model::files::write_atomically(path, text.as_bytes())
        .map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// Creates a folder and its parents if they do not exist.
pub(crate) fn create_folder(path: &Path) -> Result<(), ReportError> {
    evenhand_model::files::create_folder(path).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_failed_write_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("index.html");
        fs::create_dir_all(taken.join("not empty")).unwrap();
        let error = write_file(&taken, "text").unwrap_err().to_string();
        assert!(error.contains("index.html"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
