//! One line of a log in the Standard Workload Format, field by field.

use evenhand_model::{Amount, Time};

use super::super::counted;
use super::super::error::{FieldError, up_to};
use super::super::lines::utf8;
use super::super::node_request::NodeRequest;
use super::super::parse_number::{NANO, decimal, fits, leading_digits};
use super::super::parse_time::is_unknown;

pub(super) const RELAXED: &str = "pass --relaxed to accept";
pub(super) const FIELDS: [&str; 18] = [
    "the job number (field 1)",
    "the submit time (field 2)",
    "the wait time (field 3)",
    "the run time (field 4)",
    "the allocated processors (field 5)",
    "the mean CPU time (field 6)",
    "the used memory (field 7)",
    "the requested processors (field 8)",
    "the requested time (field 9)",
    "the requested memory (field 10)",
    "the status (field 11)",
    "the user (field 12)",
    "the group (field 13)",
    "the executable (field 14)",
    "the queue (field 15)",
    "the partition (field 16)",
    "the preceding job (field 17)",
    "the think time (field 18)",
];
// The indexes of the fields that are read.
pub(super) const JOB: usize = 0;
pub(super) const SUBMIT: usize = 1;
pub(super) const WAIT: usize = 2;
pub(super) const RUN: usize = 3;
pub(super) const ALLOCATED: usize = 4;
pub(super) const CPU_TIME: usize = 5;
pub(super) const USED: usize = 6;
pub(super) const REQUESTED: usize = 7;
pub(super) const REQUESTED_TIME: usize = 8;
pub(super) const MEMORY: usize = 9;
pub(super) const STATUS: usize = 10;
pub(super) const USER: usize = 11;
pub(super) const GROUP: usize = 12;
pub(super) const QUEUE: usize = 14;
pub(super) const PARTITION: usize = 15;
/// The fields that hold names instead of numbers in some logs.
pub(super) const NAMED: [usize; 4] = [USER, GROUP, QUEUE, PARTITION];
/// The fields without which a job is still a task.
pub(super) const OPTIONAL: [usize; 6] = [CPU_TIME, REQUESTED_TIME, STATUS, 13, 16, 17];
/// The fields in which -1 means unknown and another negative number is invalid.
const NOT_NEGATIVE: [usize; 8] = [SUBMIT, WAIT, RUN, ALLOCATED, USED, REQUESTED, REQUESTED_TIME, MEMORY];

/// A field: a whole number and, where decimals are allowed, billionths.
#[derive(Clone, Copy, Default)]
pub(super) struct Field {
    pub(super) whole: i64,
    pub(super) billionths: u32,
    /// The byte of the line where the field starts; lines are shorter than 2^32 bytes.
    pub(super) at: u32,
}

impl Field {
    /// Returns the value in billionths, if it is known.
    pub(super) fn known(self) -> Option<u128> {
        u64::try_from(self.whole).ok().map(|w| u128::from(w) * NANO + u128::from(self.billionths))
    }

    pub(super) fn positive(self) -> Option<u128> {
        self.known().filter(|v| *v > 0)
    }
}

/// Returns the error to show for a row that is not standard: `error`, unless it offers `--relaxed` and the row is invalid
/// with that too. Then it is the error that would remain.
pub(super) fn useful_remedy(error: Box<FieldError>, line: &[u8]) -> Box<FieldError> {
    if error.remedy != RELAXED {
        return error;
    }
    let parse = || {
        let row = Row::parse(line, true, false)?;
        row.time_fields()?;
        [ALLOCATED, REQUESTED].into_iter().try_for_each(|field| row.check_processors(line, field))
    };
    match parse() {
        Ok(()) => error,
        Err(remaining) => remaining,
    }
}

pub(super) struct Row<'a> {
    pub(super) fields: [Field; 18],
    /// The text after the last field.
    pub(super) extra: &'a [u8],
    pub(super) extra_at: usize,
    /// Whether a field that must be whole in the standard has decimals.
    pub(super) decimals: bool,
    /// Whether a field has more than nine decimals.
    pub(super) rounded: bool,
    /// Whether a field is negative and not -1, although only -1 is allowed.
    pub(super) negative: bool,
    /// The fields of [`NAMED`] that hold names.
    pub(super) names: [Option<&'a str>; 4],
    /// Whether a field of [`OPTIONAL`] is malformed and taken as unknown.
    pub(super) malformed: bool,
}

