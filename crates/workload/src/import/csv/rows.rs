//! Iterates over the rows of a table, whether it is text with a header, JSON or Parquet.

use std::borrow::Cow;

use super::json_rows;
#[cfg(feature = "formats")]
use super::parquet_rows;
use crate::byte_source::{Meter, Shard};
use crate::import::error::{FieldError, quoted};
use crate::import::lines::for_each_line;
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, counted};

/// The fields of a row, each with the byte of the line where it starts.
pub(in crate::import) type Fields<'l> = Vec<(usize, Cow<'l, [u8]>)>;

/// Who defined the columns of a table, for the message about a missing one.
pub(in crate::import) struct Definition<'a> {
    pub(in crate::import) whose: &'a str,
    pub(in crate::import) remedy: &'static str,
}

/// What is done with the rows of a table, whether it is text, JSON or Parquet.
pub(in crate::import) trait RowReader {
    /// Returns the names of all columns that are read, alternatives too. JSON and Parquet decode no others.
    fn names(&self) -> Vec<String>;

    /// Locates the columns by the header.
    ///
    /// # Errors
    /// Returns the name of the first column that is missing.
    fn locate(&mut self, header: &[String]) -> Result<(), String>;

    /// Reads a row, whose fields are in the order of the header; `length` is that of its line.
    fn row(&mut self, fields: Fields<'_>, length: usize) -> Result<(), Box<FieldError>>;

    /// Returns the counts.
    fn tally(&mut self) -> &mut Tally;

    /// Returns how many tasks are held so far.
    fn held(&self) -> u64;
}

/// Reads the rows of a table: text with a header, JSON objects, or Parquet.
pub(in crate::import) fn read_rows(
    mut shard: Shard,
    reader: &mut impl RowReader,
    definition: &Definition<'_>,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<(), ImportError> {
    let file = shard.name.clone();
    let head = shard.head()?;
    let found = match head.trim_ascii_start().first() {
        #[cfg(feature = "formats")]
        _ if head.starts_with(b"PAR1") => parquet_rows::read(shard, reader, options, meter)?,
        #[cfg(not(feature = "formats"))]
        _ if head.starts_with(b"PAR1") => return Err(ImportError::not_built(&file, "a Parquet file")),
        Some(b'{' | b'[') => json_rows::read(shard, reader, options, meter)?,
        _ => read_text(shard, reader, options, meter)?,
    };
    let Some((column, header)) = found else { return Ok(()) };
    Err(ImportError::Shape {
        file,
        found: format!("the header {header}"),
        expected: format!("a column {column:?}, which {}", definition.whose),
        remedy: definition.remedy.to_string(),
    })
}

/// Reads lines of text. Returns the name of a missing column and the header that lacks it.
fn read_text(
    shard: Shard,
    reader: &mut impl RowReader,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Option<(String, String)>, ImportError> {
    let file = shard.name.clone();
    let mut table: Option<(Vec<u8>, u8)> = None;
    let mut missing = None;
    let mut invalid = None;
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, number, tally| {
        if missing.is_some() || invalid.is_some() {
            return Ok(());
        }
        let Some((header, delimiter)) = &table else {
            let delimiter = delimiter_of(line);
            let names: Vec<String> = match &options.columns {
                Some(names) => names.iter().map(|n| n.trim().to_string()).collect(),
                None => match split(line, delimiter) {
                    Ok(names) => {
                        names.iter().map(|(_, n)| String::from_utf8_lossy(n.trim_ascii()).into_owned()).collect()
                    }
                    // Not an error of one row: without the header no row can be read, leniently or not.
                    Err(error) => {
                        invalid = Some((number, error));
                        return Ok(());
                    }
                },
            };
            if let Some(twice) = repeated(&names, &reader.names()) {
                let found = format!("the column {twice:?} twice");
                invalid = Some((number, FieldError::described(0, found, "columns with names of their own")));
                return Ok(());
            }
            match reader.locate(&names) {
                Ok(()) if options.columns.is_some() => {
                    tally.rows_read += 1;
                    table = Some((Vec::new(), delimiter));
                    reader.row(split(line, delimiter)?, line.len())?;
                }
                Ok(()) => table = Some((line.to_vec(), delimiter)),
                Err(column) => missing = Some((column, quoted(line))),
            }
            return Ok(());
        };
        // Concatenated shards repeat the header.
        if line == header {
            return Ok(());
        }
        tally.rows_read += 1;
        reader.row(split(line, *delimiter)?, line.len())?;
        tally.held = reader.held();
        Ok(())
    })?;
    if let Some((line, error)) = invalid {
        return Err(ImportError::Shape {
            file: format!("{file}:{line}:{}", error.at + 1),
            found: error.found,
            expected: error.expected.into_owned(),
            remedy: "correct the header".to_string(),
        });
    }
    reader.tally().merge(tally);
    Ok(missing)
}

/// Returns the first name of a header that is read and stands there twice.
fn repeated<'a>(header: &'a [String], read: &[String]) -> Option<&'a String> {
    header.iter().enumerate().find(|(at, name)| read.contains(name) && header[..*at].contains(name)).map(|(_, n)| n)
}

