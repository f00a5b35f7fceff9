//! Reads any table of comma-separated values with a header.
//!
//! [`CsvColumns`] defines the columns. A field can be in double quotes, within which two quotation marks are one; a row
//! does not continue on the next line. Times are seconds, or dates such as `2023-08-31T12:29:47` (also with a blank) in
//! UTC.

mod columns;

use std::borrow::Cow;

use columns::{Column, Field};
pub use columns::{CsvColumns, CsvColumnsError};
use evenhand_model::calendar::parse_date_time;
use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};

use super::error::{FieldError, quoted};
use super::lines::{for_each_line, utf8};
use super::parse_number::{Decimal, NANO, decimal, fits};
use super::summary::Tally;
use super::{ImportError, ImportOptions, Part, counted};
use crate::byte_source::{Meter, Shard};

const ROUNDED: &str = "rounded";
const NO_USER: &str = "no user";
const NO_AMOUNT: &str = "no amount";

pub(super) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let file = shard.name.clone();
    let shape = |found: String, expected: &str, remedy: &str| ImportError::Shape {
        file: file.clone(),
        found,
        expected: expected.into(),
        remedy: remedy.into(),
    };
    let Some(columns) = &options.csv_columns else {
        return Err(shape(
            "a table whose columns are not defined".into(),
            "a definition of the columns",
            "pass --csv-columns submit=COLUMN,duration=COLUMN,user=COLUMN,cpu=COLUMN,…",
        ));
    };
    let resources: Vec<Resource> = columns.resources().cloned().collect();
    let mut builder = WorkloadBuilder::new(resources);
    let mut tally = Tally::default();
    let mut table: Option<Table<'_>> = None;
    let mut missing = None;
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        if missing.is_some() {
            return Ok(());
        }
        let Some(table) = &table else {
            match Table::new(columns, line) {
                Ok(found) => table = Some(found),
                Err(column) => missing = Some((column, quoted(line))),
            }
            return Ok(());
        };
        // Concatenated shards repeat the header.
        if line == table.header {
            return Ok(());
        }
        tally.rows_read += 1;
        row(table, line, &mut builder, tally)
    })?;
    match missing {
        Some((column, header)) => Err(shape(
            format!("the header {header}"),
            &format!("a column {column:?}, which --csv-columns names"),
            "correct --csv-columns",
        )),
        None => Ok(Part { builder, tally }),
    }
}

/// The columns of a table, located by its header.
struct Table<'a> {
    columns: &'a CsvColumns,
    header: Vec<u8>,
    width: usize,
    fields: Vec<(Field, usize, u128)>,
    resources: Vec<(usize, u128)>,
}

impl<'a> Table<'a> {
    /// Locates the columns.
    ///
    /// # Errors
    /// Returns the name of the first column that is missing.
    fn new(columns: &'a CsvColumns, header: &[u8]) -> Result<Table<'a>, String> {
        let names = split(header);
        let place = |column: &Column| {
            let place = names.iter().position(|(_, name)| name.trim_ascii() == column.name.as_bytes());
            place.ok_or_else(|| column.name.clone())
        };
        let fields = columns.fields.iter().map(|(field, c)| Ok((*field, place(c)?, c.times)));
        let resources = columns.resources.iter().map(|(_, c)| Ok((place(c)?, c.times)));
        Ok(Table {
            columns,
            header: header.to_vec(),
            width: names.len(),
            fields: fields.collect::<Result<_, String>>()?,
            resources: resources.collect::<Result<_, String>>()?,
        })
    }
}

/// The fields of a row, each with the byte of the line where it starts.
type Fields<'l> = Vec<(usize, Cow<'l, [u8]>)>;

/// A field that is not empty: its place, its text, and the factor of its number in billionths.
type Found<'f> = (usize, &'f [u8], u128);

struct Row<'t, 'l> {
    table: &'t Table<'t>,
    fields: Fields<'l>,
}

impl Row<'_, '_> {
    fn get(&self, field: Field) -> Option<Found<'_>> {
        let (_, place, times) = self.table.fields.iter().find(|(f, ..)| *f == field)?;
        self.at(*place, *times)
    }

    fn at(&self, place: usize, times: u128) -> Option<Found<'_>> {
        let (at, text) = &self.fields[place];
        let text = text.trim_ascii();
        (!text.is_empty()).then_some((*at, text, times))
    }

    fn text(&self, field: Field, what: &'static str) -> Result<Option<&str>, Box<FieldError>> {
        self.get(field).map(|(at, text, _)| utf8(text, at, what)).transpose()
    }

    fn time(&self, field: Field) -> Result<Option<Time>, Box<FieldError>> {
        let read = |(at, text, times): Found<'_>| {
            let seconds = number(text, times).map(|d| d.nano).and_then(|n| u64::try_from(n).ok());
            let time = seconds.filter(|n| *n <= Time::MAX.nanos()).map(Time::from_nanos);
            let what = "a time: seconds, or a date such as 2023-08-31T12:29:47";
            time.or_else(|| date(text)).ok_or_else(|| FieldError::new(at, text, what))
        };
        self.get(field).map(read).transpose()
    }

    fn span(&self, field: Field) -> Result<Option<Span>, Box<FieldError>> {
        let read = |(at, text, times): Found<'_>| {
            let span = number(text, times).and_then(|d| Span::checked_from_nanos(d.nano));
            span.ok_or_else(|| FieldError::new(at, text, "seconds, a number that is not negative"))
        };
        self.get(field).map(read).transpose()
    }
}

