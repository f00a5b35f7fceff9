//! Parses a row of `task_events` to a compact event.

use std::collections::HashMap;

use crate::import::error::FieldError;
use crate::import::lines::{BYTE_ORDER_MARK, utf8};
use crate::import::parse_number::{decimal, leading_digits};

/// The kind of an event of a task. UPDATE rows change nothing that is kept, so they are no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Kind {
    Submit,
    Schedule,
    Evict,
    Fail,
    Finish,
    Kill,
    Lost,
}

/// The parts of a row that the state machine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) struct Event {
    /// The time in microseconds.
    pub(in crate::import) time: u64,
    pub(in crate::import) job: u64,
    /// The index of the task in its job.
    pub(in crate::import) index: u32,
    pub(in crate::import) kind: Kind,
    /// Whether the row is marked as having missing information.
    pub(in crate::import) missing: bool,
    /// The index of the user within the shard; set in SUBMIT rows only.
    pub(in crate::import) user: u32,
    /// The CPU request in billionths, like `mem`; 0 if there is none. Set in SUBMIT rows only.
    pub(in crate::import) cpu: u64,
    pub(in crate::import) mem: u64,
    /// Whether a request had more than nine decimals.
    pub(in crate::import) rounded: bool,
}

pub(super) struct Row {
    pub(super) time: u64,
    pub(super) event: Option<Event>,
}

/// The time of events after the end of the trace, by the schema.
const AFTER_THE_END: u64 = i64::MAX as u64;
/// The largest `Time`, 2^62 ns, in microseconds.
const LATEST: u64 = (1 << 62) / 1000;

#[derive(Default)]
pub(super) struct Parser {
    users: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
    /// The latest user: the tasks of one job are submitted together by one user.
    latest: u32,
}

/// Iterates over the fields of a line.
struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    /// The number of fields returned so far.
    taken: usize,
}

impl<'a> Fields<'a> {
    /// Returns the next field, with the byte where it starts.
    fn next(&mut self) -> Result<(usize, &'a [u8]), Box<FieldError>> {
        let start = self.start()?;
        let rest = &self.line[start..];
        let length = rest.iter().position(|&b| b == b',').unwrap_or(rest.len());
        self.at = start + length + 1;
        Ok((start, &rest[..length]))
    }

    /// Returns the next field as `next` does, faster for long fields.
    fn next_long(&mut self) -> Result<(usize, &'a [u8]), Box<FieldError>> {
        let start = self.start()?;
        let rest = &self.line[start..];
        let length = memchr::memchr(b',', rest).unwrap_or(rest.len());
        self.at = start + length + 1;
        Ok((start, &rest[..length]))
    }

    fn start(&mut self) -> Result<usize, Box<FieldError>> {
        // `at` is one past the last comma, or one past the end after the last field.
        if self.at > self.line.len() {
            let found = format!("{} columns", self.taken);
            return Err(FieldError::described(self.line.len(), found, COLUMNS));
        }
        self.taken += 1;
        Ok(self.at)
    }

    fn number(&mut self, below: u64, what: &'static str) -> Result<u64, Box<FieldError>> {
        let start = self.start()?;
        let (value, digits) = leading_digits(&self.line[start..]);
        let end = start + digits;
        if (1..=19).contains(&digits) && value < below && self.line.get(end).is_none_or(|&b| b == b',') {
            self.at = end + 1;
            return Ok(value);
        }
        let rest = &self.line[start..];
        let length = rest.iter().position(|&b| b == b',').unwrap_or(rest.len());
        Err(FieldError::new(start, &rest[..length], what))
    }

    /// Parses a request to billionths; an empty field is 0.
    fn request(&mut self, what: &'static str) -> Result<(u64, bool), Box<FieldError>> {
        let (at, text) = self.next()?;
        if text.is_empty() {
            return Ok((0, false));
        }
        let number = decimal(text).and_then(|d| Some((u64::try_from(d.nano).ok()?, d.rounded)));
        number.ok_or_else(|| FieldError::new(at, text, what))
    }

    fn end(&self) -> Result<(), Box<FieldError>> {
        if self.at <= self.line.len() {
            let columns = self.line.iter().filter(|&&b| b == b',').count() + 1;
            return Err(FieldError::described(self.at - 1, format!("{columns} columns"), COLUMNS));
        }
        Ok(())
    }
}

const COLUMNS: &str = "13 columns of task_events";

