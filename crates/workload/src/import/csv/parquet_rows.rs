//! Reads a table from Parquet: columns of numbers, texts and times, flat or in groups (`resource_request.cpus`).

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

use super::RowReader;
use crate::byte_source::{Meter, Shard};
use crate::import::lines::malformed;
use crate::import::{ImportError, ImportOptions};

/// Returns the names of the columns of a file.
pub(super) fn column_names(file: &str, data: &[u8]) -> Result<Vec<String>, ImportError> {
    let reader = catch_unwind(|| SerializedFileReader::new(Bytes::copy_from_slice(data)));
    let reader = reader.unwrap_or_else(|_| Err(ParquetError::General(INCONSISTENT.into())));
    Ok(names(&reader.map_err(|e| damaged(file, &e.to_string()))?))
}

/// The reason for a panic of the decoder.
const INCONSISTENT: &str = "its content is inconsistent";

fn names(reader: &SerializedFileReader<Bytes>) -> Vec<String> {
    reader.metadata().file_metadata().schema().get_fields().iter().flat_map(|field| leaves(field)).collect()
}

/// Returns the names of the values of a column: its own, or those of a group's columns after a dot. A list has one name
/// and no value.
fn leaves(field: &Type) -> Vec<String> {
    match is_group(field) {
        true => field.get_fields().iter().map(|f| format!("{}.{}", field.name(), f.name())).collect(),
        false => vec![field.name().to_string()],
    }
}

fn is_group(field: &Type) -> bool {
    let info = field.get_basic_info();
    let plain = info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE;
    field.is_group() && plain && info.repetition() != Repetition::REPEATED
}

/// Reads the rows. Returns the name of a missing column and the columns that there are.
pub(super) fn read(
    shard: Shard,
    reader: &mut impl RowReader,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Option<(String, String)>, ImportError> {
    let file = shard.name.clone();
    let data = Bytes::from(shard.open()?.rest(meter)?);
    // Some assertions of the parquet crate fail on damaged files.
    let result = catch_unwind(AssertUnwindSafe(|| rows(&file, data, reader, options)));
    result.unwrap_or_else(|_| Err(damaged(&file, INCONSISTENT)))
}

fn damaged(file: &str, reason: &str) -> ImportError {
    ImportError::Shape {
        file: file.to_string(),
        found: format!("a damaged Parquet file ({reason})"),
        expected: "a complete Parquet file".to_string(),
        remedy: "fetch or write it again".to_string(),
    }
}

fn rows(
    file: &str,
    data: Bytes,
    reader: &mut impl RowReader,
    options: &ImportOptions,
) -> Result<Option<(String, String)>, ImportError> {
    let failed = |e: ParquetError| damaged(file, &e.to_string());
    let parquet = SerializedFileReader::new(data).map_err(failed)?;
    let all = names(&parquet);
    let wanted = reader.names();
    // Only the columns that are read are decoded.
    let schema = parquet.metadata().file_metadata().schema();
    let is_read = |field: &&Arc<Type>| leaves(field).iter().any(|name| wanted.contains(name));
    let fields: Vec<Arc<Type>> = schema.get_fields().iter().filter(is_read).cloned().collect();
    let header: Vec<String> = fields.iter().flat_map(|field| leaves(field)).collect();
    if let Err(column) = reader.locate(&header) {
        return Ok(Some((column, all.join(","))));
    }
    let types: Vec<(bool, usize)> = fields.iter().map(|f| (is_nanoseconds(f), leaves(f).len())).collect();
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build().map_err(failed)?;
    for (n, row) in parquet.get_row_iter(Some(projection)).map_err(failed)?.enumerate() {
        let row = row.map_err(failed)?;
        reader.tally().rows_read += 1;
        let mut values = Vec::with_capacity(header.len());
        for ((_, field), (nanos, leaves)) in row.get_column_iter().zip(&types) {
            match field {
                Field::Group(group) => values.extend(group.get_column_iter().map(|(_, f)| (0, text(f, false)))),
                // A group of which nothing is known.
                Field::Null => values.extend(std::iter::repeat_n((0, Cow::Borrowed(&b""[..])), *leaves)),
                field => values.push((0, text(field, *nanos))),
            }
        }
        if let Err(error) = reader.row(values, 0) {
            if !options.lenient {
                return Err(error.located(file, n as u64 + 1).into());
            }
            malformed(reader.tally(), &error);
        }
    }
    Ok(None)
}

fn is_nanoseconds(field: &Type) -> bool {
    let logical = field.is_primitive().then(|| field.get_basic_info().logical_type_ref().cloned()).flatten();
    matches!(logical, Some(LogicalType::Timestamp(time)) if matches!(time.unit, TimeUnit::NANOS))
}

/// Returns a value as a table of text would hold it: times in seconds since 1970.
fn text(field: &Field, nanoseconds: bool) -> Cow<'_, [u8]> {
    let seconds = |value: i64, per_second: i64, digits: usize| {
        let (whole, part) = (value.div_euclid(per_second), value.rem_euclid(per_second));
        Cow::Owned(format!("{whole}.{part:0digits$}").into_bytes())
    };
    match field {
        Field::Null | Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => Cow::Borrowed(b""),
        Field::Str(text) => Cow::Borrowed(text.as_bytes()),
        Field::Bytes(bytes) => Cow::Borrowed(bytes.data()),
        Field::Long(value) if nanoseconds => seconds(*value, 1_000_000_000, 9),
        Field::TimestampMillis(value) => seconds(*value, 1_000, 3),
        Field::TimestampMicros(value) => seconds(*value, 1_000_000, 6),
        Field::Date(days) => Cow::Owned((i64::from(*days) * 86_400).to_string().into_bytes()),
        // pandas stores whole numbers with gaps as floating point.
        Field::Float(value) => Cow::Owned(value.to_string().into_bytes()),
        Field::Double(value) => Cow::Owned(value.to_string().into_bytes()),
        other => Cow::Owned(other.to_string().into_bytes()),
    }
}
