//! Sources of a trace: files, folders of shards, archives, standard input, bytes in memory. They are plain or compressed
//! (gzip, zstd, bzip2, xz), which the first bytes decide.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenhand_model::memory::MemoryLimit;

use self::unpack::{archive_members, unpacked};
use crate::import::{ImportError, ImportOptions};

mod check_output;
mod unpack;

/// The source of a trace, or of one part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or a folder whose files with a matching extension are read in the order of their names.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// Bytes in memory.
    Bytes {
        /// The name in messages.
        name: String,
        /// The content, compressed or not.
        data: Vec<u8>,
    },
}

impl Source {
    /// Creates a source from an argument of a command line: `-` is standard input, anything else is a path.
    pub fn from_argument(argument: impl Into<PathBuf>) -> Source {
        let path = argument.into();
        if path.as_os_str() == "-" { Source::Stdin } else { Source::Path(path) }
    }
}

/// The progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The bytes read so far, before decompression.
    pub read: u64,
    /// The bytes of all sources, if all are regular files or in memory.
    pub total: Option<u64>,
}

/// The memory that a task takes while it is imported, in bytes: submission, run time, user, demand, start, requested
/// time, account, queue, and what sorting and storing need.
const TASK_BYTES: u64 = 64;
/// A document that is read as a whole takes this many times its size.
const DOCUMENT_FACTOR: u64 = 3;
/// How much larger than a compressed stream its text may be, unless an option says otherwise. Traces compress 5 to 40
/// times.
const UNPACKED_FACTOR: u64 = 200;
/// The text that a compressed stream may always hold.
const UNPACKED_ALWAYS: u64 = 1 << 30;

/// Reports to a callback how many bytes have been read, and compares what was read with the limits of the import.
pub(crate) struct Meter<'a> {
    report: Option<&'a (dyn Fn(Progress) + Sync)>,
    read: AtomicU64,
    total: Option<u64>,
    tasks: AtomicU64,
    memory: Option<MemoryLimit>,
    max_unpacked: Option<u64>,
    /// Whether tasks that do not fit in memory go to disk.
    tasks_on_disk: bool,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        report: Option<&'a (dyn Fn(Progress) + Sync)>,
        shards: &[Shard],
        options: &ImportOptions,
    ) -> Meter<'a> {
        let total = shards.iter().map(Shard::size).sum();
        let (memory, max_unpacked) = (options.memory, options.max_unpacked);
        let tasks_on_disk = options.overflow.is_some();
        Meter { report, read: AtomicU64::new(0), total, tasks: AtomicU64::new(0), memory, max_unpacked, tasks_on_disk }
    }

    /// Checks, by the sizes of uncompressed files and the lines at their beginning, that their tasks will probably fit.
    /// Only a clear excess is an error: what is read is counted exactly.
    pub(crate) fn check_before_reading(&self, shards: &mut [Shard]) -> Result<(), ImportError> {
        let Some(limit) = self.memory.filter(|_| !self.tasks_on_disk) else { return Ok(()) };
        let mut tasks = 0u64;
        for shard in shards.iter_mut() {
            tasks = tasks.saturating_add(shard.estimated_lines()?.unwrap_or(0));
        }
        let need = tasks.saturating_mul(TASK_BYTES);
        match shards.first() {
            Some(first) if need / 2 > limit.bytes => {
                Err(ImportError::Memory { file: first.name.clone(), tasks, estimated: true, need, limit })
            }
            _ => Ok(()),
        }
    }

    /// Counts tasks that are kept in memory, and checks that they fit.
    pub(crate) fn hold(&self, file: &str, tasks: u64) -> Result<(), ImportError> {
        let tasks = self.tasks.fetch_add(tasks, Ordering::Relaxed).saturating_add(tasks);
        let need = tasks.saturating_mul(TASK_BYTES);
        match self.memory.filter(|limit| need > limit.bytes && !self.tasks_on_disk) {
            Some(limit) => Err(ImportError::Memory { file: file.to_string(), tasks, estimated: false, need, limit }),
            None => Ok(()),
        }
    }

    fn check_document(&self, file: &str, bytes: u64) -> Result<(), ImportError> {
        match self.memory.filter(|limit| bytes.saturating_mul(DOCUMENT_FACTOR) > limit.bytes) {
            Some(limit) => Err(ImportError::LargeDocument { file: file.to_string(), bytes, limit }),
            None => Ok(()),
        }
    }

    fn check_unpacked(
        &self,
        file: &str,
        compression: &'static str,
        packed: u64,
        unpacked: u64,
    ) -> Result<(), ImportError> {
        let usual = packed.saturating_mul(UNPACKED_FACTOR).max(UNPACKED_ALWAYS);
        let limit = self.max_unpacked.unwrap_or(usual);
        if unpacked <= limit {
            return Ok(());
        }
        let (file, given) = (file.to_string(), self.max_unpacked.is_some());
        Err(ImportError::Unpacked { file, compression, packed, limit, given })
    }

    fn add(&self, bytes: u64) {
        if let Some(report) = self.report {
            let read = self.read.fetch_add(bytes, Ordering::Relaxed) + bytes;
            report(Progress { read, total: self.total });
        }
    }
}

