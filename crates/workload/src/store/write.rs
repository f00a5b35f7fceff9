//! Writes workloads to Parquet.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use evenhand_model::files::replace_file;
use evenhand_model::{Detail, LargeWorkload, NO_ID, NO_NODES, NO_TIME, Workload};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;

use super::encode::{Column, GROUP_ROWS, GroupWriter, Packing, byte_arrays, write_file};
use super::{FORMAT, StoreError, key, name};

/// Stores a workload as Parquet: `submit_ns`, `duration_ns`, `user`, a decimal column for each
/// resource under its name, and those of `start_ns`, `eligible_ns`, `requested_ns`, `account`, `queue`, `count`,
/// `nodes` and of every [`Detail`] that the workload has. If rows requested other amounts than they hold, each resource has a
/// column of those too, with nulls for all other rows.
///
/// # Errors
/// Returns an error if a resource has the name of another column, or if the file cannot be written; an older file is
/// unchanged then.
pub fn write(path: &Path, w: &Workload) -> Result<(), StoreError> {
    check_names(path, w)?;
    replace_file(path, |file| {
        let columns = columns(w)?;
        write_file(io::BufWriter::new(file), &columns, w.len(), compression()?, metadata(w))?;
        Ok(())
    })
    .map_err(|e: WriteError| e.at(path))
}

/// Stores a workload whose rows are on disk, with at most so many rows in memory, and calls `each` with every part of it.
/// With a million rows or more the file is the same as that of [`write()`].
///
/// # Errors
/// Returns an error as [`write()`] does, or if the temporary file with the rows cannot be read.
pub fn write_large(
    path: &Path,
    large: &mut LargeWorkload,
    rows_in_memory: usize,
    mut each: impl FnMut(&Workload),
) -> Result<(), StoreError> {
    let rows = rows_in_memory.clamp(1, GROUP_ROWS);
    let mut clash = None;
    let written = replace_file(path, |file| {
        let mut file = Some(io::BufWriter::new(file));
        let mut groups = None;
        while let Some(w) = large.next_chunk(rows)? {
            let columns = columns(w)?;
            if let Some(file) = file.take() {
                if let Err(error) = check_names(path, w) {
                    clash = Some(error);
                    return Err(WriteError::Io(io::ErrorKind::InvalidInput.into()));
                }
                groups = Some(GroupWriter::new(file, &columns, compression()?, metadata(w))?);
            }
            each(w);
            if let Some(groups) = &mut groups {
                groups.write(&columns, w.len())?;
            }
        }
        groups.map_or(Ok(()), |groups| Ok(groups.close()?))
    });
    match clash {
        Some(error) => Err(error),
        None => written.map_err(|e: WriteError| e.at(path)),
    }
}

fn compression() -> Result<Compression, ParquetError> {
    Ok(Compression::ZSTD(ZstdLevel::try_new(3)?))
}

fn check_names(path: &Path, w: &Workload) -> Result<(), StoreError> {
    let exists = |name: &str| w.resources().iter().any(|other| other.name == name);
    for (i, r) in w.resources().iter().enumerate() {
        let is_other = !name::is_resource(&r.name, FORMAT) || name::requested_of(&r.name, FORMAT, exists).is_some();
        if is_other || w.resources()[..i].iter().any(|other| other.name == r.name) {
            return Err(StoreError::Name { path: path.into(), name: r.name.clone() });
        }
    }
    Ok(())
}

fn columns(w: &Workload) -> Result<Vec<Column<'_>>, ParquetError> {
    let c = w.columns();
    // Times are at most 2^62 and amounts have at most 18 digits: both fit i64.
    let mut columns = vec![Column::int64(name::SUBMIT, Packing::Delta, |row| c.submit[row].nanos() as i64)?];
    if let Some(start) = &c.start {
        columns.push(Column::nullable_int64(name::START, |row| known(start[row]))?);
    }
    if let Some(eligible) = &c.eligible {
        columns.push(Column::nullable_int64(name::ELIGIBLE, |row| known(eligible[row]))?);
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
    for (detail, ids) in Detail::ALL.into_iter().filter_map(|detail| Some((detail, c.details[detail].as_ref()?))) {
        let id = |row: usize| Some(ids[row]).filter(|&id| id != NO_ID).map(|id| id as usize);
        columns.push(Column::nullable_text(detail.name(), byte_arrays(w.details(detail)), id)?);
    }
    for (i, r) in w.resources().iter().enumerate() {
        columns.push(Column::decimal(&r.name, r.decimals, move |row| w.amounts(row)[i].0 as i64)?);
    }
    if c.requested_demand.is_some() {
        for (i, (r, decimals)) in w.resources().iter().zip(w.requested_decimals()).enumerate() {
            let title = format!("{}{}", r.name, name::REQUESTED_AMOUNTS);
            let amount = move |row: usize| w.requested_amounts(row).map(|amounts| amounts[i].0 as i64);
            columns.push(Column::nullable_decimal(&title, *decimals, amount)?);
        }
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
