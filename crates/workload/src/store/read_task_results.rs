//! Reads the results of all tasks of a run.

use std::fs::File;
use std::path::Path;

use evenhand_model::{Span, Time, UserId};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::read::column::{Column, Number};
use super::read::{catch_panics, names, times};
use super::{StoreError, TaskResults, TaskState, name};

/// The tasks of a run as they were read: columns of the same length, one entry per task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedTaskResults {
    users: Vec<String>,
    row: Vec<u32>,
    user: Vec<UserId>,
    submit: Vec<Time>,
    start: Vec<u64>,
    duration: Vec<Span>,
    state: Vec<TaskState>,
}

impl OwnedTaskResults {
    /// Returns the columns. Users are numbered by first appearance in this file.
    pub fn columns(&self) -> TaskResults<'_> {
        TaskResults {
            users: &self.users,
            row: &self.row,
            user: &self.user,
            submit: &self.submit,
            start: &self.start,
            duration: &self.duration,
            state: &self.state,
            started_by: None,
        }
    }
}

/// Reads what [`write_task_results`](super::write_task_results) wrote.
///
/// # Errors
/// Returns an error if the file cannot be read, is not Parquet, lacks a column, or holds an invalid value; the error names
/// file, column and row.
pub fn read_task_results(path: &Path) -> Result<OwnedTaskResults, StoreError> {
    let io = |source| StoreError::Io { path: path.into(), source };
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let damaged = |e: ParquetError| StoreError::Parquet { path: path.into(), reason: e.to_string() };
    catch_panics(path, || {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(damaged)?;
        let mut results = OwnedTaskResults::default();
        let mut known = evenhand_model::Names::default();
        for group in 0..metadata.num_row_groups() {
            append_group(path, bytes, &metadata, group, &mut known, &mut results)?;
        }
        results.users = known.into_list();
        Ok(results)
    })
}

fn append_group(
    path: &Path,
    bytes: u64,
    metadata: &ParquetMetaData,
    group: usize,
    known: &mut evenhand_model::Names,
    results: &mut OwnedTaskResults,
) -> Result<(), StoreError> {
    const A_ROW: &str = "a row of the workload, from 0 to 4294967295";
    let rows = usize::try_from(metadata.row_group(group).num_rows()).unwrap_or(0);
    let first_row = results.row.len();
    let open = |name: &str, expected: &'static str| {
        let columns = metadata.file_metadata().schema_descr().columns();
        let position = columns.iter().position(|c| c.path().string() == name);
        let missing = || StoreError::MissingColumn { path: path.into(), column: name.into(), expected };
        Column::open(path, bytes, metadata, group, position.ok_or_else(missing)?, first_row)
    };
    let column = open("row", A_ROW)?;
    column.numbers(A_ROW, &mut |number| {
        let Number::Whole(row) = number else { return false };
        let row = u32::try_from(row).ok();
        results.row.extend(row);
        row.is_some()
    })?;
    let (users, ids) = names(open(name::USER, "users' names")?, rows, false)?;
    let ids_of_file: Vec<UserId> = users.iter().map(|user| UserId(known.intern(user))).collect();
    results.user.extend(ids.iter().map(|&id| ids_of_file[id as usize]));
    let time = |name, nullable| times(open(name, "times in nanoseconds")?, rows, nullable);
    results.submit.extend(time(name::SUBMIT, false)?.into_iter().map(Time::from_nanos));
    results.start.extend(time(name::START, true)?);
    results.duration.extend(time(name::DURATION, false)?.into_iter().map(Span::from_nanos));
    let column = open("state", "states of tasks")?;
    column.texts(&mut |text| {
        let state = TaskState::ALL.into_iter().find(|state| Some(state.name().as_bytes()) == text);
        results.state.extend(state);
        state.is_some()
    })?;
    let lengths = [results.row.len(), results.user.len(), results.start.len(), results.state.len()];
    if lengths.iter().any(|&length| length != first_row + rows) {
        return Err(StoreError::Parquet { path: path.into(), reason: "columns of different lengths".into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::write_task_results;
    use evenhand_model::NO_TIME;

    #[test]
    fn what_was_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks.parquet");
        let written = OwnedTaskResults {
            users: vec!["b".into(), "a".into()],
            row: vec![0, 2, 1],
            user: vec![UserId(0), UserId(1), UserId(0)],
            submit: [1, 1, 2].map(Time::from_secs).into(),
            start: vec![1_500_000_000, NO_TIME, NO_TIME],
            duration: [3, 4, 5].map(Span::from_secs).into(),
            state: vec![TaskState::Running, TaskState::Rejected, TaskState::Waiting],
        };
        write_task_results(&path, &written.columns()).unwrap();
        assert_eq!(read_task_results(&path).unwrap(), written);
    }

    #[test]
    fn files_that_are_something_else_are_refused_with_the_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.parquet");
        let mut builder = evenhand_model::WorkloadBuilder::new([evenhand_model::Resource::new("cpu", "")]);
        builder.push(&evenhand_model::Task { user: "a", amounts: &[1], ..Default::default() });
        crate::store::write(&path, &builder.finish().unwrap()).unwrap();
        let error = read_task_results(&path).unwrap_err().to_string();
        assert!(error.contains("no column \"row\""), "{error}");
        std::fs::write(&path, b"PAR1 and no more").unwrap();
        assert!(matches!(read_task_results(&path), Err(StoreError::Parquet { .. })));
    }
}