/// Returns the character between the columns: a comma, or in a header without one a tab, a semicolon or a bar.
fn delimiter_of(header: &[u8]) -> u8 {
    b",\t;|".iter().copied().find(|c| header.contains(c)).unwrap_or(b',')
}

/// Returns the names of the columns of a table that starts with `head`; of Parquet, of the whole file.
pub(in crate::import) fn header_of(head: &[u8]) -> Vec<String> {
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
    if first.starts_with(b"[{") || first.starts_with(b"{") {
        return json_rows::keys(head);
    }
    split(first, delimiter_of(first))
        .unwrap_or_default()
        .iter()
        .map(|(_, n)| String::from_utf8_lossy(n.trim_ascii()).into_owned())
        .collect()
}

/// Compares the number of fields of a row with that of the header.
pub(in crate::import) fn same_width(fields: usize, width: usize, length: usize) -> Result<(), Box<FieldError>> {
    if fields == width {
        return Ok(());
    }
    let expected = format!("{}, as the header has", counted(width as u64, "column", "columns"));
    let found = counted(fields as u64, "column", "columns");
    Err(FieldError::described(length, found, expected))
}

/// Splits a line into fields, each with the byte where it starts.
///
/// # Errors
/// Returns an error if a quotation mark is not closed.
pub(in crate::import) fn split(line: &[u8], delimiter: u8) -> Result<Fields<'_>, Box<FieldError>> {
    if !line.contains(&b'"') {
        let starts = memchr::memchr_iter(delimiter, line).map(|comma| comma + 1);
        let fields = line.split(|b| *b == delimiter).map(Cow::Borrowed);
        return Ok(std::iter::once(0).chain(starts).zip(fields).collect());
    }
    let mut fields: Fields<'_> = Vec::new();
    // `opened` is the byte of the quotation mark within which the current byte is.
    let (mut start, mut text, mut opened) = (0, Vec::new(), None);
    let mut bytes = line.iter().copied().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' if opened.is_some() && bytes.peek().is_some_and(|(_, next)| *next == b'"') => {
                bytes.next();
                text.push(b'"');
            }
            b'"' => opened = if opened.is_some() { None } else { Some(at) },
            other if other == delimiter && opened.is_none() => {
                fields.push((start, Cow::Owned(std::mem::take(&mut text))));
                start = at + 1;
            }
            other => text.push(other),
        }
    }
    if let Some(at) = opened {
        return Err(FieldError::new(at, &line[at..], "a quotation mark that is closed in the same line"));
    }
    fields.push((start, Cow::Owned(text)));
    Ok(fields)
}
