//! Reads workloads from Parquet, also from files that were edited with other tools.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use evenhand_model::{
    Batch, Columns, DemandId, Detail, Details, NO_ID, NO_NODES, NO_TIME, Nano, Resource, Span, Time, UserId, Workload,
};
use evenhand_model::{Names, WorkloadBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use rayon::prelude::*;

use self::column::{Column, Number};
use self::id_cache::{DemandIds, NameIds};
use super::{FORMAT, StoreError, key, name};

pub(super) mod column;
mod id_cache;

const A_TIME: &str = "whole nanoseconds from 0 to 4611686018427387904 (2^62)";
const A_REQUESTED_AMOUNT: &str = "an amount of at least 0 with at most nine decimals, or null";
const AN_AMOUNT: &str = "an amount of at least 0 with at most nine decimals";
const A_COUNT: &str = "a count from 1 to 4294967295";
const NODES: &str = "a number of nodes from 1 to 4294967295, or null";

/// Returns the number of rows of a stored workload. Reads the end of the file only.
///
/// # Errors
/// Returns an error if the file cannot be read or is not Parquet.
pub fn rows(path: &Path) -> Result<u64, StoreError> {
    let file = File::open(path).map_err(|source| StoreError::Io { path: path.into(), source })?;
    let damaged = |e: ParquetError| StoreError::Parquet { path: path.into(), reason: e.to_string() };
    let metadata = catch_panics(path, || ParquetMetaDataReader::new().parse_and_finish(&file).map_err(damaged))?;
    Ok(u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0))
}

/// Reads a stored workload.
///
/// Rows need not be sorted. Integers can have 32 bits or be decimals of any width, and numbers can be floating point if
/// they are exact, because pandas, polars and DuckDB write such columns after an edit.
///
/// # Errors
/// Returns an error if the file cannot be read, is not Parquet, lacks a column, or holds an invalid value; the error
/// names file, column and row.
pub fn read(path: &Path) -> Result<Workload, StoreError> {
    let io = |source| StoreError::Io { path: path.into(), source };
    let damaged = |e: ParquetError| StoreError::Parquet { path: path.into(), reason: e.to_string() };
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let metadata = catch_panics(path, || ParquetMetaDataReader::new().parse_and_finish(&file).map_err(damaged))?;
    let layout = Layout::of(path, bytes, &metadata)?;
    layout.check_format()?;
    let mut builder = WorkloadBuilder::new(layout.resources()?);
    for (key, value) in layout.header()? {
        builder.add_header(&key, &value);
    }
    let mut first_row = 0;
    let groups: Vec<(usize, usize, usize)> = (0..metadata.num_row_groups())
        .map(|g| {
            let rows = usize::try_from(metadata.row_group(g).num_rows()).unwrap_or(0);
            first_row += rows;
            (g, first_row - rows, rows)
        })
        .collect();
    // A few groups at a time, since their rows are held twice.
    for some in groups.chunks(2 * rayon::current_num_threads()) {
        let batches: Vec<Result<Batch, StoreError>> = some
            .par_iter()
            .map(|&(group, first_row, rows)| catch_panics(path, || layout.batch(group, first_row, rows)))
            .collect();
        for batch in batches {
            builder.append_batch(batch?);
        }
    }
    builder.finish().map_err(|source| StoreError::Workload { path: path.into(), source })
}

/// Runs a decoder and converts panics to errors: some assertions of the parquet crate fail on damaged files.
pub(super) fn catch_panics<T>(path: &Path, decode: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(StoreError::Parquet { path: path.into(), reason: format!("its content is inconsistent: {text}") })
    })
}

/// Returns an entry of the metadata of a file.
fn stored<T: serde::de::DeserializeOwned + Default>(
    path: &Path,
    metadata: &ParquetMetaData,
    key: &'static str,
) -> Result<T, StoreError> {
    let bad = |e: serde_json::Error| StoreError::Metadata { path: path.into(), key, reason: e.to_string() };
    entry(metadata, key).map_or(Ok(T::default()), |t| serde_json::from_str(t).map_err(bad))
}

/// The columns of a file by their meaning.
struct Layout<'a> {
    path: &'a Path,
    bytes: u64,
    metadata: &'a ParquetMetaData,
    submit: usize,
    duration: usize,
    user: usize,
    optional: BTreeMap<&'static str, usize>,
    resources: Vec<usize>,
    /// The columns of what tasks requested of each resource, where there is one.
    requested: Vec<Option<usize>>,
}

