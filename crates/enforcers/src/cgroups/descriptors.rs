//! Files of groups that stay open, as far as the process may have files open.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// How many files may be kept open. Clones share one count.
///
/// A kept file is read in a tenth of the time that opening, reading and closing takes. When the budget is used
/// up, that is what is done instead, so a small budget costs time and nothing else. Reading comes first: what is
/// read at each update is better kept than what is written now and then.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Count>);

#[derive(Debug)]
struct Count {
    left: AtomicUsize,
    /// Whether somebody who reads found nothing left.
    pressed: AtomicBool,
}

impl Budget {
    /// This many.
    pub fn of(files: usize) -> Budget {
        Budget(Arc::new(Count { left: AtomicUsize::new(files), pressed: AtomicBool::new(false) }))
    }

    /// Seven eighths of what this process may have open now (`RLIMIT_NOFILE`); the rest is for everything
    /// else that it does.
    pub fn of_process() -> Budget {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        Budget::of(usize::try_from(most / 8 * 7).unwrap_or(usize::MAX))
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
        self.0.left.load(Ordering::Relaxed)
    }

    /// Whether those who write are to give back what they keep.
    pub(crate) fn pressed(&self) -> bool {
        self.0.pressed.load(Ordering::Relaxed)
    }

    fn take(&self, purpose: For) -> Option<Slot> {
        if purpose == For::Writing && self.pressed() {
            return None;
        }
        let taken = self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() && purpose == For::Reading {
            self.0.pressed.store(true, Ordering::Relaxed);
        }
        taken.is_ok().then(|| Slot(self.clone()))
    }
}

/// A place in the budget; given back when dropped.
#[derive(Debug)]
struct Slot(Budget);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.left.fetch_add(1, Ordering::Relaxed);
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
        kept.open = budget.take(purpose).map(|slot| (file, slot));
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
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Vec<u8>, budget: &Budget) -> io::Result<&'b [u8]> {
        let length = match &self.open {
            Some((file, _)) => read(file, buffer),
            None => {
                let file = self.open()?;
                let length = read(&file, buffer);
                // Others may have given back meanwhile.
                self.open = budget.take(self.purpose).map(|slot| (file, slot));
                length
            }
        }?;
        Ok(&buffer[..length])
    }

    /// Gives back what is kept.
    pub(crate) fn release(&mut self) {
        self.open = None;
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
        let kept = |purpose| Kept::find(&root, &group, "io.stat", purpose, &budget).unwrap().unwrap();
        let mut buffer = Vec::new();
        let mut writer = kept(For::Writing);
        assert_eq!((writer.open.is_some(), budget.left(), budget.pressed()), (true, 0, false));
        // Who reads comes first, once the other hears of it.
        let mut reader = kept(For::Reading);
        assert_eq!((reader.open.is_some(), budget.pressed()), (false, true));
        assert_eq!(reader.read(&mut buffer, &budget).unwrap(), b"1\n");
        writer.release();
        assert_eq!(budget.left(), 1);
        assert_eq!(reader.read(&mut buffer, &budget).unwrap(), b"1\n");
        assert_eq!((reader.open.is_some(), budget.left()), (true, 0));
        writer.write(b"2\n").unwrap();
        assert_eq!(reader.read(&mut buffer, &budget).unwrap(), b"2\n");
        drop(reader);
        assert_eq!(budget.left(), 1);
        assert!(Kept::find(&root, &group, "none", For::Reading, &budget).unwrap().is_none());
        assert_eq!(budget.left(), 1);
        assert!(Budget::of_process().left() > 10);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let text: String = (0..5_000).map(|i| format!("8:{i} rbytes=1\n")).collect();
        let (_folder, root, group) = file(&text);
        for budget in [0, 1].map(Budget::of) {
            let mut kept = Kept::find(&root, &group, "io.stat", For::Reading, &budget).unwrap().unwrap();
            let mut buffer = Vec::new();
            assert_eq!(kept.read(&mut buffer, &budget).unwrap(), text.as_bytes());
            assert_eq!(kept.read(&mut buffer, &budget).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn without_a_kept_descriptor_a_vanished_file_is_seen() {
        let (folder, root, group) = file("1\n");
        let budget = Budget::of(0);
        let mut kept = Kept::find(&root, &group, "io.stat", For::Reading, &budget).unwrap().unwrap();
        fs::remove_file(folder.path().join("g/io.stat")).unwrap();
        assert!(vanished(&kept.read(&mut Vec::new(), &budget).unwrap_err()));
    }
}