enum Origin {
    File(PathBuf),
    Stdin,
    Bytes(Vec<u8>),
}

/// One stream of rows: a file, standard input, or bytes in memory.
pub(crate) struct Shard {
    pub(crate) name: String,
    origin: Origin,
    /// The stream after its head was read, if it cannot be opened again (pipes).
    open: Option<Blocks>,
}

impl Shard {
    /// Returns the streams of `sources`; of folders, the files that end in one of `extensions` (before `.gz` or
    /// `.zst`), in the order of their names.
    pub(crate) fn of(sources: &[Source], extensions: &[&str]) -> Result<Vec<Shard>, ImportError> {
        let mut shards = Vec::new();
        let mut add = |name: String, origin| shards.push(Shard { name, origin, open: None });
        for source in sources {
            match source {
                Source::Stdin => add("<stdin>".to_string(), Origin::Stdin),
                Source::Bytes { name, data } => add(name.clone(), Origin::Bytes(data.clone())),
                Source::Path(path) => {
                    let io = |source| ImportError::Io { file: path.display().to_string(), source };
                    if !fs::metadata(path).map_err(io)?.is_dir() {
                        match archive_members(path)? {
                            Some(members) => {
                                members.into_iter().for_each(|(name, data)| add(name, Origin::Bytes(data)))
                            }
                            None => add(path.display().to_string(), Origin::File(path.clone())),
                        }
                        continue;
                    }
                    let files = files_in(path, extensions).map_err(io)?;
                    if files.is_empty() {
                        let looked_for = extensions.iter().map(|e| format!("*.{e}")).collect::<Vec<_>>().join(", ");
                        return Err(ImportError::NoShard { folder: path.display().to_string(), looked_for });
                    }
                    files.into_iter().for_each(|f| add(f.display().to_string(), Origin::File(f)));
                }
            }
        }
        Ok(shards)
    }

    /// Estimates the lines of a regular, uncompressed file by the mean of those at its beginning that are no comments.
    fn estimated_lines(&mut self) -> Result<Option<u64>, ImportError> {
        let Origin::File(path) = &self.origin else { return Ok(None) };
        let Some(size) = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len()) else {
            return Ok(None);
        };
        let mut blocks = self.start()?;
        if blocks.compression.is_some() {
            return Ok(None);
        }
        let head = blocks.head()?;
        if head.starts_with(b"PAR1") || head.starts_with(b"[") {
            return Ok(None);
        }
        let lines = || head.split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n") && line[0] != b';');
        let (count, bytes) = (lines().count() as u64, lines().map(|line| line.len() as u64).sum::<u64>());
        Ok((count > 0).then(|| size / (bytes / count).max(1)))
    }

    pub(crate) fn size(&self) -> Option<u64> {
        match &self.origin {
            Origin::File(path) => fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len()),
            Origin::Stdin => None,
            Origin::Bytes(data) => Some(data.len() as u64),
        }
    }

    /// Returns the first kilobytes of the stream, decompressed, which remain to be read.
    pub(crate) fn head(&mut self) -> Result<Vec<u8>, ImportError> {
        let mut blocks = self.take()?;
        let head = blocks.head()?.to_vec();
        let again = match &self.origin {
            Origin::File(path) => fs::metadata(path).is_ok_and(|m| m.is_file()),
            Origin::Stdin => false,
            Origin::Bytes(_) => true,
        };
        if !again {
            self.open = Some(blocks);
        }
        Ok(head)
    }

    /// Returns all of the stream, decompressed, which remains to be read.
    #[cfg(feature = "formats")]
    pub(crate) fn whole(&mut self) -> Result<Vec<u8>, ImportError> {
        let meter = Meter::new(None, &[], &ImportOptions::default());
        let Some(open) = self.open.take() else { return self.start()?.rest(&meter) };
        // It cannot be opened again, so its content takes its place.
        let data = open.rest(&meter)?;
        self.origin = Origin::Bytes(data.clone());
        Ok(data)
    }

    /// Returns whether the stream is a regular file, and not standard input or a pipe.
    #[cfg(feature = "formats")]
    pub(crate) fn is_file(&self) -> bool {
        matches!(&self.origin, Origin::File(path) if fs::metadata(path).is_ok_and(|found| found.is_file()))
    }

    /// Opens the stream.
    pub(crate) fn open(mut self) -> Result<Blocks, ImportError> {
        self.take()
    }

    fn take(&mut self) -> Result<Blocks, ImportError> {
        match self.open.take() {
            Some(blocks) => Ok(blocks),
            None => self.start(),
        }
    }

    fn start(&self) -> Result<Blocks, ImportError> {
        let mut block = BLOCK;
        let raw: Box<dyn Read + Send> = match &self.origin {
            Origin::File(path) => {
                let io = |source| ImportError::Io { file: self.name.clone(), source };
                Box::new(File::open(path).map_err(io)?)
            }
            Origin::Stdin => Box::new(io::stdin()),
            Origin::Bytes(data) => {
                // Tests and fuzzers import many small traces.
                block = data.len().clamp(HEAD, BLOCK);
                Box::new(Cursor::new(data.clone()))
            }
        };
        Blocks::new(self.name.clone(), raw, block)
    }
}