/// Parses a number and multiplies it by a factor in billionths; rounds halves up.
fn number(text: &[u8], times: u128) -> Option<Decimal> {
    let Decimal { nano, rounded } = decimal(text)?;
    if times == NANO {
        return Some(Decimal { nano, rounded });
    }
    let product = nano.checked_mul(times)?.checked_add(NANO / 2)?;
    Some(Decimal { nano: product / NANO, rounded: rounded || !(nano * times).is_multiple_of(NANO) })
}

fn date(text: &[u8]) -> Option<Time> {
    let mut text = text.strip_suffix(b"Z").unwrap_or(text).to_vec();
    if let Some(blank) = text.get_mut(10).filter(|b| **b == b' ') {
        *blank = b'T';
    }
    parse_date_time(&text)
}

fn row(
    table: &Table<'_>,
    line: &[u8],
    builder: &mut WorkloadBuilder,
    tally: &mut Tally,
) -> Result<(), Box<FieldError>> {
    let row = Row { table, fields: split(line) };
    if row.fields.len() != table.width {
        let expected = format!("{}, as the header has", counted(table.width as u64, "column", "columns"));
        return Err(FieldError::described(line.len(), counted(row.fields.len() as u64, "column", "columns"), expected));
    }
    let Some(submit) = row.time(Field::Submit)? else {
        tally.drop("no submit time");
        return Ok(());
    };
    let start = match (row.time(Field::Start)?, row.span(Field::Wait)?) {
        (Some(start), _) => Some(start),
        (None, Some(wait)) => submit.checked_add(wait),
        (None, None) => None,
    };
    if let (Some(early), Some((at, ..))) = (start.filter(|s| *s < submit), row.get(Field::Start)) {
        let found = format!("a start {} s before submission", submit.since(early));
        return Err(FieldError::described(at, found, "a start that is not before submission"));
    }
    let duration = match (row.span(Field::Duration)?, start, row.time(Field::End)?) {
        (Some(duration), ..) => duration,
        (None, Some(start), Some(end)) if end < start => {
            let at = row.get(Field::End).map_or(0, |(at, ..)| at);
            let found = format!("an end {} s before the start", start.since(end));
            return Err(FieldError::described(at, found, "an end that is not before the start"));
        }
        (None, Some(start), Some(end)) => end.since(start),
        (None, None, _) => {
            tally.drop("never started");
            return Ok(());
        }
        (None, Some(_), None) => {
            tally.drop("no end or duration");
            return Ok(());
        }
    };
    let mut rounded = false;
    let mut amounts = Vec::with_capacity(table.resources.len());
    for ((place, times), resource) in table.resources.iter().zip(table.columns.resources()) {
        let Some((at, text, times)) = row.at(*place, *times) else {
            tally.adjust(NO_AMOUNT);
            amounts.push(0);
            continue;
        };
        let amount = number(text, times).filter(|d| fits(d.nano));
        let amount = amount.ok_or_else(|| {
            FieldError::new(at, text, format!("an amount of {}, a number that is not negative", resource.name))
        })?;
        rounded |= amount.rounded;
        amounts.push(amount.nano);
    }
    if rounded {
        tally.adjust(ROUNDED);
    }
    let count = match row.get(Field::Count) {
        None => 1,
        Some((at, text, times)) => number(text, times)
            .filter(|d| d.nano % NANO == 0)
            .and_then(|d| u32::try_from(d.nano / NANO).ok())
            .filter(|count| *count > 0)
            .ok_or_else(|| FieldError::new(at, text, "a number of tasks: a whole number greater than 0"))?,
    };
    let user = row.text(Field::User, "a user's name")?;
    if user.is_none() {
        tally.adjust(NO_USER);
    }
    builder.push(&Task {
        submit,
        start,
        duration,
        requested: row.span(Field::Requested)?,
        user: user.unwrap_or("unknown"),
        account: row.text(Field::Account, "an account's name")?,
        queue: row.text(Field::Queue, "a queue's name")?,
        amounts: &amounts,
        count,
    });
    Ok(())
}

/// Splits a line into fields, each with the byte where it starts.
fn split(line: &[u8]) -> Fields<'_> {
    if !line.contains(&b'"') {
        let starts = memchr::memchr_iter(b',', line).map(|comma| comma + 1);
        let fields = line.split(|b| *b == b',').map(Cow::Borrowed);
        return std::iter::once(0).chain(starts).zip(fields).collect();
    }
    let mut fields: Fields<'_> = Vec::new();
    let (mut start, mut text, mut within) = (0, Vec::new(), false);
    let mut bytes = line.iter().copied().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' if within && bytes.peek().is_some_and(|(_, next)| *next == b'"') => {
                bytes.next();
                text.push(b'"');
            }
            b'"' => within = !within,
            b',' if !within => {
                fields.push((start, Cow::Owned(std::mem::take(&mut text))));
                start = at + 1;
            }
            other => text.push(other),
        }
    }
    fields.push((start, Cow::Owned(text)));
    fields
}

pub(super) fn assumptions(tally: &Tally) -> Vec<String> {
    let sentence = |what: &str, one: &str, many: &str, rest: &str| {
        let rows = tally.adjusted.of(what);
        (rows > 0).then(|| format!("{} {rest}", counted(rows, one, many)))
    };
    let sentences = [
        sentence(NO_USER, "row has", "rows have", "no user and are assigned to the user \"unknown\"."),
        sentence(NO_AMOUNT, "amount is", "amounts are", "missing and set to 0."),
        sentence(ROUNDED, "row has", "rows have", "amounts with more than nine decimals, which are rounded to nine."),
    ];
    sentences.into_iter().flatten().collect()
}
