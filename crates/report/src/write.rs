//! Files, each written beside its place and moved there when it is whole.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ReportError;

/// Writes `text` to `path`. If this fails, what was there before is still there.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), ReportError> {
    let beside = beside(path);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // Nothing better can be done if this fails too; the first failure is the one to report.
        let _ = fs::remove_file(&beside);
        ReportError::Write { path: path.to_owned(), source }
    })
}

/// A folder to write to, made if it is not there.
pub(crate) fn make_folder(path: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(path).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
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
