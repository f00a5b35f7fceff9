//! Files of groups that stay open, as far as the process may have files open.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// How many files may be kept open. Clones share one count.
///
/// A kept file is read in a tenth of the time that opening, reading and closing takes. When the budget is used
/// up, that is what is done instead, so a small budget costs time and nothing else.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// This many.
    pub fn of(files: usize) -> Budget {
        Budget(Arc::new(AtomicUsize::new(files)))
    }

    /// Three quarters of what this process may have open now (`RLIMIT_NOFILE`); the rest is for everything
    /// else that it does.
    pub fn of_process() -> Budget {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        Budget::of(usize::try_from(most / 4 * 3).unwrap_or(usize::MAX))
    }

    /// Lets this process have as many files open as it is allowed to allow itself. A service starts with 1024
    /// for the sake of programs that call select(2), which does not matter here. `false` if that fails.
    pub fn raise_limit() -> bool {
        let limit = getrlimit(Resource::Nofile);
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        limit.current == limit.maximum || setrlimit(Resource::Nofile, raised).is_ok()
    }

    /// How many more may be kept.
    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self) -> Option<Slot> {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok()?;
        Some(Slot(self.clone()))
    }
}

/// A place in the budget; given back when dropped.
#[derive(Debug)]
struct Slot(Budget);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Reading,
    Writing,
}

/// A file of a group, open if the budget had room.
#[derive(Debug)]
pub(crate) struct Kept {
    root: Arc<Path>,
    group: Arc<str>,
    name: &'static str,
    purpose: For,
    open: Option<(File, Slot)>,
}

impl Kept {
    /// `Ok(None)` if there is no such file.
    pub(crate) fn find(
        root: &Arc<Path>,
        group: &Arc<str>,
        name: &'static str,
        purpose: For,
        budget: &Budget,
    ) -> io::Result<Option<Kept>> {
        let mut kept = Kept { root: Arc::clone(root), group: Arc::clone(group), name, purpose, open: None };
        let file = match kept.open() {
            Ok(file) => file,
            Err(error) if vanished(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        kept.open = budget.take().map(|slot| (file, slot));
        Ok(Some(kept))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(&*self.group).join(self.name)
    }

    fn open(&self) -> io::Result<File> {
        match self.purpose {
            For::Reading => File::open(self.path()),
            For::Writing => OpenOptions::new().write(true).open(self.path()),
        }
    }

    /// What it says now. The buffer grows as far as needed, and is used again.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let length = match &self.open {
            Some((file, _)) => read(file, buffer),
            None => read(&self.open()?, buffer),
        }?;
        Ok(&buffer[..length])
    }

    /// Writes all of it in one call: the kernel takes each call as a whole value.
    pub(crate) fn write(&self, text: &[u8]) -> io::Result<()> {
        let written = match &self.open {
            Some((file, _)) => file.write_at(text, 0),
            None => self.open()?.write_at(text, 0),
        }?;
        if written == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

/// No file that is read here is longer: a line for each of some thousand disks.
const LONGEST: usize = 1 << 20;

fn read(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.is_empty() {
        buffer.resize(4096, 0);
    }
    // The kernel makes up the whole text at each read from the start, and hands out as much as there is room for.
    // So one read is enough unless the buffer is full, and a longer text is read again from its start: pieces
    // could be of different moments.
    loop {
        let length = file.read_at(buffer, 0)?;
        if length < buffer.len() {
            return Ok(length);
        }
        if length >= LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        buffer.resize(length * 2, 0);
    }
}

/// Whether this is how the kernel says that a group, or the controller in it, is no more: `ENODEV` on a file
/// that is open, `ENOENT` otherwise.
pub(crate) fn vanished(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NODEV | Errno::NOENT))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, Arc<Path>, Arc<str>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("g")).unwrap();
        fs::write(folder.path().join("g/io.stat"), text).unwrap();
        let root = Arc::from(folder.path());
        (folder, root, Arc::from("g"))
    }

    #[test]
    fn a_budget_is_taken_and_given_back() {
        let (_folder, root, group) = file("1\n");
        let budget = Budget::of(1);
        let kept = |b: &Budget| Kept::find(&root, &group, "io.stat", For::Reading, b).unwrap().unwrap();
        let mut buffer = Vec::new();
        let (first, second) = (kept(&budget), kept(&budget));
        assert_eq!((first.open.is_some(), second.open.is_some(), budget.left()), (true, false, 0));
        for one in [&first, &second] {
            assert_eq!(one.read(&mut buffer).unwrap(), b"1\n");
        }
        drop(second);
        assert_eq!(budget.left(), 0);
        drop(first);
        assert_eq!(budget.left(), 1);
        assert!(Kept::find(&root, &group, "none", For::Reading, &budget).unwrap().is_none());
        assert_eq!(budget.left(), 1);
        assert!(Budget::of_process().left() > 10);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let text: String = (0..5_000).map(|i| format!("8:{i} rbytes=1\n")).collect();
        let (_folder, root, group) = file(&text);
        for budget in [0, 1] {
            let kept = Kept::find(&root, &group, "io.stat", For::Reading, &Budget::of(budget)).unwrap().unwrap();
            let mut buffer = Vec::new();
            assert_eq!(kept.read(&mut buffer).unwrap(), text.as_bytes());
            assert_eq!(kept.read(&mut buffer).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn without_a_kept_descriptor_a_vanished_file_is_seen() {
        let (folder, root, group) = file("1\n");
        let kept = Kept::find(&root, &group, "io.stat", For::Reading, &Budget::of(0)).unwrap().unwrap();
        fs::remove_file(folder.path().join("g/io.stat")).unwrap();
        assert!(vanished(&kept.read(&mut Vec::new()).unwrap_err()));
    }
}
