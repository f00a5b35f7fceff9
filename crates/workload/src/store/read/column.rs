//! Reads one column of one row group.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use super::super::StoreError;

/// The values decoded at a time.
const BATCH: usize = 1 << 14;

/// A value of a column of numbers.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum Number {
    Null,
    /// An integer, or the digits of a decimal.
    Whole(i128),
    Float(f64),
}

/// One column of one row group.
pub(in crate::store) struct Column {
    path: PathBuf,
    description: ColumnDescPtr,
    chunk: ColumnChunkMetaData,
    bytes: Arc<Chunk>,
    first_row: usize,
    rows: usize,
}

impl Column {
    /// Reads the encoded bytes of a column.
    ///
    /// Every column opens the file separately, since readers in several threads must not share a position.
    pub(in crate::store) fn open(
        path: &Path,
        file_bytes: u64,
        metadata: &ParquetMetaData,
        group: usize,
        column: usize,
        first_row: usize,
    ) -> Result<Column, StoreError> {
        let group = metadata.row_group(group);
        let chunk = group.column(column).clone();
        let damaged = |reason: &str| StoreError::Parquet { path: path.into(), reason: reason.into() };
        let offset = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(chunk.compressed_size())) else {
            return Err(damaged("a column at a negative offset"));
        };
        if chunk.data_page_offset() < 0 || offset.checked_add(length).is_none_or(|end| end > file_bytes) {
            return Err(damaged("a column beyond the end of the file"));
        }
        let read = || {
            let mut bytes = vec![0; length as usize];
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|source| StoreError::Io { path: path.into(), source })?;
        Ok(Column {
            path: path.into(),
            description: metadata.file_metadata().schema_descr().column(column),
            chunk,
            bytes: Arc::new(Chunk { offset, bytes: bytes.into() }),
            first_row,
            rows: usize::try_from(group.num_rows()).unwrap_or(0),
        })
    }

    /// Returns the decimals of a column of decimals; 0 for other columns.
    pub(in crate::store) fn scale(&self) -> i32 {
        match self.description.logical_type_ref() {
            Some(LogicalType::Decimal(d)) => d.scale,
            _ => self.description.type_scale().max(0),
        }
    }

    /// Passes every value of a column of numbers to `take`, which returns whether it is valid.
    pub(in crate::store) fn numbers(
        &self,
        expected: &'static str,
        take: &mut dyn FnMut(Number) -> bool,
    ) -> Result<(), StoreError> {
        let decimal = matches!(self.description.logical_type_ref(), Some(LogicalType::Decimal(_))) || self.scale() > 0;
        let unsigned = matches!(self.description.logical_type_ref(), Some(LogicalType::Integer(i)) if !i.is_signed);
        let not_nanos = matches!(
            self.description.logical_type_ref(),
            Some(LogicalType::Timestamp(t)) if t.unit != TimeUnit::NANOS
        );
        if not_nanos {
            return Err(self.wrong_type(expected));
        }
        match self.reader(expected)? {
            ColumnReader::Int64ColumnReader(r) => self.visit(r, expected, &mut |v| {
                take(v.map_or(Number::Null, |&v| Number::Whole(if unsigned { v as u64 as i128 } else { v.into() })))
            }),
            ColumnReader::Int32ColumnReader(r) => self.visit(r, expected, &mut |v| {
                take(v.map_or(Number::Null, |&v| Number::Whole(if unsigned { v as u32 as i128 } else { v.into() })))
            }),
            ColumnReader::DoubleColumnReader(r) => {
                self.visit(r, expected, &mut |v| take(v.map_or(Number::Null, |&v| Number::Float(v))))
            }
            ColumnReader::FixedLenByteArrayColumnReader(r) if decimal => self.visit(r, expected, &mut |v| {
                v.map_or(Some(Number::Null), |v| big_endian(v.data())).is_some_and(&mut *take)
            }),
            ColumnReader::ByteArrayColumnReader(r) if decimal => self.visit(r, expected, &mut |v| {
                v.map_or(Some(Number::Null), |v| big_endian(v.data())).is_some_and(&mut *take)
            }),
            _ => Err(self.wrong_type(expected)),
        }
    }

    /// Passes every value of a column of texts to `take`, which returns whether it is valid.
    pub(in crate::store) fn texts(&self, take: &mut dyn FnMut(Option<&[u8]>) -> bool) -> Result<(), StoreError> {
        const EXPECTED: &str = "a name (UTF-8 text)";
        match self.reader(EXPECTED)? {
            ColumnReader::ByteArrayColumnReader(r) => {
                self.visit(r, EXPECTED, &mut |v: Option<&ByteArray>| take(v.map(ByteArray::data)))
            }
            _ => Err(self.wrong_type(EXPECTED)),
        }
    }

    /// Returns `values` if there is one per row.
    pub(in crate::store) fn of_length<T>(&self, values: Vec<T>, rows: usize) -> Result<Vec<T>, StoreError> {
        if values.len() == rows {
            return Ok(values);
        }
        let reason = format!("column {:?} has {} values for {rows} rows", self.name(), values.len());
        Err(StoreError::Parquet { path: self.path.clone(), reason })
    }

    fn name(&self) -> String {
        self.description.path().string()
    }

    fn damaged(&self, e: ParquetError) -> StoreError {
        StoreError::Parquet { path: self.path.clone(), reason: format!("column {:?}: {e}", self.name()) }
    }

    fn wrong_type(&self, expected: &'static str) -> StoreError {
        let physical = if self.is_nested() { "NESTED".into() } else { self.description.physical_type().to_string() };
        let logical = self.description.logical_type_ref().map(|l| format!(" ({l:?})")).unwrap_or_default();
        StoreError::ColumnType {
            path: self.path.clone(),
            column: self.name(),
            found: format!("{physical}{logical}"),
            expected,
        }
    }

    fn is_nested(&self) -> bool {
        self.description.max_rep_level() > 0 || self.description.max_def_level() > 1
    }

    fn reader(&self, expected: &'static str) -> Result<ColumnReader, StoreError> {
        if self.is_nested() || self.description.physical_type() == Physical::BOOLEAN {
            return Err(self.wrong_type(expected));
        }
        let pages =
            SerializedPageReader::new(self.bytes.clone(), &self.chunk, self.rows, None).map_err(|e| self.damaged(e))?;
        Ok(get_column_reader(self.description.clone(), Box::new(pages)))
    }

    fn visit<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        expected: &'static str,
        take: &mut dyn FnMut(Option<&T::T>) -> bool,
    ) -> Result<(), StoreError> {
        let nullable = self.description.max_def_level() > 0;
        let (mut levels, mut values) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let mut row = self.first_row;
        loop {
            levels.clear();
            values.clear();
            let read = reader.read_records(BATCH, nullable.then_some(&mut levels), None, &mut values);
            let (records, ..) = read.map_err(|e| self.damaged(e))?;
            if records == 0 {
                return Ok(());
            }
            let mut present = values.iter();
            for i in 0..records {
                let value = if nullable && levels.get(i) != Some(&1) { None } else { present.next() };
                if !take(value) {
                    let found = value.map_or("null".to_string(), |v| format!("{v:?}"));
                    let path = self.path.clone();
                    return Err(StoreError::Value { path, column: self.name(), row, found, expected });
                }
                row += 1;
            }
        }
    }
}

/// Decodes a big-endian two's complement integer of at most 16 bytes.
fn big_endian(bytes: &[u8]) -> Option<Number> {
    if bytes.len() > 16 {
        return None;
    }
    let sign = if bytes.first().is_some_and(|b| b & 0x80 != 0) { -1 } else { 0 };
    Some(Number::Whole(bytes.iter().fold(sign, |n: i128, &b| n << 8 | i128::from(b))))
}

/// The bytes of one column of one row group, addressed by their offset in the file.
struct Chunk {
    offset: u64,
    bytes: Bytes,
}

impl Chunk {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let at = start.checked_sub(self.offset).filter(|&at| at <= self.bytes.len() as u64);
        let at = at.ok_or_else(|| ParquetError::EOF("a page outside its column".into()))?;
        Ok(self.bytes.slice(at as usize..))
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let rest = self.from(start)?;
        if length > rest.len() {
            return Err(ParquetError::EOF("a page beyond its column".into()));
        }
        Ok(rest.slice(..length))
    }
}
