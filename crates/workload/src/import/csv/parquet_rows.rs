//! Reads a table from Parquet: flat columns of numbers, texts and times.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

use super::{Table, TableReader};
use crate::byte_source::{Meter, Shard};
use crate::import::lines::malformed;
use crate::import::{ImportError, ImportOptions};

/// Returns the names of the columns of a file; `None` if it is damaged.
pub(super) fn column_names(data: &[u8]) -> Option<Vec<String>> {
    let reader = catch_unwind(|| SerializedFileReader::new(Bytes::copy_from_slice(data))).ok()?.ok()?;
    Some(names(&reader))
}

fn names(reader: &SerializedFileReader<Bytes>) -> Vec<String> {
    let schema = reader.metadata().file_metadata().schema();
    schema.get_fields().iter().map(|field| field.name().to_string()).collect()
}

/// Reads the rows. Returns the name of a missing column and the columns that there are.
pub(super) fn read(
    shard: Shard,
    reader: &mut TableReader<'_>,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Option<(String, String)>, ImportError> {
    let file = shard.name.clone();
    let data = Bytes::from(shard.open()?.rest(meter)?);
    // Some assertions of the parquet crate fail on damaged files.
    let result = catch_unwind(AssertUnwindSafe(|| rows(&file, data, reader, options)));
    result.unwrap_or_else(|_| Err(damaged(&file, "its content is inconsistent")))
}

fn damaged(file: &str, reason: &str) -> ImportError {
    ImportError::Shape {
        file: file.to_string(),
        found: format!("a damaged Parquet file ({reason})"),
        expected: "a complete Parquet file with flat columns".to_string(),
        remedy: "fetch or write it again".to_string(),
    }
}

fn rows(
    file: &str,
    data: Bytes,
    reader: &mut TableReader<'_>,
    options: &ImportOptions,
) -> Result<Option<(String, String)>, ImportError> {
    let failed = |e: ParquetError| damaged(file, &e.to_string());
    let parquet = SerializedFileReader::new(data).map_err(failed)?;
    let all = names(&parquet);
    let wanted: Vec<&str> = reader.columns.all_names().collect();
    // Only the columns that are read are decoded.
    let schema = parquet.metadata().file_metadata().schema();
    let fields: Vec<Arc<Type>> =
        schema.get_fields().iter().filter(|field| wanted.contains(&field.name())).cloned().collect();
    let header: Vec<String> = fields.iter().map(|field| field.name().to_string()).collect();
    let table = match Table::new(reader.columns, &header) {
        Ok(table) => table,
        Err(column) => return Ok(Some((column, all.join(",")))),
    };
    let nanos: Vec<bool> = fields.iter().map(|field| is_nanoseconds(field)).collect();
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build().map_err(failed)?;
    for (n, row) in parquet.get_row_iter(Some(projection)).map_err(failed)?.enumerate() {
        let row = row.map_err(failed)?;
        reader.tally.rows_read += 1;
        let columns = row.get_column_iter().zip(&nanos).map(|((_, field), nanos)| (0, text(field, *nanos)));
        if let Err(error) = reader.row(&table, columns.collect(), 0) {
            if !options.lenient {
                return Err(error.located(file, n as u64 + 1).into());
            }
            malformed(&mut reader.tally, &error);
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
