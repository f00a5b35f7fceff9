//! The loop over the lines of a stream that every text format shares.

use std::borrow::Cow;

use super::error::Problem;
use super::summary::Tally;
use super::{ImportError, ImportOptions};
use crate::input::{Meter, Shard};

/// Calls `row` with each line of `shard` that is not blank and its number, counted from 1.
///
/// A problem ends the reading, or with `lenient` is counted.
pub(super) fn for_each_line(
    shard: Shard,
    options: &ImportOptions,
    meter: &Meter<'_>,
    tally: &mut Tally,
    mut row: impl FnMut(&[u8], u64, &mut Tally) -> Result<(), Box<Problem>>,
) -> Result<(), ImportError> {
    let file = shard.name.clone();
    let mut blocks = shard.open()?;
    let mut number = 0;
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
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Err(problem) = row(line, number, tally) {
                if !options.lenient {
                    return Err(problem.located(&file, number).into());
                }
                malformed(tally, &problem);
            }
        }
    }
    if number == 0 { Err(ImportError::EmptyFile { file }) } else { Ok(()) }
}

/// Counts a row that `lenient` skips.
pub(super) fn malformed(tally: &mut Tally, problem: &Problem) {
    tally.dropped.add(Cow::Owned(format!("malformed (expected {})", problem.expected)), 1);
}

/// What editors of another platform put before the first character.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text of a field that must be UTF-8, such as a user's name.
pub(super) fn utf8<'a>(field: &'a [u8], at: usize, what: &'static str) -> Result<&'a str, Box<Problem>> {
    std::str::from_utf8(field).map_err(|e| Problem::new(at + e.valid_up_to(), field, format!("{what} in UTF-8")))
}
