//! Rows of a workload on disk, for traces that are larger than memory.
//!
//! A builder with an [`Overflow`] writes its rows, sorted by submission, to a file without a name when the rows of all
//! builders that share it reach a limit. [`LargeWorkload`] merges these runs and hands them out in chunks. Names and demand
//! vectors stay in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::details::{Detail, Details};
use super::{Columns, NO_ID, NO_NODES, NO_TIME, UserId, Workload};
use crate::{DemandId, Span, Time};

/// The times of a row on disk.
const TIMES: usize = 5;
/// The numbers of 32 bits of a row on disk, besides one for each detail.
const NUMBERS: usize = 7;
/// The bytes of a row on disk.
const ROW: usize = TIMES * 8 + (NUMBERS + Detail::ALL.len()) * 4;
/// The rows that are encoded at a time.
const ENCODED: usize = 4096;

/// Where builders put rows that do not fit in memory. Clones share the file and the limit.
#[derive(Clone, Debug)]
pub struct Overflow(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    max_rows: usize,
    held: AtomicUsize,
    disk: Mutex<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    /// Created with the first row; it has no name, so that nothing is left of it in any case.
    file: Option<Arc<File>>,
    end: u64,
    error: Option<io::Error>,
}

/// Rows on disk, sorted by submission.
#[derive(Clone, Debug)]
pub(super) struct Run {
    file: Arc<File>,
    offset: u64,
    rows: u64,
    /// The ids of the builder that has the run, by those that its rows have; `None` if they are the same.
    ids: Option<Arc<IdMaps>>,
}

/// New ids, indexed by old ones.
#[derive(Debug, Default)]
pub(super) struct IdMaps {
    pub(super) users: Vec<u32>,
    pub(super) accounts: Vec<u32>,
    pub(super) queues: Vec<u32>,
    pub(super) details: Details<Vec<u32>>,
    pub(super) demands: Vec<DemandId>,
}

impl IdMaps {
    /// Returns the maps that apply `self` and then `next`.
    fn then(&self, next: &IdMaps) -> IdMaps {
        let through = |first: &[u32], second: &[u32]| first.iter().map(|id| second[*id as usize]).collect();
        IdMaps {
            users: through(&self.users, &next.users),
            accounts: through(&self.accounts, &next.accounts),
            queues: through(&self.queues, &next.queues),
            details: Details::from_fn(|detail| through(&self.details[detail], &next.details[detail])),
            demands: self.demands.iter().map(|id| next.demands[id.index()]).collect(),
        }
    }
}

impl Run {
    /// Renumbers the ids of the rows.
    pub(super) fn renumbered(self, next: &Arc<IdMaps>) -> Run {
        let ids = match &self.ids {
            None => Arc::clone(next),
            Some(first) => Arc::new(first.then(next)),
        };
        Run { ids: Some(ids), ..self }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }
}

impl Overflow {
    /// Puts what exceeds `max_rows` rows in memory into a temporary file in `folder`.
    pub fn new(folder: impl Into<PathBuf>, max_rows: usize) -> Overflow {
        let (folder, held) = (folder.into(), AtomicUsize::new(0));
        Overflow(Arc::new(Shared { folder, max_rows, held, disk: Mutex::default() }))
    }

    /// Returns the first error in writing rows, which are then lost.
    pub fn take_error(&self) -> Option<io::Error> {
        self.disk().error.take()
    }

    fn disk(&self) -> std::sync::MutexGuard<'_, Disk> {
        self.0.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts rows in memory, and returns whether there are too many.
    pub(super) fn hold(&self, rows: usize) -> bool {
        self.0.held.fetch_add(rows, Ordering::Relaxed) + rows >= self.0.max_rows
    }

    /// Returns whether so many rows are in memory that a finished part should not keep its own.
    pub(super) fn is_half_full(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) >= self.0.max_rows / 2
    }

    pub(super) fn release(&self, rows: usize) {
        self.0.held.fetch_sub(rows, Ordering::Relaxed);
    }

    /// Writes sorted rows; on failure keeps the error.
    pub(super) fn write(&self, columns: &Columns) -> Option<Run> {
        let mut disk = self.disk();
        match self.try_write(&mut disk, columns) {
            Ok(run) => Some(run),
            Err(error) => {
                disk.error.get_or_insert(error);
                None
            }
        }
    }

    fn try_write(&self, disk: &mut Disk, columns: &Columns) -> io::Result<Run> {
        let file = match &disk.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(disk.file.insert(Arc::new(tempfile::tempfile_in(&self.0.folder)?))),
        };
        let (offset, rows) = (disk.end, columns.submit.len());
        let mut bytes = Vec::with_capacity(ENCODED * ROW);
        for start in (0..rows).step_by(ENCODED) {
            bytes.clear();
            (start..rows.min(start + ENCODED)).for_each(|row| encode(columns, row, &mut bytes));
            file.write_all_at(&bytes, disk.end)?;
            disk.end += bytes.len() as u64;
        }
        Ok(Run { file, offset, rows: rows as u64, ids: None })
    }
}