impl Parser {
    /// Parses one line.
    pub(super) fn row(&mut self, line: &[u8]) -> Result<Row, Box<FieldError>> {
        let mut fields = Fields { line, at: 0, taken: 0 };
        let time = fields.number(u64::MAX, "a time in whole microseconds (column 1)")?;
        if time > LATEST && time != AFTER_THE_END {
            return Err(FieldError::described(0, time, "a time below 4.6e15 microseconds (column 1)"));
        }
        let (_, missing) = fields.next()?;
        let job = fields.number(u64::MAX, "a job number (column 3)")?;
        let index = fields.number(1 << 32, "a task index below 2^32 (column 4)")?;
        let (_, _machine) = fields.next()?;
        let code = fields.number(9, "an event type from 0 to 8 (column 6)")?;
        let (user_at, user) = fields.next_long()?;
        let (_, _class) = fields.next()?;
        let (_, _priority) = fields.next()?;
        let (cpu, cpu_rounded) = fields.request("a CPU request below 18 billion, or nothing (column 10)")?;
        let (mem, mem_rounded) = fields.request("a memory request below 18 billion, or nothing (column 11)")?;
        let (_, _disk) = fields.next()?;
        let (_, _different_machines) = fields.next()?;
        fields.end()?;
        let kind = match code {
            0 => Some(Kind::Submit),
            1 => Some(Kind::Schedule),
            2 => Some(Kind::Evict),
            3 => Some(Kind::Fail),
            4 => Some(Kind::Finish),
            5 => Some(Kind::Kill),
            6 => Some(Kind::Lost),
            _ => None,
        };
        let submitted = kind == Some(Kind::Submit);
        // Events after the end of the trace were not recorded.
        let kind = kind.filter(|_| time != AFTER_THE_END);
        let user = if submitted { self.user(user, user_at)? } else { 0 };
        let (missing, rounded) = (!missing.is_empty(), cpu_rounded || mem_rounded);
        let event = kind.map(|kind| Event { time, job, index: index as u32, kind, missing, user, cpu, mem, rounded });
        Ok(Row { time, event })
    }

    fn user(&mut self, name: &[u8], at: usize) -> Result<u32, Box<FieldError>> {
        if self.names.get(self.latest as usize).is_some_and(|latest| latest.as_bytes() == name) {
            return Ok(self.latest);
        }
        let id = match self.users.get(name) {
            Some(&id) => id,
            None => {
                let text = utf8(name, at, "a user's name")?;
                let id = self.names.len() as u32;
                self.names.push(text.to_string());
                self.users.insert(name.into(), id);
                id
            }
        };
        self.latest = id;
        Ok(id)
    }

    /// Returns the names of the users, indexed by their numbers.
    pub(super) fn into_users(self) -> Vec<String> {
        self.names
    }
}

/// Returns the time of the first row; a row without one is an error when it is parsed.
pub(super) fn first_time(head: &[u8]) -> u64 {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    leading_digits(head).0
}

#[cfg(test)]
mod tests {
    use evenhand_model::Quantity;
    use proptest::prelude::*;

    use super::*;

    /// The reference model: split at commas, parse with std and `Quantity`.
    fn naive(line: &str) -> Option<(u64, Option<Event>)> {
        let f: Vec<&str> = line.split(',').collect();
        let number = |i: usize| f[i].bytes().all(|b| b.is_ascii_digit()).then(|| f[i].parse::<u64>().ok()).flatten();
        let request = |i: usize| match f[i] {
            "" => Some(0),
            text => u64::try_from(Quantity::parse(text).ok()?.nano()?).ok(),
        };
        if f.len() != 13 {
            return None;
        }
        let (time, job, index, code) = (number(0)?, number(2)?, u32::try_from(number(3)?).ok()?, number(5)?);
        let (cpu, mem) = (request(9)?, request(10)?);
        let kind = match code {
            0 => Kind::Submit,
            1 => Kind::Schedule,
            2 => Kind::Evict,
            3 => Kind::Fail,
            4 => Kind::Finish,
            5 => Kind::Kill,
            6 => Kind::Lost,
            7 | 8 => return Some((time, None)),
            _ => return None,
        };
        let missing = !f[1].is_empty();
        Some((time, Some(Event { time, job, index, kind, missing, user: 0, cpu, mem, rounded: false })))
    }

    proptest! {
        #[test]
        fn rows_equal_those_of_the_reference_model(
            times in "[0-9]{1,15}|x",
            missing in "|2",
            ids in "[0-9]{1,18},[0-9]{1,11}|,0|5,",
            rest in "(|[0-9]{1,9}),([0-9]|-1|1x),(|us/er=),2,9,(|[0-9]{1,3}|0\\.[0-9]{1,9}|[0-9]e-0[1-8]|x),(|[0-9]{1,3}|0\\.[0-9]{1,9}|-),,",
            more in "|,|,0",
        ) {
            for line in [format!("{times},{missing},{ids},{rest}"), format!("{times},{missing},{ids},{rest}{more}")] {
                let found = Parser::default().row(line.as_bytes()).ok().map(|row| (row.time, row.event));
                prop_assert_eq!(found, naive(&line), "{}", line);
            }
        }
    }
}