impl Row<'_> {
    /// Parses a line. With `lenient`, a malformed field of [`OPTIONAL`] is unknown, and names are accepted as with `relaxed`.
    pub(super) fn parse(line: &[u8], relaxed: bool, lenient: bool) -> Result<Row<'_>, Box<FieldError>> {
        let mut row = Row {
            fields: [Field::default(); 18],
            extra: &[],
            extra_at: 0,
            decimals: false,
            rounded: false,
            negative: false,
            names: [None; 4],
            malformed: false,
        };
        let mut at = 0;
        for i in 0..18 {
            at += blanks(&line[at..]);
            if at == line.len() {
                let found = counted(i as u64, "column", "columns");
                return Err(FieldError::described(at, found, "18 columns of the Standard Workload Format"));
            }
            let negative = line[at] == b'-';
            let (value, digits) = leading_digits(&line[at + usize::from(negative)..]);
            let end = at + usize::from(negative) + digits;
            let field = &mut row.fields[i];
            field.at = at as u32;
            // 18 digits always fit.
            if (1..=18).contains(&digits) && line.get(end).is_none_or(u8::is_ascii_whitespace) {
                field.whole = if negative { -(value as i64) } else { value as i64 };
                at = end;
            } else {
                let end = at + line[at..].iter().take_while(|b| !b.is_ascii_whitespace()).count();
                let text = &line[at..end];
                let number = any_number(text);
                let largest = || if number.is_none() { up_to(text, expected(i), i64::MAX) } else { expected(i).into() };
                let error = || FieldError::new(at, text, largest());
                if number.is_none()
                    && let Some(place) = NAMED.iter().position(|named| *named == i)
                {
                    if !relaxed && !lenient {
                        return Err(error().remedy(RELAXED));
                    }
                    field.whole = -1;
                    row.names[place] = Some(utf8(text, at, "a name")?).filter(|_| !is_unknown(text));
                    at = end;
                    continue;
                }
                if number.is_none() && lenient && OPTIONAL.contains(&i) {
                    (field.whole, row.malformed, at) = (-1, true, end);
                    continue;
                }
                let (value, rounded) = number.ok_or_else(error)?;
                (field.whole, field.billionths) = value;
                if !matches!(i, CPU_TIME | USED) {
                    if !relaxed {
                        return Err(FieldError::new(at, text, expected(i)).remedy(RELAXED));
                    }
                    row.decimals = true;
                    row.rounded |= rounded;
                }
                at = end;
            }
            if field.whole < -1 && NOT_NEGATIVE.contains(&i) {
                if !relaxed {
                    return Err(
                        FieldError::new(field.at as usize, &line[field.at as usize..at], expected(i)).remedy(RELAXED)
                    );
                }
                field.whole = -1;
                row.negative = true;
            }
        }
        at += blanks(&line[at..]);
        (row.extra, row.extra_at) = (&line[at..], at);
        if !row.extra.is_empty() && !relaxed {
            let columns = 18 + row.extra.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).count();
            let found = format!("{columns} columns");
            return Err(FieldError::described(at, found, "18 columns of the Standard Workload Format").remedy(RELAXED));
        }
        Ok(row)
    }

    /// Returns the times of submission, wait, run and request in nanoseconds, as far as they are known.
    pub(super) fn time_fields(&self) -> Result<[Option<u64>; 4], Box<FieldError>> {
        let mut times = [None; 4];
        for (time, i) in times.iter_mut().zip([SUBMIT, WAIT, RUN, REQUESTED_TIME]) {
            let field = &self.fields[i];
            let too_late =
                || FieldError::described(field.at as usize, format!("{} s", field.whole), "a time below 146 years");
            *time = match field.known() {
                Some(ns) => Some(Time::checked_from_nanos(ns).ok_or_else(too_late)?.nanos()),
                None => None,
            };
        }
        Ok(times)
    }

    /// Returns the text of a field of the line from which the row was parsed.
    pub(super) fn text<'l>(&self, line: &'l [u8], field: usize) -> &'l [u8] {
        let rest = &line[self.fields[field].at as usize..];
        &rest[..rest.iter().take_while(|b| !b.is_ascii_whitespace()).count()]
    }

    /// Checks that a workload can hold a number of processors.
    pub(super) fn check_processors(&self, line: &[u8], field: usize) -> Result<(), Box<FieldError>> {
        match self.fields[field].known() {
            Some(nano) if !fits(nano) => {
                let expected = format!("{}, at most {}", FIELDS[field], Amount::MAX.0);
                Err(FieldError::new(self.fields[field].at as usize, self.text(line, field), expected))
            }
            _ => Ok(()),
        }
    }

    /// Returns a column after the 18 of the standard, counted from 0.
    pub(super) fn column(&self, index: usize) -> Option<&str> {
        let mut extra = self.extra.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        str::from_utf8(extra.nth(index)?).ok()
    }

    /// Returns the name of the queue in column 20 of a MetaCentrum row: one with a request of nodes in column 21. Its kind of
    /// queue may follow the name in parentheses.
    pub(super) fn queue_name(&self) -> Option<&str> {
        let is_metacentrum = self.request().is_ok_and(|request| request.is_some());
        let name = self.column(1).filter(|_| is_metacentrum)?;
        (!is_unknown(name.as_bytes()) && name.parse::<f64>().is_err()).then_some(name)
    }

    /// Returns the nodes that a MetaCentrum row requests in column 21; `None` without that column.
    pub(super) fn request(&self) -> Result<Option<NodeRequest>, Box<FieldError>> {
        let Some(text) = self.column(2) else { return Ok(None) };
        let error = || FieldError::new(self.extra_at, text.as_bytes(), "nodes like 2:ppn=8 in column 21");
        NodeRequest::parse(text).map(Some).ok_or_else(error)
    }

    /// Returns the number of these nodes.
    pub(super) fn nodes(&self) -> Result<Option<u32>, Box<FieldError>> {
        Ok(self.request()?.and_then(|request| request.nodes()))
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// Parses a number that is not short and whole: returns the whole part, the billionths, and whether it was rounded.
fn any_number(text: &[u8]) -> Option<((i64, u32), bool)> {
    let (magnitude, negative) = match text.strip_prefix(b"-") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let number = decimal(magnitude)?;
    let whole = i64::try_from(number.nano / NANO).ok()?;
    let billionths = (number.nano % NANO) as u32;
    // Of negative numbers, only -1 is valid. -1.5 becomes -2, which differs from -1.
    let value = if !negative { (whole, billionths) } else { (-whole - i64::from(billionths > 0), 0) };
    Some((value, number.rounded))
}

fn expected(field: usize) -> String {
    let kind = match field {
        CPU_TIME | USED => "a number, or -1 for unknown",
        _ if NOT_NEGATIVE.contains(&field) => "a whole number, or -1 for unknown",
        _ => "a whole number",
    };
    format!("{}: {kind}", FIELDS[field])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The reference model splits at blanks and parses with std.
        #[test]
        fn rows_equal_those_of_the_reference_model(
            fields in prop::collection::vec("-1|-2|[0-9]{1,3}|[0-9]{17,21}|[0-9]{1,3}\\.[0-9]{1,3}|x|-", 16..=20),
            blanks in prop::collection::vec("[ \t]{1,3}", 21),
        ) {
            let line: String = blanks.iter().zip(&fields).flat_map(|(b, f)| [b.as_str(), f.as_str()]).collect();
            let naive = |relaxed: bool| -> Option<Vec<String>> {
                let words: Vec<&str> = line.split_whitespace().collect();
                if words.len() < 18 || (words.len() > 18 && !relaxed) {
                    return None;
                }
                let field = |(i, word): (usize, &&str)| -> Option<String> {
                    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
                    let number: i64 = match whole.parse() {
                        Ok(number) => number,
                        Err(_) if relaxed && NAMED.contains(&i) => return Some(format!("-1 {:0<9}", "")),
                        Err(_) => return None,
                    };
                    let may_have_decimals = relaxed || i == 5 || i == 6;
                    let may_be_negative = !NOT_NEGATIVE.contains(&i);
                    if word.contains('.') && !may_have_decimals || number < -1 && !may_be_negative && !relaxed {
                        return None;
                    }
                    let number = if may_be_negative { number } else { number.max(-1) };
                    Some(format!("{number} {part:0<9}"))
                };
                words[..18].iter().enumerate().map(field).collect()
            };
            for relaxed in [false, true] {
                let row = Row::parse(line.as_bytes(), relaxed, false).ok();
                let found = row.map(|r| r.fields.iter().map(|f| format!("{} {:09}", f.whole, f.billionths)).collect::<Vec<_>>());
                prop_assert_eq!(found, naive(relaxed), "{}", line);
            }
        }
    }
}
