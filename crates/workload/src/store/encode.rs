//! Encodes columns to Parquet: row groups one after another, the columns of a group in parallel.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};
use rayon::prelude::*;

/// The rows of a row group: enough to compress well, few enough to need little memory.
pub(super) const GROUP_ROWS: usize = 1 << 20;
/// The values passed to the encoder at a time.
const BATCH: usize = 8192;

type WriteRows<'a> = dyn Fn(&mut ColumnWriter<'_>, Range<usize>) -> Result<()> + Sync + 'a;

/// A column: its type, its encoding, and a function that writes any range of its rows.
pub(super) struct Column<'a> {
    name: String,
    schema: Type,
    packing: Packing,
    write: Box<WriteRows<'a>>,
}

/// The encoding of values before compression.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Packing {
    /// Few distinct values.
    Dictionary,
    /// Slowly increasing integers.
    Delta,
    /// Unchanged.
    Plain,
}

impl<'a> Column<'a> {
    fn new(
        name: &str,
        physical: Physical,
        logical: Option<LogicalType>,
        nullable: bool,
        packing: Packing,
        write: Box<WriteRows<'a>>,
    ) -> Result<Column<'a>> {
        let mut schema = Type::primitive_type_builder(name, physical)
            .with_repetition(if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED })
            .with_logical_type(logical.clone());
        if let Some(LogicalType::Decimal(d)) = logical {
            schema = schema.with_scale(d.scale).with_precision(d.precision);
        }
        Ok(Column { name: name.to_string(), schema: schema.build()?, packing, write })
    }

    /// Creates a column of 64-bit integers without nulls.
    pub(super) fn int64(name: &str, packing: Packing, value: impl Fn(usize) -> i64 + Sync + 'a) -> Result<Column<'a>> {
        let write = Box::new(move |w: &mut ColumnWriter<'_>, rows| required::<Int64Type>(w, rows, &value));
        Column::new(name, Physical::INT64, None, false, packing, write)
    }

    /// Creates a column of 64-bit integers with nulls.
    pub(super) fn nullable_int64(name: &str, value: impl Fn(usize) -> Option<i64> + Sync + 'a) -> Result<Column<'a>> {
        let write = Box::new(move |w: &mut ColumnWriter<'_>, rows| nullable::<Int64Type>(w, rows, &value));
        Column::new(name, Physical::INT64, None, true, Packing::Plain, write)
    }

    /// Creates a column of unsigned 32-bit integers without nulls.
    pub(super) fn uint32(name: &str, value: impl Fn(usize) -> u32 + Sync + 'a) -> Result<Column<'a>> {
        let write =
            Box::new(move |w: &mut ColumnWriter<'_>, rows| required::<Int32Type>(w, rows, &|row| value(row) as i32));
        Column::new(name, Physical::INT32, Some(LogicalType::integer(32, false)), false, Packing::Dictionary, write)
    }

    /// Creates a column of exact decimals of at most 18 digits.
    pub(super) fn decimal(name: &str, decimals: u8, value: impl Fn(usize) -> i64 + Sync + 'a) -> Result<Column<'a>> {
        let write = Box::new(move |w: &mut ColumnWriter<'_>, rows| required::<Int64Type>(w, rows, &value));
        let logical = LogicalType::decimal(i32::from(decimals), 18);
        Column::new(name, Physical::INT64, Some(logical), false, Packing::Dictionary, write)
    }

    /// Creates a column of exact decimals of at most 18 digits, with nulls.
    pub(super) fn nullable_decimal(
        name: &str,
        decimals: u8,
        value: impl Fn(usize) -> Option<i64> + Sync + 'a,
    ) -> Result<Column<'a>> {
        let write = Box::new(move |w: &mut ColumnWriter<'_>, rows| nullable::<Int64Type>(w, rows, &value));
        let logical = LogicalType::decimal(i32::from(decimals), 18);
        Column::new(name, Physical::INT64, Some(logical), true, Packing::Dictionary, write)
    }

    /// Creates a column of names by their ids, without nulls. A clone of a `ByteArray` is cheap.
    pub(super) fn text(
        name: &str,
        names: Vec<ByteArray>,
        id: impl Fn(usize) -> usize + Sync + 'a,
    ) -> Result<Column<'a>> {
        let write = Box::new(move |w: &mut ColumnWriter<'_>, rows| {
            required::<ByteArrayType>(w, rows, &|row| names[id(row)].clone())
        });
        Column::new(name, Physical::BYTE_ARRAY, Some(LogicalType::String), false, Packing::Dictionary, write)
    }

    /// Creates a column of names by their ids, with nulls.
    pub(super) fn nullable_text(
        name: &str,
        names: Vec<ByteArray>,
        id: impl Fn(usize) -> Option<usize> + Sync + 'a,
    ) -> Result<Column<'a>> {
        let write = Box::new(move |w: &mut ColumnWriter<'_>, rows| {
            nullable::<ByteArrayType>(w, rows, &|row| id(row).map(|id| names[id].clone()))
        });
        Column::new(name, Physical::BYTE_ARRAY, Some(LogicalType::String), true, Packing::Dictionary, write)
    }
}

/// Converts names to the type of Parquet.
pub(super) fn byte_arrays(names: &[String]) -> Vec<ByteArray> {
    names.iter().map(|n| ByteArray::from(n.as_str())).collect()
}

fn required<T: DataType>(w: &mut ColumnWriter<'_>, rows: Range<usize>, value: &dyn Fn(usize) -> T::T) -> Result<()> {
    let w = typed::<T>(w)?;
    let mut values = Vec::with_capacity(BATCH.min(rows.len()));
    for start in rows.clone().step_by(BATCH) {
        values.clear();
        values.extend((start..rows.end.min(start + BATCH)).map(value));
        w.write_batch(&values, None, None)?;
    }
    Ok(())
}

fn nullable<T: DataType>(
    w: &mut ColumnWriter<'_>,
    rows: Range<usize>,
    value: &dyn Fn(usize) -> Option<T::T>,
) -> Result<()> {
    let w = typed::<T>(w)?;
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for start in rows.clone().step_by(BATCH) {
        values.clear();
        levels.clear();
        for row in start..rows.end.min(start + BATCH) {
            let value = value(row);
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        w.write_batch(&values, Some(&levels), None)?;
    }
    Ok(())
}

fn typed<'w, 'a, T: DataType>(
    w: &'w mut ColumnWriter<'a>,
) -> Result<&'w mut parquet::column::writer::ColumnWriterImpl<'a, T>> {
    T::get_column_writer_mut(w).ok_or_else(|| ParquetError::General("a column writer of another type".into()))
}

/// Writes a whole Parquet file.
pub(super) fn write_file(
    out: impl Write + Send,
    columns: &[Column<'_>],
    rows: usize,
    compression: Compression,
    metadata: Vec<KeyValue>,
) -> Result<()> {
    let mut groups = GroupWriter::new(out, columns, compression, metadata)?;
    groups.write(columns, rows)?;
    groups.close()
}

/// Writes a Parquet file part by part.
pub(super) struct GroupWriter<W: Write + Send> {
    properties: WriterPropertiesPtr,
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> GroupWriter<W> {
    /// Begins a file with these columns; their rows are written with [`write`](GroupWriter::write).
    pub(super) fn new(
        out: W,
        columns: &[Column<'_>],
        compression: Compression,
        metadata: Vec<KeyValue>,
    ) -> Result<GroupWriter<W>> {
        let mut properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            // Minimum and maximum per page cost a comparison per value; those per row group are enough.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("evenhand ", env!("CARGO_PKG_VERSION")).to_string())
            .set_key_value_metadata(Some(metadata));
        for c in columns {
            let path = ColumnPath::from(c.name.as_str());
            properties = match c.packing {
                Packing::Dictionary => properties.set_column_dictionary_enabled(path, true),
                Packing::Delta => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
                Packing::Plain => properties,
            };
        }
        let properties = Arc::new(properties.build());
        let fields: Vec<TypePtr> = columns.iter().map(|c| Arc::new(c.schema.clone())).collect();
        let schema = Type::group_type_builder("workload").with_fields(fields).build()?;
        let file = SerializedFileWriter::new(out, Arc::new(schema), properties.clone())?;
        Ok(GroupWriter { properties, file })
    }

    /// Writes rows as row groups; `columns` has the names and types of those at the beginning.
    pub(super) fn write(&mut self, columns: &[Column<'_>], rows: usize) -> Result<()> {
        for start in (0..rows).step_by(GROUP_ROWS) {
            let range = start..rows.min(start + GROUP_ROWS);
            let descriptions = self.file.schema_descr().columns().to_vec();
            let chunks = columns
                .par_iter()
                .zip(descriptions)
                .map(|(c, description)| encode(c, description, self.properties.clone(), range.clone()))
                .collect::<Result<Vec<_>>>()?;
            let mut group = self.file.next_row_group()?;
            for (chunk, closed) in chunks {
                group.append_column(&chunk, closed)?;
            }
            group.close()?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn close(self) -> Result<()> {
        self.file.close()?;
        Ok(())
    }
}

/// Encodes one column of one row group in memory.
fn encode(
    c: &Column<'_>,
    description: ColumnDescPtr,
    properties: WriterPropertiesPtr,
    rows: Range<usize>,
) -> Result<(Bytes, ColumnCloseResult)> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = get_column_writer(description, properties, Box::new(SerializedPageWriter::new(&mut sink)));
    (c.write)(&mut writer, rows)?;
    let closed = writer.close()?;
    Ok((Bytes::from(sink.into_inner()?), closed))
}