fn encode(c: &Columns, row: usize, bytes: &mut Vec<u8>) {
    let time = |column: &Option<Vec<u64>>| column.as_ref().map_or(NO_TIME, |c| c[row]);
    let number = |column: &Option<Vec<u32>>, none| column.as_ref().map_or(none, |c| c[row]);
    let (submit, duration) = (c.submit[row].nanos(), c.duration[row].nanos());
    for time in [submit, duration, time(&c.start), time(&c.requested), time(&c.eligible)] {
        bytes.extend(time.to_le_bytes());
    }
    let (account, queue) = (number(&c.account, NO_ID), number(&c.queue, NO_ID));
    let (count, nodes) = (number(&c.count, 1), number(&c.nodes, NO_NODES));
    let requested_demand = c.requested_demand.as_ref().map_or(DemandId::NONE, |c| c[row]);
    for number in [c.user[row].0, c.demand[row].0, account, queue, count, nodes, requested_demand.0] {
        bytes.extend(number.to_le_bytes());
    }
    c.details.iter().for_each(|(_, column)| bytes.extend(number(column, NO_ID).to_le_bytes()));
}

/// Which optional columns have a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    start: bool,
    requested: bool,
    account: bool,
    queue: bool,
    count: bool,
    nodes: bool,
    eligible: bool,
    requested_demand: bool,
    details: Details<bool>,
}

impl Present {
    /// Adds the columns of some rows.
    pub(super) fn add(&mut self, c: &Columns) {
        let times = |column: &Option<Vec<u64>>| column.iter().flatten().any(|time| *time != NO_TIME);
        let numbers = |column: &Option<Vec<u32>>, none| column.iter().flatten().any(|number| *number != none);
        self.start |= times(&c.start);
        self.requested |= times(&c.requested);
        self.account |= numbers(&c.account, NO_ID);
        self.queue |= numbers(&c.queue, NO_ID);
        self.count |= numbers(&c.count, 1);
        self.nodes |= numbers(&c.nodes, NO_NODES);
        self.eligible |= times(&c.eligible);
        self.requested_demand |= c.requested_demand.iter().flatten().any(|id| *id != DemandId::NONE);
        self.details.iter_mut().for_each(|(detail, any)| *any |= numbers(&c.details[detail], NO_ID));
    }

    pub(super) fn merge(&mut self, other: Present) {
        self.start |= other.start;
        self.requested |= other.requested;
        self.account |= other.account;
        self.queue |= other.queue;
        self.count |= other.count;
        self.nodes |= other.nodes;
        self.eligible |= other.eligible;
        self.requested_demand |= other.requested_demand;
        self.details.iter_mut().for_each(|(detail, any)| *any |= other.details[detail]);
    }

    fn columns(self, rows: usize) -> Columns {
        fn some<T>(is: bool, rows: usize) -> Option<Vec<T>> {
            is.then(|| Vec::with_capacity(rows))
        }
        Columns {
            submit: Vec::with_capacity(rows),
            start: some(self.start, rows),
            duration: Vec::with_capacity(rows),
            requested: some(self.requested, rows),
            user: Vec::with_capacity(rows),
            account: some(self.account, rows),
            queue: some(self.queue, rows),
            demand: Vec::with_capacity(rows),
            requested_demand: some(self.requested_demand, rows),
            count: some(self.count, rows),
            nodes: some(self.nodes, rows),
            eligible: some(self.eligible, rows),
            details: self.details.map(|any| some(any, rows)),
        }
    }
}

/// A workload whose rows are on disk. Its chunks, one after another, have the rows of the workload that the builder would
/// have made in memory; users, accounts, queues and demand vectors have other numbers, the same in all chunks.
#[derive(Debug)]
pub struct LargeWorkload {
    /// The names and demand vectors, and the rows of the current chunk.
    workload: Workload,
    present: Present,
    readers: Vec<Reader>,
    /// The next row of each run that has one: its submission and the run, so that ties go to the earlier run.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    rows: u64,
}

