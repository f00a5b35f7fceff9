//! Reads the CSV of the SDRF authors' simulator: `submit,start,finish,user,task,cpu,mem`, with times in microseconds.
//!
//! Their files have no header; a first line that does not start with a number is read as one. Fields are not quoted.
//! Rows can be in any order.

use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};

use super::error::FieldError;
use super::lines::{for_each_line, utf8};
use super::parse_number::{Decimal, decimal, integer};
use super::summary::Tally;
use super::{ImportError, ImportOptions, Part, counted};
use crate::byte_source::{Meter, Shard};

const HEADER: &str = "header line";
const ROUNDED: &str = "rounded";
const COLUMNS: [&str; 7] = ["submit", "start", "finish", "user", "task", "cpu", "mem"];

pub(super) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut builder = options.builder([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let mut tally = Tally::default();
    let mut first = true;
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        if std::mem::take(&mut first) && is_header(line) {
            tally.adjust(HEADER);
            return Ok(());
        }
        tally.rows_read += 1;
        row(line, &mut builder, tally)?;
        tally.held = builder.len() as u64;
        Ok(())
    })?;
    Ok(Part { builder, tally })
}

/// Returns whether the first line is a header: its first field starts with a letter. A row whose first number is
/// malformed (`-5`, `1x`) is not a header.
fn is_header(line: &[u8]) -> bool {
    let first = line.split(|&b| b == b',').next().unwrap_or_default();
    let letter = first.trim_ascii().iter().find(|b| **b != b'"');
    letter.is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b == b'#')
}

fn row(line: &[u8], builder: &mut WorkloadBuilder, tally: &mut Tally) -> Result<(), Box<FieldError>> {
    let fields = split(line)?;
    let time = |i: usize| {
        let (at, text): (usize, &[u8]) = fields[i];
        let time = integer(text).and_then(Time::checked_from_micros);
        time.ok_or_else(|| {
            FieldError::new(at, text, format!("the {} time, whole microseconds below 4.6e15", COLUMNS[i]))
        })
    };
    let (submit, start, finish) = (time(0)?, time(1)?, time(2)?);
    if finish < start {
        let found = format!("finish {finish} s before start {start} s");
        return Err(FieldError::described(fields[2].0, found, "a finish that is not before the start"));
    }
    let user = utf8(fields[3].1, fields[3].0, "a user's name")?;
    let mut rounded = false;
    let mut amount = |i: usize| -> Result<u128, Box<FieldError>> {
        let (at, text) = fields[i];
        let Decimal { nano, rounded: r } = decimal(text).ok_or_else(|| {
            FieldError::new(at, text, format!("the {} amount, a decimal number that is not negative", COLUMNS[i]))
        })?;
        rounded |= r;
        Ok(nano)
    };
    let amounts = [amount(5)?, amount(6)?];
    if rounded {
        tally.adjust(ROUNDED);
    }
    let duration = Span::from_nanos(finish.nanos() - start.nanos());
    builder.push(&Task { submit, start: Some(start), duration, user, amounts: &amounts, ..Task::default() });
    Ok(())
}

/// Returns the seven fields, each with the byte where it starts.
fn split(line: &[u8]) -> Result<[(usize, &[u8]); 7], Box<FieldError>> {
    let mut fields = [(0, &line[..0]); 7];
    let mut at = 0;
    let mut n = 0;
    for field in line.split(|&b| b == b',') {
        if n < 7 {
            fields[n] = (at, field.trim_ascii());
        }
        at += field.len() + 1;
        n += 1;
    }
    if n != 7 {
        let found = counted(n as u64, "column", "columns");
        return Err(FieldError::described(line.len(), found, format!("7 columns: {}", COLUMNS.join(","))));
    }
    Ok(fields)
}

pub(super) fn assumptions(tally: &Tally) -> Vec<String> {
    let mut sentences = Vec::new();
    if tally.adjusted.of(HEADER) > 0 {
        sentences.push("The first line is read as a header, since it does not start with a number.".to_string());
    }
    let rounded = tally.adjusted.of(ROUNDED);
    if rounded > 0 {
        let rows = counted(rounded, "row has", "rows have");
        sentences.push(format!("{rows} amounts with more than nine decimals, which are rounded to nine."));
    }
    sentences
}
