//! Iterates over the lines of a stream, for all text formats.

use std::borrow::Cow;

use evenhand_model::Overflow;

use super::error::{FieldError, MALFORMED};
use super::summary::Tally;
use super::{ImportError, ImportOptions};
use crate::byte_source::{Meter, Shard};

/// Calls `row` with each line of `shard` that is not blank and its number, counted from 1.
///
/// An error ends the reading; with `lenient`, the row is counted as malformed.
pub(super) fn for_each_line(
    shard: Shard,
    options: &ImportOptions,
    meter: &Meter<'_>,
    tally: &mut Tally,
    mut row: impl FnMut(&[u8], u64, &mut Tally) -> Result<(), Box<FieldError>>,
) -> Result<(), ImportError> {
    for_each_line_or_blank(shard, options, meter, tally, |line, number, tally| {
        if line.iter().all(u8::is_ascii_whitespace) { Ok(()) } else { row(line, number, tally) }
    })
}

/// Does the same for all lines, also blank ones, which end a record in some formats.
pub(super) fn for_each_line_or_blank(
    shard: Shard,
    options: &ImportOptions,
    meter: &Meter<'_>,
    tally: &mut Tally,
    mut row: impl FnMut(&[u8], u64, &mut Tally) -> Result<(), Box<FieldError>>,
) -> Result<(), ImportError> {
    let file = shard.name.clone();
    let mut blocks = shard.open()?;
    let mut number = 0;
    let mut held = tally.held;
    while let Some(block) = blocks.next(meter)? {
        let mut rest = match block.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) if number == 0 => text,
            _ => block,
        };
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            number += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Err(error) = row(line, number, tally) {
                if !options.lenient {
                    return Err(error.located(&file, number).into());
                }
                malformed(tally, &error);
            }
        }
        meter.hold(&file, tally.held - held)?;
        held = tally.held;
        if let Some(source) = options.overflow.as_ref().and_then(Overflow::take_error) {
            return Err(ImportError::Overflow { source });
        }
    }
    if number == 0 { Err(ImportError::EmptyFile { file }) } else { Ok(()) }
}

/// Counts a malformed row that `lenient` skips.
pub(super) fn malformed(tally: &mut Tally, error: &FieldError) {
    tally.dropped.add(Cow::Owned(format!("{MALFORMED}, expected {}", error.expected)), 1);
}

/// The byte order mark, which some editors write at the beginning of a file.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns a field as text, which must be UTF-8.
pub(super) fn utf8<'a>(field: &'a [u8], at: usize, what: &'static str) -> Result<&'a str, Box<FieldError>> {
    std::str::from_utf8(field).map_err(|e| FieldError::new(at + e.valid_up_to(), field, format!("{what} in UTF-8")))
}
