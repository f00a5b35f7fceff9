//! The files of a stored study's report. They are listed once, at the start: no path of a request reaches the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The most files of a study that are served.
const FILES: usize = 10_000;

/// The largest file that is served, in bytes.
pub(crate) const LARGEST: u64 = 64 << 20;

/// A report's folder.
#[derive(Clone, Debug)]
pub struct StudyFiles {
    /// By the path below the folder, with `/`.
    files: BTreeMap<String, PathBuf>,
}

/// Why a folder is not served.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The folder cannot be read.
    #[error("--study: cannot read {}: {source}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It has no page.
    #[error("--study: {} has no index.html; expected the folder of a report, as evenhand study --out writes it", path.display())]
    NoPage {
        /// The folder.
        path: PathBuf,
    },
}

impl StudyFiles {
    /// Lists the files of a report: pages, figures and tables, not hidden files or links.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read, or has no `index.html`.
    pub fn list(folder: &Path) -> Result<StudyFiles, StudyError> {
        let mut files = BTreeMap::new();
        let mut open = vec![(String::new(), folder.to_path_buf())];
        while let Some((below, path)) = open.pop() {
            let failed = |source| StudyError::Read { path: path.clone(), source };
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                if name.starts_with('.') || files.len() >= FILES {
                    continue;
                }
                let named = format!("{below}{name}");
                if kind.is_dir() {
                    open.push((format!("{named}/"), entry.path()));
                } else if kind.is_file() && content_type(&name).is_some() {
                    files.insert(named, entry.path());
                }
            }
        }
        if !files.contains_key("index.html") {
            return Err(StudyError::NoPage { path: folder.to_path_buf() });
        }
        Ok(StudyFiles { files })
    }

    /// Returns the path of a file and its type.
    pub(crate) fn find(&self, name: &str) -> Option<(&Path, &'static str)> {
        let name = if name.is_empty() { "index.html" } else { name };
        let path = self.files.get(name)?;
        Some((path, content_type(name)?))
    }
}

fn content_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(StudyFiles::list(folder.path()), Err(StudyError::NoPage { .. })));
        for name in ["index.html", "users.csv", ".secret.html", "notes.bin", "figures/waits.svg"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.html")).unwrap();
        let files = StudyFiles::list(folder.path()).unwrap();
        assert!(files.find("").is_some_and(|(path, _)| path.ends_with("index.html")));
        assert_eq!(files.find("figures/waits.svg").unwrap().1, "image/svg+xml");
        for name in [".secret.html", "notes.bin", "link.html", "../index.html", "/etc/passwd", "figures"] {
            assert_eq!(files.find(name), None, "{name}");
        }
    }
}
