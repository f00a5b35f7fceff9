//! What became of every task of a run.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use evenhand_model::files::replace_file;
use evenhand_model::{NO_TIME, Span, Time, UserId};
use parquet::basic::Compression;
use parquet::data_type::ByteArray;

use super::encode::{Column, Packing, byte_arrays, write_file};
use super::write::WriteError;
use super::{StoreError, name};
use crate::export::text::{push_csv, push_seconds};

/// How a task ended up when its run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskState {
    /// It started and finished.
    Completed,
    /// It started and had not finished.
    Running,
    /// It had not started.
    Waiting,
    /// It was larger than the pool.
    Rejected,
}

impl TaskState {
    const ALL: [TaskState; 4] = [TaskState::Completed, TaskState::Running, TaskState::Waiting, TaskState::Rejected];

    /// As written: `completed`, `running`, `waiting`, `rejected`.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Completed => "completed",
            TaskState::Running => "running",
            TaskState::Waiting => "waiting",
            TaskState::Rejected => "rejected",
        }
    }
}

/// The tasks of a run as columns of one length, one entry a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskResults<'a> {
    /// The users' names, by [`UserId`].
    pub users: &'a [String],
    /// Which row of the workload the task is.
    pub row: &'a [u32],
    /// Who submitted it.
    pub user: &'a [UserId],
    /// When it was submitted.
    pub submit: &'a [Time],
    /// When the run started it, in nanoseconds, or [`NO_TIME`] if it did not.
    pub start: &'a [u64],
    /// How long it runs.
    pub duration: &'a [Span],
    /// How it ended up.
    pub state: &'a [TaskState],
}

impl TaskResults<'_> {
    fn len(&self) -> usize {
        let rows = self.row.len();
        let lens = [self.user.len(), self.submit.len(), self.start.len(), self.duration.len(), self.state.len()];
        assert!(lens.iter().all(|&l| l == rows), "columns of one length");
        rows
    }

    fn start(&self, i: usize) -> Option<u64> {
        Some(self.start[i]).filter(|&ns| ns != NO_TIME)
    }

    fn wait(&self, i: usize) -> Option<u64> {
        self.start(i).map(|ns| ns.saturating_sub(self.submit[i].nanos()))
    }
}

/// Writes results as Parquet: `row`, `user`, `submit_ns`, `start_ns` (null: not started),
/// `duration_ns`, `wait_ns` (null: not started), `state`.
///
/// Packed for speed, not size: a study writes one such file a run.
///
/// # Errors
/// If the file system refuses; nothing is left behind then.
///
/// # Panics
/// If the columns differ in length or name a user who is not there.
pub fn write_task_results(path: &Path, t: &TaskResults<'_>) -> Result<(), StoreError> {
    let rows = t.len();
    replace_file(path, |file| {
        let states = TaskState::ALL.map(|s| ByteArray::from(s.name())).to_vec();
        let columns = [
            Column::int64("row", Packing::Delta, |i| i64::from(t.row[i]))?,
            Column::text(name::USER, byte_arrays(t.users), |i| t.user[i].index())?,
            Column::int64(name::SUBMIT, Packing::Delta, |i| t.submit[i].nanos() as i64)?,
            Column::nullable_int64(name::START, |i| t.start(i).map(|ns| ns as i64))?,
            Column::int64(name::DURATION, Packing::Plain, |i| t.duration[i].nanos() as i64)?,
            Column::nullable_int64("wait_ns", |i| t.wait(i).map(|ns| ns as i64))?,
            Column::text("state", states, |i| t.state[i] as usize)?,
        ];
        write_file(BufWriter::new(file), &columns, rows, Compression::SNAPPY, Vec::new())?;
        Ok(())
    })
    .map_err(|e: WriteError| e.at(path))
}

/// Writes results as CSV with times in seconds, exactly, with nine decimals: `row`, `user`,
/// `submit_s`, `start_s`, `duration_s`, `wait_s`, `state`; what has not started has no start.
///
/// # Errors
/// If the file system refuses; nothing is left behind then.
///
/// # Panics
/// If the columns differ in length or name a user who is not there.
pub fn write_task_results_csv(path: &Path, t: &TaskResults<'_>) -> Result<(), StoreError> {
    replace_file(path, |file| csv(&mut BufWriter::new(file), t))
        .map_err(|source: io::Error| StoreError::Io { path: path.into(), source })
}

fn csv(out: &mut impl Write, t: &TaskResults<'_>) -> io::Result<()> {
    out.write_all(b"row,user,submit_s,start_s,duration_s,wait_s,state\n")?;
    let users: Vec<Vec<u8>> = t
        .users
        .iter()
        .map(|u| {
            let mut field = Vec::new();
            push_csv(&mut field, u);
            field
        })
        .collect();
    let mut line = Vec::new();
    for i in 0..t.len() {
        line.clear();
        write!(line, "{},", t.row[i])?;
        line.extend_from_slice(&users[t.user[i].index()]);
        let times = [Some(t.submit[i].nanos()), t.start(i), Some(t.duration[i].nanos()), t.wait(i)];
        for ns in times {
            line.push(b',');
            if let Some(ns) = ns {
                push_seconds(&mut line, ns);
            }
        }
        line.push(b',');
        line.extend_from_slice(t.state[i].name().as_bytes());
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()
}