/// The value of a key of a file's metadata.
fn entry<'m>(metadata: &'m ParquetMetaData, key: &str) -> Option<&'m str> {
    let entries = metadata.file_metadata().key_value_metadata();
    entries.into_iter().flatten().find(|e| e.key == key).and_then(|e| e.value.as_deref())
}

/// The format of a file. In one of format 1 the program that wrote it names itself alone. In one without either another program,
/// which keeps no metadata, wrote columns that have the names of today.
fn format_of(path: &Path, metadata: &ParquetMetaData) -> Result<u32, StoreError> {
    let without = if entry(metadata, key::VERSION).is_some() { 1 } else { FORMAT };
    Ok(stored::<Option<u32>>(path, metadata, key::FORMAT)?.unwrap_or(without))
}

impl<'a> Layout<'a> {
    fn of(path: &'a Path, bytes: u64, metadata: &'a ParquetMetaData) -> Result<Layout<'a>, StoreError> {
        let columns = metadata.file_metadata().schema_descr().columns();
        let names: Vec<String> = columns.iter().map(|c| c.path().string()).collect();
        let format = format_of(path, metadata)?;
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|n| !seen.insert(n.as_str())) {
            return Err(StoreError::Name { path: path.into(), name: twice.clone() });
        }
        let position = |name: &str| names.iter().position(|n| n == name);
        let needed = |name: &str, expected| {
            position(name).ok_or_else(|| StoreError::MissingColumn { path: path.into(), column: name.into(), expected })
        };
        let requested_of = |i: usize| name::requested_of(&names[i], format, |name| position(name).is_some());
        // pandas stores its row labels as one more column.
        let resources: Vec<usize> = (0..names.len())
            .filter(|&i| name::is_resource(&names[i], format) && !names[i].starts_with("__index_level_"))
            .filter(|&i| requested_of(i).is_none())
            .collect();
        let requested_column = |of: usize| (0..names.len()).find(|&i| requested_of(i) == Some(names[of].as_str()));
        let layout = Layout {
            path,
            bytes,
            metadata,
            submit: needed(name::SUBMIT, "submission times in nanoseconds")?,
            duration: needed(name::DURATION, "run times in nanoseconds")?,
            user: needed(name::USER, "users' names")?,
            optional: [name::START, name::REQUESTED, name::ACCOUNT, name::QUEUE, name::COUNT, name::NODES]
                .into_iter()
                .chain([name::ELIGIBLE])
                .chain(Detail::ALL.map(Detail::name))
                .filter_map(|n| Some((n, position(n)?)))
                .filter(|(n, _)| !name::is_resource(n, format))
                .collect(),
            requested: resources.iter().map(|&i| requested_column(i)).collect(),
            resources,
        };
        if layout.resources.is_empty() {
            let expected = "at least one column of numbers, named by its resource";
            return Err(StoreError::MissingColumn { path: path.into(), column: "cpu".into(), expected });
        }
        Ok(layout)
    }

    fn stored<T: serde::de::DeserializeOwned + Default>(&self, key: &'static str) -> Result<T, StoreError> {
        stored(self.path, self.metadata, key)
    }

    /// Refuses a file of a later format than this program knows.
    fn check_format(&self) -> Result<(), StoreError> {
        let format: Option<u32> = self.stored(key::FORMAT)?;
        match format {
            Some(found) if found > FORMAT => Err(StoreError::Format { path: self.path.into(), found, known: FORMAT }),
            _ => Ok(()),
        }
    }

    fn header(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.stored(key::HEADER)
    }

    fn resources(&self) -> Result<Vec<Resource>, StoreError> {
        let mut units: BTreeMap<String, String> = self.stored(key::UNITS)?;
        let columns = self.metadata.file_metadata().schema_descr().columns();
        Ok(self
            .resources
            .iter()
            .map(|&i| {
                let name = columns[i].path().string();
                let unit = units.remove(&name).unwrap_or_default();
                Resource::new(name, unit)
            })
            .collect())
    }

    /// Reads one row group. `first_row` is the index of its first row in the file.
    fn batch(&self, group: usize, first_row: usize, rows: usize) -> Result<Batch, StoreError> {
        let open = |column: usize| Column::open(self.path, self.bytes, self.metadata, group, column, first_row);
        let optional = |name| self.optional.get(name).map(|&i| open(i)).transpose();
        let (users, user) = names(open(self.user)?, rows, false)?;
        let (accounts, account) = optional_names(optional(name::ACCOUNT)?, rows)?;
        let (queues, queue) = optional_names(optional(name::QUEUE)?, rows)?;
        let (mut details, mut detail_ids) = (Details::<Vec<String>>::default(), Details::default());
        for detail in Detail::ALL {
            (details[detail], detail_ids[detail]) = optional_names(optional(detail.name())?, rows)?;
        }
        let (demands, demand, requested_demand) = self.demands(open, rows)?;
        let time = |column| times(column, rows, true);
        let columns = Columns {
            submit: times(open(self.submit)?, rows, false)?.into_iter().map(Time::from_nanos).collect(),
            start: optional(name::START)?.map(time).transpose()?,
            eligible: optional(name::ELIGIBLE)?.map(time).transpose()?,
            duration: times(open(self.duration)?, rows, false)?.into_iter().map(Span::from_nanos).collect(),
            requested: optional(name::REQUESTED)?.map(time).transpose()?,
            user: user.into_iter().map(UserId).collect(),
            account,
            queue,
            demand,
            requested_demand,
            count: optional(name::COUNT)?.map(|c| counts(c, rows)).transpose()?,
            nodes: optional(name::NODES)?.map(|c| nodes(c, rows)).transpose()?,
            details: detail_ids,
        };
        Ok(Batch { users, accounts, queues, details, demands, columns })
    }

    /// Reads the vectors of amounts, which of them each row holds, and which it requested if that is another.
    fn demands(&self, open: impl Fn(usize) -> Result<Column, StoreError>, rows: usize) -> Result<Demands, StoreError> {
        let columns = self.resources.iter().map(|&i| amounts(open(i)?, rows)).collect::<Result<Vec<_>, _>>()?;
        let requested = |i: &Option<usize>| i.map(|i| requested_amounts(open(i)?, rows)).transpose();
        let requested = self.requested.iter().map(requested).collect::<Result<Vec<_>, _>>()?;
        let mut ids = DemandIds::new(columns.len());
        let mut vector = vec![0; columns.len()];
        let demand: Vec<DemandId> = (0..rows)
            .map(|row| {
                vector.iter_mut().zip(&columns).for_each(|(v, c)| *v = c[row]);
                ids.id(&vector)
            })
            .collect();
        let requested_demand = requested.iter().any(Option::is_some).then(|| {
            let of_row = |row: usize| {
                let mut requested = requested.iter().map(|column| column.as_ref().and_then(|column| column[row]));
                if requested.clone().all(|amount| amount.is_none()) {
                    return DemandId::NONE;
                }
                let amounts = vector.iter_mut().zip(&columns);
                amounts.for_each(|(v, held)| *v = requested.next().flatten().unwrap_or(held[row]));
                Some(ids.id(&vector)).filter(|id| *id != demand[row]).unwrap_or(DemandId::NONE)
            };
            (0..rows).map(of_row).collect()
        });
        Ok((ids.into_rows(), demand, requested_demand))
    }
}

