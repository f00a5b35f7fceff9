//! Files, each written beside its place and moved there when it is whole.

use std::fs;
use std::path::Path;

use crate::ReportError;

/// Writes `text` to `path`. If this fails, what was there before is still there.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), ReportError> {
    evenhand_model::files::write_atomically(path, text.as_bytes())
        .map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// A folder to write to, made if it is not there.
pub(crate) fn make_folder(path: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(path).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("index.html");
        fs::create_dir_all(taken.join("not empty")).unwrap();
        let error = write_whole(&taken, "text").unwrap_err().to_string();
        assert!(error.contains("index.html"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
