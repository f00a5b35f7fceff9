//! Cgroup files that stay open, within the process's limit on open files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// The number of files that may be kept open. Clones share one count.
///
/// Reading an open file takes a tenth of the time of opening, reading and closing it. When the budget is used up,
/// files are opened for each access instead, so a small budget costs only time. Readers have priority: meters read at
/// each update, enforcers write only changes.
#[derive(Clone, Debug)]
pub struct DescriptorBudget(Arc<Count>);

#[derive(Debug)]
struct Count {
    left: AtomicUsize,
    /// Whether a reader found the budget used up.
    pressed: AtomicBool,
}

impl DescriptorBudget {
    /// Creates a budget of this many files.
    pub fn of(files: usize) -> DescriptorBudget {
        DescriptorBudget(Arc::new(Count { left: AtomicUsize::new(files), pressed: AtomicBool::new(false) }))
    }

    /// Creates a budget of seven eighths of the current limit of this process (`RLIMIT_NOFILE`); the rest is left for
    /// its other files and sockets.
    pub fn of_process() -> DescriptorBudget {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        DescriptorBudget::of(usize::try_from(limit / 8 * 7).unwrap_or(usize::MAX))
    }

    /// Raises this process's soft limit on open files to its hard limit. systemd starts services with 1024, for
    /// programs that call select(2), which this one does not. Returns `false` if the limit cannot be raised.
    pub fn raise_limit() -> bool {
        let limit = getrlimit(Resource::Nofile);
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        limit.current == limit.maximum || setrlimit(Resource::Nofile, raised).is_ok()
    }

    /// Returns how many more files may be kept open.
    pub fn left(&self) -> usize {
        self.0.left.load(Ordering::Relaxed)
    }

    /// Whether writers should close the files that they keep open.
    pub(crate) fn pressed(&self) -> bool {
        self.0.pressed.load(Ordering::Relaxed)
    }

    fn take(&self, purpose: Access) -> Option<Permit> {
        if purpose == Access::Write && self.pressed() {
            return None;
        }
        let taken = self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() && purpose == Access::Read {
            self.0.pressed.store(true, Ordering::Relaxed);
        }
        taken.is_ok().then(|| Permit(self.clone()))
    }
}

/// The right to keep one file open; returned to the budget when dropped.
#[derive(Debug)]
struct Permit(DescriptorBudget);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.left.fetch_add(1, Ordering::Relaxed);
    }
}

/// The direction in which a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A file of a group, kept open if the budget allows it.
#[derive(Debug)]
pub(crate) struct GroupFile {
    root: Arc<Path>,
    group: Arc<str>,
    name: &'static str,
    purpose: Access,
    open: Option<(File, Permit)>,
}

impl GroupFile {
    /// Opens the file. Returns `Ok(None)` if it does not exist.
    pub(crate) fn open_existing(
        root: &Arc<Path>,
        group: &Arc<str>,
        name: &'static str,
        purpose: Access,
        budget: &DescriptorBudget,
    ) -> io::Result<Option<GroupFile>> {
        let mut file = GroupFile { root: Arc::clone(root), group: Arc::clone(group), name, purpose, open: None };
        let opened = match file.open() {
            Ok(opened) => opened,
            Err(error) if vanished(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        file.open = budget.take(purpose).map(|permit| (opened, permit));
        Ok(Some(file))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(&*self.group).join(self.name)
    }

    fn open(&self) -> io::Result<File> {
        match self.purpose {
            Access::Read => File::open(self.path()),
            Access::Write => OpenOptions::new().write(true).open(self.path()),
        }
    }

    /// Returns the present content. The buffer grows as needed and is reused.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Vec<u8>, budget: &DescriptorBudget) -> io::Result<&'b [u8]> {
        let length = match &self.open {
            Some((file, _)) => read(file, buffer),
            None => {
                let file = self.open()?;
                let length = read(&file, buffer);
                // Another file may have returned its permit meanwhile.
                self.open = budget.take(self.purpose).map(|permit| (file, permit));
                length
            }
        }?;
        Ok(&buffer[..length])
    }

    /// Closes the file and returns its permit to the budget.
    pub(crate) fn release(&mut self) {
        self.open = None;
    }

    /// Writes the text in one call, because the kernel takes each call as a complete value.
    pub(crate) fn write(&self, text: &[u8]) -> io::Result<()> {
        let written = match &self.open {
            Some((file, _)) => file.write_at(text, 0),
            None => self.open()?.write_at(text, 0),
        }?;
        if written == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

/// The largest file that is read: `io.stat` with a line for each of several thousand disks.
const MAXIMUM_LENGTH: usize = 1 << 20;

fn read(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.is_empty() {
        buffer.resize(4096, 0);
    }
    // At each read from the start the kernel generates the whole text and returns as much as the buffer holds. So one
    // read suffices unless the buffer is full; a longer text is read again from its start, because two pieces could
    // be of different moments.
    loop {
        let length = file.read_at(buffer, 0)?;
        if length < buffer.len() {
            return Ok(length);
        }
        if length >= MAXIMUM_LENGTH {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        buffer.resize(length * 2, 0);
    }
}

/// Whether the error means that the group, or the controller in it, no longer exists: `ENODEV` for an open file,
/// `ENOENT` otherwise.
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
    fn permits_are_taken_and_returned() {
        let (_folder, root, group) = file("1\n");
        let budget = DescriptorBudget::of(1);
        let open = |purpose| GroupFile::open_existing(&root, &group, "io.stat", purpose, &budget).unwrap().unwrap();
        let mut buffer = Vec::new();
        let mut writer = open(Access::Write);
        assert_eq!((writer.open.is_some(), budget.left(), budget.pressed()), (true, 0, false));
        // Readers have priority: the writer releases its file when it next checks.
        let mut reader = open(Access::Read);
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
        assert!(GroupFile::open_existing(&root, &group, "none", Access::Read, &budget).unwrap().is_none());
        assert_eq!(budget.left(), 1);
        assert!(DescriptorBudget::of_process().left() > 10);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_completely() {
        let text: String = (0..5_000).map(|i| format!("8:{i} rbytes=1\n")).collect();
        let (_folder, root, group) = file(&text);
        for budget in [0, 1].map(DescriptorBudget::of) {
            let mut file = GroupFile::open_existing(&root, &group, "io.stat", Access::Read, &budget).unwrap().unwrap();
            let mut buffer = Vec::new();
            assert_eq!(file.read(&mut buffer, &budget).unwrap(), text.as_bytes());
            assert_eq!(file.read(&mut buffer, &budget).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_vanished_file_is_detected_without_an_open_descriptor() {
        let (folder, root, group) = file("1\n");
        let budget = DescriptorBudget::of(0);
        let mut file = GroupFile::open_existing(&root, &group, "io.stat", Access::Read, &budget).unwrap().unwrap();
        fs::remove_file(folder.path().join("g/io.stat")).unwrap();
        assert!(vanished(&file.read(&mut Vec::new(), &budget).unwrap_err()));
    }
}
