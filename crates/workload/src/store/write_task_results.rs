//! Writes the results of all tasks of a run as Parquet.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::Path;

use evenhand_model::files::replace_file;
use parquet::basic::Compression;
use parquet::data_type::ByteArray;

use super::encode::{Column, Packing, byte_arrays, write_file};
use super::write::WriteError;
use super::{StoreError, TaskResults, TaskState, name};

/// Writes results as Parquet: `row`, `user`, `submit_ns`, `start_ns` (null: not started),
/// `duration_ns`, `wait_ns` (null: not started), `state`, and `started_by` where it is known.
///
/// The encoding favours speed over size: a study writes one such file per run.
///
/// # Errors
/// Returns an error if the file cannot be written; an older file is unchanged then.
///
/// # Panics
/// Panics if the columns differ in length or refer to a user who does not exist.
pub fn write_task_results(path: &Path, t: &TaskResults<'_>) -> Result<(), StoreError> {
    let rows = t.len();
    replace_file(path, |file| {
        let states = TaskState::ALL.map(|s| ByteArray::from(s.name())).to_vec();
        let names: BTreeSet<&str> = t.started_by.into_iter().flatten().copied().collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut columns = vec![
            Column::int64("row", Packing::Delta, |i| i64::from(t.row[i]))?,
            Column::text(name::USER, byte_arrays(t.users), |i| t.user[i].index())?,
            Column::int64(name::SUBMIT, Packing::Delta, |i| t.submit[i].nanos() as i64)?,
            Column::nullable_int64(name::START, |i| t.start(i).map(|ns| ns as i64))?,
            Column::int64(name::DURATION, Packing::Plain, |i| t.duration[i].nanos() as i64)?,
            Column::nullable_int64("wait_ns", |i| t.wait(i).map(|ns| ns as i64))?,
            Column::text("state", states, |i| t.state[i] as usize)?,
        ];
        if let Some(by) = t.started_by {
            let texts = names.iter().map(|name| ByteArray::from(*name)).collect();
            columns.push(Column::text("started_by", texts, |i| names.partition_point(|name| *name < by[i]))?);
        }
        write_file(BufWriter::new(file), &columns, rows, Compression::SNAPPY, Vec::new())?;
        Ok(())
    })
    .map_err(|e: WriteError| e.at(path))
}
