//! Files that are read again when they change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use evenhand_documents::DocumentError;

/// By which a change of a file or folder is seen: another file under its name, another size, another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    settled: bool,
}

/// File systems count time in steps, so that two changes may have the same time.
const STEP: Duration = Duration::from_secs(2);

impl Stamp {
    /// As it is now; `None` if it is not there or may not be looked at.
    pub(crate) fn of(path: &Path) -> Option<Stamp> {
        let found = fs::metadata(path).ok()?;
        let settled = found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        Some(Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            settled: settled.is_some_and(|age| age > STEP),
        })
    }

    /// Whether what was read under this stamp is surely what stands there under `now`.
    pub(crate) fn still(self, now: Stamp) -> bool {
        self.settled && self == now
    }
}

/// What a file says, read again when it changes. The last that could be read stays in use.
pub(crate) struct Watched<T> {
    path: PathBuf,
    read: fn(&Path) -> Result<T, DocumentError>,
    stamp: Option<Stamp>,
    value: T,
    problem: Option<String>,
}

impl<T> Watched<T> {
    /// Reads it for the first time.
    pub(crate) fn open(
        path: PathBuf,
        read: fn(&Path) -> Result<T, DocumentError>,
    ) -> Result<Watched<T>, DocumentError> {
        // The stamp comes first: a change in between is read twice rather than never.
        let stamp = Stamp::of(&path);
        let value = read(&path)?;
        Ok(Watched { path, read, stamp, value, problem: None })
    }

    /// Reads it again if it changed; whether it may say something else now.
    pub(crate) fn refresh(&mut self) -> bool {
        let now = Stamp::of(&self.path);
        if let (Some(before), Some(now)) = (self.stamp, now)
            && before.still(now)
        {
            return false;
        }
        self.stamp = now;
        match (self.read)(&self.path) {
            Ok(value) => (self.value, self.problem) = (value, None),
            Err(error) => {
                let first = error.to_string().lines().next().unwrap_or_default().to_owned();
                self.problem = Some(format!("{first}; what it said before stays in use"));
                return false;
            }
        }
        true
    }

    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// Why it could not be read the last time.
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
    fn the_last_good_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        assert!(Watched::open(path.clone(), text).is_err());
        fs::write(&path, "a").unwrap();
        let mut file = Watched::open(path.clone(), text).unwrap();
        // Of the same size, within one step of the clock.
        fs::write(&path, "b").unwrap();
        assert!(file.refresh());
        assert_eq!((file.value().as_str(), file.problem()), ("b", None));
        fs::write(&path, "\n wrong").unwrap();
        assert!(!file.refresh());
        assert_eq!(file.value(), "b");
        assert!(file.problem().unwrap().contains("f:2:2: found wrong, expected right; what it said"));
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
