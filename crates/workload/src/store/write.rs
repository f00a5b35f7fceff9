//! Writes workloads to Parquet.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use evenhand_model::files::replace_file;
use evenhand_model::{NO_ID, NO_NODES, NO_TIME, Workload};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;

use super::encode::{Column, Packing, byte_arrays, write_file};
use super::{FORMAT, StoreError, key, name};

/// Stores a workload as Parquet: `submit_ns`, `duration_ns`, `user`, a decimal column for each
/// resource under its name, and those of `start_ns`, `requested_ns`, `account`, `queue`, `count`,
/// `nodes` that the workload has.
///
/// # Errors
/// Returns an error if a resource has the name of another column, or if the file cannot be written; an older file is
/// unchanged then.
pub fn write(path: &Path, w: &Workload) -> Result<(), StoreError> {
    for (i, r) in w.resources().iter().enumerate() {
        if name::ALL.contains(&r.name.as_str()) || w.resources()[..i].iter().any(|other| other.name == r.name) {
            return Err(StoreError::Name { path: path.into(), name: r.name.clone() });
        }
    }
    replace_file(path, |file| {
        let columns = columns(w)?;
        let level = ZstdLevel::try_new(3)?;
        write_file(io::BufWriter::new(file), &columns, w.len(), Compression::ZSTD(level), metadata(w))?;
        Ok(())
    })
    .map_err(|e: WriteError| e.at(path))
}

fn columns(w: &Workload) -> Result<Vec<Column<'_>>, ParquetError> {
    let c = w.columns();
    // Times are at most 2^62 and amounts have at most 18 digits: both fit i64.
    let mut columns = vec![Column::int64(name::SUBMIT, Packing::Delta, |row| c.submit[row].nanos() as i64)?];
    if let Some(start) = &c.start {
        columns.push(Column::nullable_int64(name::START, |row| known(start[row]))?);
    }
    columns.push(Column::int64(name::DURATION, Packing::Plain, |row| c.duration[row].nanos() as i64)?);
    if let Some(requested) = &c.requested {
        columns.push(Column::nullable_int64(name::REQUESTED, |row| known(requested[row]))?);
    }
    columns.push(Column::text(name::USER, byte_arrays(w.users()), |row| c.user[row].index())?);
    for (title, names, ids) in [(name::ACCOUNT, w.accounts(), &c.account), (name::QUEUE, w.queues(), &c.queue)] {
        if let Some(ids) = ids {
            let id = |row: usize| Some(ids[row]).filter(|&id| id != NO_ID).map(|id| id as usize);
            columns.push(Column::nullable_text(title, byte_arrays(names), id)?);
        }
    }
    if let Some(counts) = &c.count {
        columns.push(Column::uint32(name::COUNT, |row| counts[row])?);
    }
    if let Some(nodes) = &c.nodes {
        let known = |row: usize| Some(i64::from(nodes[row])).filter(|n| *n != i64::from(NO_NODES));
        columns.push(Column::nullable_int64(name::NODES, known)?);
    }
    for (i, r) in w.resources().iter().enumerate() {
        columns.push(Column::decimal(&r.name, r.decimals, move |row| w.amounts(row)[i].0 as i64)?);
    }
    Ok(columns)
}

fn known(ns: u64) -> Option<i64> {
    Some(ns).filter(|&ns| ns != NO_TIME).map(|ns| ns as i64)
}

fn metadata(w: &Workload) -> Vec<KeyValue> {
    let units: BTreeMap<&str, &str> = w.resources().iter().map(|r| (r.name.as_str(), r.unit.as_str())).collect();
    let json = |value: serde_json::Result<String>| value.expect("texts can be encoded as JSON");
    vec![
        KeyValue::new(key::VERSION.into(), env!("CARGO_PKG_VERSION").to_string()),
        KeyValue::new(key::FORMAT.into(), FORMAT.to_string()),
        KeyValue::new(key::UNITS.into(), json(serde_json::to_string(&units))),
        KeyValue::new(key::HEADER.into(), json(serde_json::to_string(w.header()))),
    ]
}

/// An error whose file is not yet known.
pub(super) enum WriteError {
    Io(io::Error),
    Parquet(ParquetError),
}

impl WriteError {
    pub(super) fn at(self, path: &Path) -> StoreError {
        let source = match self {
            WriteError::Io(e) => e,
            // The encoder fails only if its output does.
            WriteError::Parquet(ParquetError::External(e)) => match e.downcast::<io::Error>() {
                Ok(e) => *e,
                Err(e) => io::Error::other(e),
            },
            WriteError::Parquet(e) => io::Error::other(e),
        };
        StoreError::Io { path: path.into(), source }
    }
}

impl From<io::Error> for WriteError {
    fn from(e: io::Error) -> WriteError {
        WriteError::Io(e)
    }
}

impl From<ParquetError> for WriteError {
    fn from(e: ParquetError) -> WriteError {
        WriteError::Parquet(e)
    }
}
