//! Refuses outputs that would replace their inputs.

use std::path::{Path, PathBuf};

use evenhand_model::files::is_same_file;

use super::{Source, files_in};
use crate::import::{Format, ImportError};

/// The path of standard input, which may be a file.
const STDIN: &str = "/dev/stdin";

impl Source {
    /// Checks that the file `output` is not what this source reads, under whatever name: of a folder, none of the files that
    /// are read from it.
    ///
    /// # Errors
    /// Returns [`ImportError::OutputIsInput`] if it is.
    pub fn check_output(&self, output: &Path, format: Format) -> Result<(), ImportError> {
        let path = match self {
            Source::Path(path) => path.as_path(),
            Source::Stdin => Path::new(STDIN),
            Source::Bytes { .. } => return Ok(()),
        };
        let in_folder: Vec<PathBuf> = match path.is_dir() {
            // A folder that cannot be read is an error when it is read.
            true => files_in(path, format.extensions()).unwrap_or_default(),
            false => Vec::new(),
        };
        let mut inputs = in_folder.iter().map(PathBuf::as_path).chain([path]);
        match inputs.find(|input| is_same_file(input, output)) {
            Some(input) => Err(ImportError::OutputIsInput { output: output.to_owned(), input: input.to_owned() }),
            None => Ok(()),
        }
    }
}