impl LargeWorkload {
    /// Merges runs, with about so many bytes of buffers.
    pub(super) fn new(workload: Workload, present: Present, runs: Vec<Run>, buffers: usize) -> io::Result<Self> {
        let rows = runs.iter().map(Run::rows).sum();
        let buffer = (buffers / runs.len().max(1) / ROW).clamp(64, 1 << 16) * ROW;
        let mut readers: Vec<Reader> = runs.into_iter().map(|run| Reader::new(run, buffer)).collect();
        let mut next = BinaryHeap::with_capacity(readers.len());
        for (place, reader) in readers.iter_mut().enumerate() {
            if let Some(submit) = reader.submission()? {
                next.push(Reverse((submit, place)));
            }
        }
        Ok(LargeWorkload { workload, present, readers, next, rows })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the next rows, at most so many; `None` after the last.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be read.
    pub fn next_chunk(&mut self, max_rows: usize) -> io::Result<Option<&Workload>> {
        let mut columns = self.present.columns(max_rows.min(usize::try_from(self.rows).unwrap_or(max_rows)));
        while columns.submit.len() < max_rows {
            let Some(Reverse((_, place))) = self.next.pop() else { break };
            let reader = &mut self.readers[place];
            reader.push_row(&mut columns);
            if let Some(submit) = reader.submission()? {
                self.next.push(Reverse((submit, place)));
            }
        }
        self.workload.columns = columns;
        Ok((!self.workload.is_empty()).then_some(&self.workload))
    }
}

/// Reads a run from its beginning to its end.
#[derive(Debug)]
struct Reader {
    run: Run,
    read: u64,
    buffer: Vec<u8>,
    at: usize,
    size: usize,
}

impl Reader {
    fn new(run: Run, size: usize) -> Reader {
        Reader { run, read: 0, buffer: Vec::new(), at: 0, size }
    }

    /// Returns the submission of the next row.
    fn submission(&mut self) -> io::Result<Option<u64>> {
        if self.at == self.buffer.len() {
            let left = (self.run.rows * ROW as u64).saturating_sub(self.read);
            self.buffer.resize(left.min(self.size as u64) as usize, 0);
            self.at = 0;
            self.run.file.read_exact_at(&mut self.buffer, self.run.offset + self.read)?;
            self.read += self.buffer.len() as u64;
        }
        Ok((self.at < self.buffer.len()).then(|| self.long(0)))
    }

    fn long(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.buffer[self.at + at..][..8]);
        u64::from_le_bytes(bytes)
    }

    fn number(&self, index: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.buffer[self.at + 8 * TIMES + 4 * index..][..4]);
        u32::from_le_bytes(bytes)
    }

    /// Moves the next row, which [`submission`](Reader::submission) has found, to `columns`.
    fn push_row(&mut self, columns: &mut Columns) {
        let ids = self.run.ids.as_deref();
        let mapped = |id: u32, map: fn(&IdMaps) -> &[u32]| match ids {
            Some(ids) if id != NO_ID => map(ids)[id as usize],
            _ => id,
        };
        columns.submit.push(Time::from_nanos(self.long(0)));
        columns.duration.push(Span::from_nanos(self.long(8)));
        columns.user.push(UserId(mapped(self.number(0), |ids| &ids.users)));
        let demand = |index| match (ids, DemandId(self.number(index))) {
            (Some(ids), demand) if demand != DemandId::NONE => ids.demands[demand.index()],
            (_, demand) => demand,
        };
        columns.demand.push(demand(1));
        columns.requested_demand.iter_mut().for_each(|column| column.push(demand(6)));
        for (column, value) in [
            (&mut columns.start, self.long(16)),
            (&mut columns.requested, self.long(24)),
            (&mut columns.eligible, self.long(32)),
        ] {
            column.iter_mut().for_each(|column| column.push(value));
        }
        for (column, value) in [
            (&mut columns.account, mapped(self.number(2), |ids| &ids.accounts)),
            (&mut columns.queue, mapped(self.number(3), |ids| &ids.queues)),
            (&mut columns.count, self.number(4)),
            (&mut columns.nodes, self.number(5)),
        ] {
            column.iter_mut().for_each(|column| column.push(value));
        }
        for (place, (detail, column)) in columns.details.iter_mut().enumerate() {
            let id = match (ids, self.number(NUMBERS + place)) {
                (Some(ids), id) if id != NO_ID => ids.details[detail][id as usize],
                (_, id) => id,
            };
            column.iter_mut().for_each(|column| column.push(id));
        }
        self.at += ROW;
    }
}
