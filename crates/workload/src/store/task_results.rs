//! The results of all tasks of a run, and how they are written as CSV.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use evenhand_documents::{Cell, TextCells, push_record};
use evenhand_model::files::replace_file;
use evenhand_model::{NO_TIME, Span, Time, UserId};

use super::StoreError;

/// The state of a task at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskState {
    /// The task finished.
    Completed,
    /// The task started and did not finish.
    Running,
    /// The task did not start.
    Waiting,
    /// The task is larger than the pool.
    Rejected,
}

impl TaskState {
    #[cfg(feature = "formats")]
    pub(super) const ALL: [TaskState; 4] =
        [TaskState::Completed, TaskState::Running, TaskState::Waiting, TaskState::Rejected];

    /// Returns the name in files: `completed`, `running`, `waiting`, `rejected`.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Completed => "completed",
            TaskState::Running => "running",
            TaskState::Waiting => "waiting",
            TaskState::Rejected => "rejected",
        }
    }
}

/// The tasks of a run as columns of the same length, one entry per task.
#[derive(Clone, Copy, Debug)]
pub struct TaskResults<'a> {
    /// The names of the users, indexed by [`UserId`].
    pub users: &'a [String],
    /// The row of the task in the workload.
    pub row: &'a [u32],
    /// The user.
    pub user: &'a [UserId],
    /// The time of submission.
    pub submit: &'a [Time],
    /// The start in the run, in nanoseconds, or [`NO_TIME`] if the task did not start.
    pub start: &'a [u64],
    /// The run time.
    pub duration: &'a [Span],
    /// The state at the end of the run.
    pub state: &'a [TaskState],
    /// The activity of the scheduler that started it, if the scheduler has several; empty if it did not start.
    pub started_by: Option<&'a [&'static str]>,
}

impl TaskResults<'_> {
    pub(super) fn len(&self) -> usize {
        let rows = self.row.len();
        let lens = [self.user.len(), self.submit.len(), self.start.len(), self.duration.len(), self.state.len()];
        let by = self.started_by.map_or(rows, <[_]>::len);
        assert!(lens.iter().chain([&by]).all(|&l| l == rows), "columns of the same length");
        rows
    }

    pub(super) fn start(&self, i: usize) -> Option<u64> {
        Some(self.start[i]).filter(|&ns| ns != NO_TIME)
    }

    pub(super) fn wait(&self, i: usize) -> Option<u64> {
        self.start(i).map(|ns| ns.saturating_sub(self.submit[i].nanos()))
    }
}

/// Writes results as CSV with times in seconds and nine decimals: `row`, `user`, `submit_s`, `start_s`, `duration_s`,
/// `wait_s`, `state`, and `started_by` where it is known. The start and wait of a task that did not start are empty.
///
/// # Errors
/// Returns an error if the file cannot be written; an older file is unchanged then.
///
/// # Panics
/// Panics if the columns differ in length or refer to a user who does not exist.
pub fn write_task_results_csv(path: &Path, t: &TaskResults<'_>) -> Result<(), StoreError> {
    replace_file(path, |file| csv(&mut BufWriter::new(file), t))
        .map_err(|source: io::Error| StoreError::Io { path: path.into(), source })
}

fn csv(out: &mut impl Write, t: &TaskResults<'_>) -> io::Result<()> {
    let mut line = Vec::new();
    let columns = ["row", "user", "submit_s", "start_s", "duration_s", "wait_s", "state", "started_by"];
    let used = if t.started_by.is_some() { columns.len() } else { columns.len() - 1 };
    let texts = TextCells::of_results();
    push_record(&mut line, &columns.map(Cell::Text)[..used], texts);
    out.write_all(&line)?;
    for i in 0..t.len() {
        let times = [Some(t.submit[i].nanos()), t.start(i), Some(t.duration[i].nanos()), t.wait(i)];
        let [submit, start, duration, wait] = times.map(Cell::Seconds);
        let (row, user) = (Cell::Count(u64::from(t.row[i])), Cell::Text(&t.users[t.user[i].index()]));
        let by = Cell::Text(t.started_by.map_or("", |by| by[i]));
        line.clear();
        let cells = [row, user, submit, start, duration, wait, Cell::Text(t.state[i].name()), by];
        push_record(&mut line, &cells[..used], texts);
        out.write_all(&line)?;
    }
    out.flush()
}