/// Distinct vectors, those that rows hold, and those that rows requested where these differ.
type Demands = (Vec<Nano>, Vec<DemandId>, Option<Vec<DemandId>>);

/// Reads times in nanoseconds. If the column is `nullable`, null becomes [`NO_TIME`].
pub(super) fn times(column: Column, rows: usize, nullable: bool) -> Result<Vec<u64>, StoreError> {
    const MAX: i128 = Time::MAX.nanos() as i128;
    let mut times = Vec::with_capacity(rows);
    column.numbers(A_TIME, &mut |number| {
        times.push(match number {
            Number::Null if nullable => NO_TIME,
            Number::Whole(ns @ 0..=MAX) => ns as u64,
            // pandas converts integers with nulls to floating point.
            Number::Float(ns) if ns >= 0.0 && ns <= MAX as f64 && ns.fract() == 0.0 => ns as u64,
            Number::Float(ns) if nullable && ns.is_nan() => NO_TIME,
            _ => return false,
        });
        true
    })?;
    column.of_length(times, rows)
}

fn counts(column: Column, rows: usize) -> Result<Vec<u32>, StoreError> {
    const MAX: i128 = u32::MAX as i128;
    let mut counts = Vec::with_capacity(rows);
    column.numbers(A_COUNT, &mut |number| {
        counts.push(match number {
            Number::Whole(n @ 1..=MAX) => n as u32,
            Number::Float(n) if n >= 1.0 && n <= MAX as f64 && n.fract() == 0.0 => n as u32,
            _ => return false,
        });
        true
    })?;
    column.of_length(counts, rows)
}

