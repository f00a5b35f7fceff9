//! Folders and files that verbs leave.

use std::path::Path;

use crate::failure::Failure;

/// Makes a folder and those it is in.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path)
        .map_err(|e| Failure::Environment(format!("cannot make the folder {}: {e}", path.display())))
}

/// Writes a file whole or not at all.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    evenhand_model::files::write_atomically(path, text.as_bytes())
        .map_err(|e| Failure::Environment(format!("cannot write {}: {e}", path.display())))
}

/// Names come from outside; a file name takes letters, digits and a few signs.
pub(crate) fn file_name(name: &str) -> String {
    name.chars().take(60).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
