//! Files that are read again when they change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use evenhand_documents::DocumentError;

/// The metadata by which a change of a file or directory is detected: another inode, size or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Whether the last change was long ago, so that another one would have another time.
    settled: bool,
}

/// File systems count time in steps, so that two changes may have the same time.
const TIME_STEP: Duration = Duration::from_secs(2);

impl FileStamp {
    /// Returns the present metadata; `None` if the file does not exist or is not accessible.
    pub(crate) fn of(path: &Path) -> Option<FileStamp> {
        let found = fs::metadata(path).ok()?;
        let settled = found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        Some(FileStamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            settled: settled.is_some_and(|age| age > TIME_STEP),
        })
    }

    /// Returns whether a file that was read at this stamp is certainly unchanged at `now`.
    pub(crate) fn is_unchanged(self, now: FileStamp) -> bool {
        self.settled && self == now
    }
}

/// The content of a file, which is read again when it changes. The last valid content stays in use.
pub(crate) struct WatchedFile<T> {
    path: PathBuf,
    read: fn(&Path) -> Result<T, DocumentError>,
    stamp: Option<FileStamp>,
    value: T,
    problem: Option<String>,
}

impl<T> WatchedFile<T> {
    /// Reads the file for the first time.
    pub(crate) fn open(
        path: PathBuf,
        read: fn(&Path) -> Result<T, DocumentError>,
    ) -> Result<WatchedFile<T>, DocumentError> {
        // The stamp is taken first: a change in between is read twice rather than never.
        let stamp = FileStamp::of(&path);
        let value = read(&path)?;
        Ok(WatchedFile { path, read, stamp, value, problem: None })
    }

    /// Reads the file again if it changed. Returns whether the content may be another.
    pub(crate) fn refresh(&mut self) -> bool {
        let now = FileStamp::of(&self.path);
        if let (Some(before), Some(now)) = (self.stamp, now)
            && before.is_unchanged(now)
        {
            return false;
        }
        self.stamp = now;
        match (self.read)(&self.path) {
            Ok(value) => (self.value, self.problem) = (value, None),
            Err(error) => {
                let first = error.to_string().lines().next().unwrap_or_default().to_owned();
                self.problem = Some(format!("{first}; the earlier content stays in use"));
                return false;
            }
        }
        true
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// Returns why the file could not be read the last time.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_documents::Source;

    fn text(path: &Path) -> Result<String, DocumentError> {
        let source = Source::read(path)?;
        let wrong = source.text().find("wrong").map(|at| source.error(at..at + 5, "found wrong, expected right"));
        wrong.map_or_else(|| Ok(source.text().to_owned()), Err)
    }

    #[test]
    fn the_last_valid_content_stays_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        assert!(WatchedFile::open(path.clone(), text).is_err());
        fs::write(&path, "a").unwrap();
        let mut file = WatchedFile::open(path.clone(), text).unwrap();
        // Of the same size, within one step of the clock.
        fs::write(&path, "b").unwrap();
        assert!(file.refresh());
        assert_eq!((file.value().as_str(), file.problem()), ("b", None));
        fs::write(&path, "\n wrong").unwrap();
        assert!(!file.refresh());
        assert_eq!(file.value(), "b");
        assert!(file.problem().unwrap().contains("f:2:2: found wrong, expected right; the earlier content"));
        fs::remove_file(&path).unwrap();
        assert!(!file.refresh());
        assert_eq!(file.value(), "b");
        fs::write(&path, "c").unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(file.refresh());
        assert!(!file.refresh());
        assert_eq!((file.value().as_str(), file.problem()), ("c", None));
    }
}