/// Reads numbers of nodes; null becomes [`NO_NODES`].
fn nodes(column: Column, rows: usize) -> Result<Vec<u32>, StoreError> {
    const MAX: i128 = u32::MAX as i128;
    let mut nodes = Vec::with_capacity(rows);
    column.numbers(NODES, &mut |number| {
        nodes.push(match number {
            Number::Null => NO_NODES,
            Number::Whole(n @ 1..=MAX) => n as u32,
            Number::Float(n) if n.is_nan() => NO_NODES,
            Number::Float(n) if n >= 1.0 && n <= MAX as f64 && n.fract() == 0.0 => n as u32,
            _ => return false,
        });
        true
    })?;
    column.of_length(nodes, rows)
}

/// Reads amounts in billionths.
fn amounts(column: Column, rows: usize) -> Result<Vec<Nano>, StoreError> {
    let scale = column.scale();
    let mut amounts = Vec::with_capacity(rows);
    column.numbers(AN_AMOUNT, &mut |number| {
        let nano = amount(number, scale);
        amounts.extend(nano);
        nano.is_some()
    })?;
    column.of_length(amounts, rows)
}

/// Reads requested amounts in billionths, as far as they are stated.
fn requested_amounts(column: Column, rows: usize) -> Result<Vec<Option<Nano>>, StoreError> {
    let scale = column.scale();
    let mut amounts = Vec::with_capacity(rows);
    column.numbers(A_REQUESTED_AMOUNT, &mut |number| {
        let is_null = matches!(number, Number::Null) || matches!(number, Number::Float(v) if v.is_nan());
        let nano = amount(number, scale);
        amounts.push(nano);
        is_null || nano.is_some()
    })?;
    column.of_length(amounts, rows)
}

fn amount(number: Number, scale: i32) -> Option<Nano> {
    match number {
        Number::Whole(v) if v >= 0 => billionths(v.unsigned_abs(), scale),
        Number::Float(v) => billionths_of_float(v),
        _ => None,
    }
}

/// Converts `digits` x 10^-`scale` to billionths, if that is whole.
fn billionths(digits: u128, scale: i32) -> Option<Nano> {
    if scale <= 9 {
        return digits.checked_mul(10u128.checked_pow((9 - scale).unsigned_abs())?);
    }
    let divisor = 10u128.checked_pow((scale - 9).unsigned_abs())?;
    digits.is_multiple_of(divisor).then(|| digits / divisor)
}

/// Returns the billionths whose nearest `f64` is `v`, if there are any.
fn billionths_of_float(v: f64) -> Option<Nano> {
    if !(0.0..9.2e18).contains(&v) {
        return None;
    }
    if v.fract() == 0.0 {
        return Some(v as u128 * 1_000_000_000);
    }
    let nano = (v * 1e9).round();
    // Above 2^53 the check below is not conclusive.
    (nano < 9e15 && nano / 1e9 == v).then_some(nano as u128)
}

pub(super) fn names(column: Column, rows: usize, nullable: bool) -> Result<(Vec<String>, Vec<u32>), StoreError> {
    let mut ids = NameIds::default();
    let mut column_ids = Vec::with_capacity(rows);
    column.texts(&mut |text| {
        column_ids.push(match text {
            None if nullable => NO_ID,
            None => return false,
            Some(text) => match ids.id(text) {
                Some(id) => id,
                None => return false,
            },
        });
        true
    })?;
    Ok((Names::into_list(ids.into_names()), column.of_length(column_ids, rows)?))
}

type OptionalNames = (Vec<String>, Option<Vec<u32>>);

fn optional_names(column: Option<Column>, rows: usize) -> Result<OptionalNames, StoreError> {
    let Some(column) = column else { return Ok((Vec::new(), None)) };
    let (list, ids) = names(column, rows, true)?;
    Ok((list, Some(ids)))
}