fn files_in(folder: &Path, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let plain = COMPRESSED.iter().find_map(|c| name.strip_suffix(c)).unwrap_or(&name);
        let fits = extensions.iter().any(|e| plain.strip_suffix(e).is_some_and(|stem| stem.ends_with('.')));
        if fits && !name.starts_with('.') && fs::metadata(&path)?.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The suffixes of compressed files.
const COMPRESSED: [&str; 4] = [".gz", ".zst", ".bz2", ".xz"];

/// The size of a block: large enough that the search for its last line end is negligible, and within the L2 cache.
const BLOCK: usize = 256 * 1024;
/// The size of a head: enough to detect the format and to read the time of the first row.
const HEAD: usize = 8 * 1024;
/// The longest line. No format has longer ones, and a file without line ends must not fill the memory.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Reads a stream, decompressed, in blocks of whole lines. The partial line at the end of a block is moved to the next
/// block, so memory holds one block.
pub(crate) struct Blocks {
    name: String,
    compression: Option<&'static str>,
    reader: Box<dyn Read + Send>,
    block: usize,
    buffer: Vec<u8>,
    /// `buffer[given..filled]` has been read and not yet returned.
    given: usize,
    filled: usize,
    ended: bool,
    /// Bytes read, decompressed.
    unpacked: u64,
    /// Stored bytes read and reported to the meter.
    metered: u64,
    /// Stored bytes read since the last report to the meter.
    unmetered: Arc<AtomicU64>,
}

/// Counts the stored bytes below the decompressor.
struct Counted<R> {
    reader: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(into)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Blocks {
    fn new(name: String, raw: Box<dyn Read + Send>, block: usize) -> Result<Blocks, ImportError> {
        let unmetered = Arc::new(AtomicU64::new(0));
        let mut raw = Counted { reader: raw, count: unmetered.clone() };
        let mut magic = Vec::with_capacity(6);
        (&mut raw).take(6).read_to_end(&mut magic).map_err(|source| ImportError::Io { file: name.clone(), source })?;
        let gzip = magic.starts_with(&[0x1f, 0x8b]);
        let raw = Cursor::new(magic.clone()).chain(raw);
        let (reader, compression): (Box<dyn Read + Send>, _) = if gzip {
            let buffered = io::BufReader::with_capacity(64 * 1024, raw);
            (Box::new(flate2::bufread::MultiGzDecoder::new(buffered)), Some("gzip"))
        } else {
            unpacked(raw, &magic, &name)?
        };
        let buffer = Vec::new();
        Ok(Blocks {
            name,
            compression,
            reader,
            block,
            buffer,
            given: 0,
            filled: 0,
            ended: false,
            unpacked: 0,
            metered: 0,
            unmetered,
        })
    }

    /// Reads until `wanted` bytes are held or the stream ends.
    fn fill(&mut self, wanted: usize) -> Result<(), ImportError> {
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while !self.ended && self.filled < wanted {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    self.filled += n;
                    self.unpacked += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(())
    }

    /// Classifies an error: of the decompressor, which means a damaged input, or of the operating system.
    fn failed(&self, source: io::Error) -> ImportError {
        let file = self.name.clone();
        match self.compression {
            Some(compression) if source.raw_os_error().is_none() => {
                let truncated = source.kind() == io::ErrorKind::UnexpectedEof;
                ImportError::Compression { file, compression, truncated, detail: source.to_string() }
            }
            _ => ImportError::Io { file, source },
        }
    }

    /// Reports what was read, and checks how much text it became.
    fn report(&mut self, meter: &Meter<'_>) -> Result<(), ImportError> {
        let stored = self.unmetered.swap(0, Ordering::Relaxed);
        self.metered += stored;
        meter.add(stored);
        match self.compression {
            Some(compression) => meter.check_unpacked(&self.name, compression, self.metered, self.unpacked),
            None => Ok(()),
        }
    }

    /// Returns the first few kilobytes, which [`next`](Blocks::next) returns again.
    fn head(&mut self) -> Result<&[u8], ImportError> {
        self.fill(HEAD)?;
        Ok(&self.buffer[..self.filled])
    }

    /// Returns the next whole lines, or `None` at the end. The last line may lack its line end.
    pub(crate) fn next(&mut self, meter: &Meter<'_>) -> Result<Option<&[u8]>, ImportError> {
        self.buffer.copy_within(self.given..self.filled, 0);
        (self.filled, self.given) = (self.filled - self.given, 0);
        let mut wanted = self.block;
        loop {
            self.fill(wanted)?;
            self.report(meter)?;
            let held = &self.buffer[..self.filled];
            let whole = if self.ended { Some(held.len()) } else { memchr::memrchr(b'\n', held).map(|at| at + 1) };
            if let Some(whole) = whole {
                self.given = whole;
                return Ok((whole > 0).then(|| &self.buffer[..whole]));
            }
            if wanted >= LONGEST_LINE {
                return Err(ImportError::LongLine { file: self.name.clone(), bytes: LONGEST_LINE });
            }
            wanted = (wanted * 2).min(LONGEST_LINE);
        }
    }

    /// Returns the rest of the stream, for formats that are one document.
    pub(crate) fn rest(mut self, meter: &Meter<'_>) -> Result<Vec<u8>, ImportError> {
        while !self.ended {
            self.fill((self.filled + 1).next_power_of_two().max(self.block))?;
            self.report(meter)?;
            meter.check_document(&self.name, self.filled as u64)?;
        }
        self.buffer.truncate(self.filled);
        Ok(self.buffer.split_off(self.given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_may_be_two_hundred_times_as_large_as_its_compressed_form_and_always_a_gibibyte() {
        let check = |max_unpacked, packed, unpacked| {
            let options = ImportOptions { max_unpacked, ..ImportOptions::default() };
            Meter::new(None, &[], &options).check_unpacked("t.zst", "zstd", packed, unpacked)
        };
        assert!(check(None, 1, 1 << 30).is_ok());
        let error = check(None, 5 << 20, (1 << 30) + 1).unwrap_err().to_string();
        assert!(error.contains("more than 1.0 GiB of text in 5.0 MiB of zstd data"), "{error}");
        assert!(check(None, 50 << 20, 200 * (50 << 20)).is_ok());
        assert!(check(None, 50 << 20, 200 * (50 << 20) + 1).is_err());
        assert!(check(Some(10), 1 << 30, 11).is_err() && check(Some(11), 1, 11).is_ok());
    }

    #[test]
    fn tasks_of_all_files_count_together() {
        let memory = Some(MemoryLimit::of_option(100 * TASK_BYTES));
        let options = ImportOptions { memory, ..ImportOptions::default() };
        let meter = Meter::new(None, &[], &options);
        assert!(meter.hold("a", 60).is_ok() && meter.hold("b", 40).is_ok());
        let error = meter.hold("c", 1).unwrap_err();
        assert!(error.is_environment() && error.to_string().starts_with("c: found 101 tasks so far"), "{error}");
        assert!(Meter::new(None, &[], &ImportOptions::default()).hold("a", u64::MAX / 2).is_ok());
    }
}
