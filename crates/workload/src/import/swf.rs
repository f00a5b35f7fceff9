//! Reads the Standard Workload Format, version 2.2, of the Parallel Workloads Archive (Chapin et al., JSSPP 1999): 18
//! whole numbers per job, -1 for unknown values, header comments `; Key: value`.
//!
//! Real logs deviate from it: MetaCentrum's have 21 columns and memory in bytes per node; ALCF's have a 19th column.
//! (The standard itself allows decimals in fields 6 and 7.) A deviation is an error that offers `--relaxed`, with which
//! deviations are counted and reported.

use evenhand_model::{Detail, Details, Resource, Span, Task, Time, WorkloadBuilder};

use super::error::FieldError;
use super::lines::{for_each_line, utf8};
use super::node_request::{NodeRequest, machines, share};
use super::outcome;
use super::parse_number::{NANO, decimal, fits, leading_digits};
use super::parse_time::is_unknown;
use super::summary::Tally;
use super::{ImportError, ImportOptions, MemoryPer, Part, Processors, counted};
use crate::byte_source::{Meter, Shard};

const RELAXED: &str = "pass --relaxed to accept";
const FIELDS: [&str; 18] = [
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
const JOB: usize = 0;
const SUBMIT: usize = 1;
const WAIT: usize = 2;
const RUN: usize = 3;
const ALLOCATED: usize = 4;
const CPU_TIME: usize = 5;
const USED: usize = 6;
const REQUESTED: usize = 7;
const REQUESTED_TIME: usize = 8;
const MEMORY: usize = 9;
const STATUS: usize = 10;
const USER: usize = 11;
const GROUP: usize = 12;
const QUEUE: usize = 14;
const PARTITION: usize = 15;
/// The fields that hold names instead of numbers in some logs.
const NAMED: [usize; 4] = [USER, GROUP, QUEUE, PARTITION];
/// The fields without which a job is still a task.
const OPTIONAL: [usize; 6] = [CPU_TIME, REQUESTED_TIME, STATUS, 13, 16, 17];
/// The status of a cancelled job.
const CANCELLED: i64 = 5;
/// The fields in which -1 means unknown and another negative number is invalid.
const NOT_NEGATIVE: [usize; 8] = [SUBMIT, WAIT, RUN, ALLOCATED, USED, REQUESTED, REQUESTED_TIME, MEMORY];

pub(super) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let memory = Resource::new("mem", options.swf_memory_unit.name());
    let mut log = Log {
        builder: options.builder([Resource::new("cpu", "processors"), memory]),
        options,
        header: Vec::new(),
        last_job: None,
        names: Default::default(),
        counts: Counts::default(),
    };
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        match line.trim_ascii_start().strip_prefix(b";") {
            Some(comment) => log.comment(comment),
            None => {
                tally.rows_read += 1;
                log.row(line, tally)?;
                tally.held = log.builder.len() as u64;
            }
        }
        Ok(())
    })?;
    for (key, value) in &log.header {
        log.builder.add_header(key, value);
    }
    log.counts.add_to(&mut tally);
    Ok(Part { builder: log.builder, tally })
}

struct Log<'a> {
    builder: WorkloadBuilder,
    options: &'a ImportOptions,
    header: Vec<(String, String)>,
    last_job: Option<i64>,
    /// The latest user, group and queue as text: jobs of one user are often consecutive.
    names: [(i64, String); 3],
    counts: Counts,
}

/// The numbers of rows by assumption or deviation.
#[derive(Clone, Copy, Default)]
struct Counts {
    requested_memory: u64,
    used_memory: u64,
    no_memory: u64,
    partition: u64,
    decimals: u64,
    rounded: u64,
    extra: u64,
    order: u64,
    negative: u64,
    named: u64,
    malformed: u64,
}

const REQUESTED_MEMORY: &str = "requested memory";
const USED_MEMORY: &str = "used memory";
const NO_MEMORY: &str = "no memory";
const PARTITION_AS_QUEUE: &str = "partition";
const DECIMALS: &str = "decimals";
const ROUNDED: &str = "rounded";
const EXTRA: &str = "extra columns";
const ORDER: &str = "order";
const NEGATIVE: &str = "negative";
const NAMES: &str = "names";
const MALFORMED: &str = "malformed optional field";

impl Counts {
    fn add_to(self, tally: &mut Tally) {
        for (what, n) in [
            (REQUESTED_MEMORY, self.requested_memory),
            (USED_MEMORY, self.used_memory),
            (NO_MEMORY, self.no_memory),
            (PARTITION_AS_QUEUE, self.partition),
            (DECIMALS, self.decimals),
            (ROUNDED, self.rounded),
            (EXTRA, self.extra),
            (ORDER, self.order),
            (NEGATIVE, self.negative),
            (NAMES, self.named),
            (MALFORMED, self.malformed),
        ] {
            tally.adjusted.add(what.into(), n);
        }
    }
}

impl Log<'_> {
    /// Reads a comment line: `Key: value` with a key of one word. Other lines continue the value before.
    fn comment(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let is_key = |k: &str| !k.is_empty() && k.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let key_value = text.split_once(':').map(|(k, v)| (k.trim(), v.trim())).filter(|(k, _)| is_key(k));
        match (key_value, self.header.last_mut()) {
            (Some((key, value)), _) => self.header.push((key.to_string(), value.to_string())),
            (None, _) if text.trim().is_empty() => {}
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(text.trim());
            }
            (None, None) => self.header.push(("Comment".to_string(), text.trim().to_string())),
        }
    }

    fn row(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), Box<FieldError>> {
        let row =
            Row::parse(line, self.options.relaxed, self.options.lenient).map_err(|error| useful_remedy(error, line))?;
        let fields = &row.fields;
        let job = fields[JOB].whole;
        let mut counts = self.counts;
        if let Some(last) = self.last_job.filter(|last| job <= *last) {
            if !self.options.relaxed {
                let found = format!("job {job} after job {last}");
                return Err(
                    FieldError::described(fields[JOB].at as usize, found, "job numbers that increase").remedy(RELAXED)
                );
            }
            counts.order += 1;
        }
        counts.decimals += u64::from(row.decimals);
        counts.rounded += u64::from(row.rounded);
        counts.negative += u64::from(row.negative);
        counts.extra += u64::from(!row.extra.is_empty());
        counts.named += u64::from(row.names.iter().any(Option::is_some));
        counts.malformed += u64::from(row.malformed);

        let [submit, wait, run, requested] = row.time_fields()?;
        let (first, second) = match self.options.processors {
            Processors::Allocated => (ALLOCATED, REQUESTED),
            Processors::Requested => (REQUESTED, ALLOCATED),
        };
        let processors = fields[first].positive().or(fields[second].positive());
        let (Some(submit), Some(run), Some(processors)) = (submit, run, processors) else {
            // Cancelled while it waited: it lacks processors and a run time because it never had any.
            let never_ran = fields[STATUS].whole == CANCELLED && run.is_none_or(|run| run == 0);
            tally.drop(match (submit, run) {
                (None, _) => "unknown submit time",
                _ if never_ran => "cancelled before they started",
                (_, None) => "unknown run time",
                _ => "unknown number of processors",
            });
            (self.last_job, self.counts) = (Some(job), counts);
            return Ok(());
        };
        let (memory, which) = match (fields[MEMORY].positive(), fields[USED].positive()) {
            (Some(m), _) => (m, &mut counts.requested_memory),
            (None, Some(m)) => (m, &mut counts.used_memory),
            (None, None) => (0, &mut counts.no_memory),
        };
        *which += 1;
        let per = memory;
        let copies = match self.options.swf_memory_per {
            MemoryPer::Processor => processors,
            MemoryPer::Node => u128::from(row.nodes()?.unwrap_or(1)) * NANO,
            MemoryPer::Job => NANO,
        };
        // Most logs have no memory: avoid a 128-bit division per row.
        let total = if memory == 0 { Some(0) } else { memory.checked_mul(copies).map(|m| m / NANO) };
        let total = total.filter(|m| fits(*m));
        let memory = total.ok_or_else(|| {
            FieldError::new(
                fields[MEMORY].at as usize,
                fields[MEMORY].whole.to_string().as_bytes(),
                "less than 10^18 in total",
            )
        })?;
        // A column 21 of another meaning is none.
        let request = row.request().ok().flatten();
        let each = |each: u128| match self.options.swf_memory_per {
            _ if memory == 0 => 0,
            MemoryPer::Processor => share(per, each, NANO),
            MemoryPer::Node => per,
            MemoryPer::Job => share(per, each, processors),
        };
        let chunks = request.as_ref().and_then(|request| request.chunks(processors, each));
        let requires = request.as_ref().map(|request| request.requires.as_str()).filter(|words| !words.is_empty());
        let on = row.column(0).and_then(machines);
        let details = Details::from_fn(|detail| match detail {
            Detail::Chunks => chunks.as_deref(),
            Detail::Requires => requires,
            Detail::Qos => None,
            Detail::Machines => on.as_deref(),
            Detail::Outcome => outcome_of(fields[STATUS].whole),
            Detail::Reservation => None,
        });
        let submit = Time::from_nanos(submit);
        // The partition replaces the queue in logs without queues.
        let has_queue = fields[QUEUE].whole != -1 || row.names[2].is_some();
        let queue = if has_queue { &fields[QUEUE] } else { &fields[PARTITION] };
        counts.partition += u64::from(!has_queue && (queue.whole != -1 || row.names[3].is_some()));
        for ((value, text), id) in self.names.iter_mut().zip([fields[USER].whole, fields[GROUP].whole, queue.whole]) {
            if *value != id || text.is_empty() {
                (*value, *text) = (id, id.to_string());
            }
        }
        let name = |i: usize| {
            // The partition's name follows the queue's.
            let named = row.names[if i == 2 && !has_queue { 3 } else { i }];
            named.or_else(|| Some(self.names[i].1.as_str()).filter(|_| self.names[i].0 != -1))
        };
        self.builder.push(&Task {
            submit,
            start: wait.and_then(|w| submit.checked_add(Span::from_nanos(w))),
            duration: Span::from_nanos(run),
            requested: requested.map(Span::from_nanos),
            user: name(0).unwrap_or("unknown"),
            account: name(1),
            queue: name(2),
            amounts: &[processors, memory],
            count: 1,
            nodes: request.as_ref().and_then(NodeRequest::nodes),
            details,
            ..Task::default()
        });
        tally.job_numbers.push((submit, u64::try_from(job).unwrap_or(0)));
        (self.last_job, self.counts) = (Some(job), counts);
        Ok(())
    }
}

/// How a job of a status ended; `None` where the status says nothing.
fn outcome_of(status: i64) -> Option<&'static str> {
    match status {
        0 => Some(outcome::FAILED),
        1 => Some(outcome::COMPLETED),
        CANCELLED => Some(outcome::CANCELLED),
        _ => None,
    }
}

/// A field: a whole number and, where decimals are allowed, billionths.
#[derive(Clone, Copy, Default)]
struct Field {
    whole: i64,
    billionths: u32,
    /// The byte of the line where the field starts; lines are shorter than 2^32 bytes.
    at: u32,
}

impl Field {
    /// Returns the value in billionths, if it is known.
    fn known(self) -> Option<u128> {
        u64::try_from(self.whole).ok().map(|w| u128::from(w) * NANO + u128::from(self.billionths))
    }

    fn positive(self) -> Option<u128> {
        self.known().filter(|v| *v > 0)
    }
}

/// Returns the error to show for a row that is not standard: `error`, unless it offers `--relaxed` and the row is invalid
/// with that too. Then it is the error that would remain.
fn useful_remedy(error: Box<FieldError>, line: &[u8]) -> Box<FieldError> {
    if error.remedy != RELAXED {
        return error;
    }
    match Row::parse(line, true, false).and_then(|row| row.time_fields().map(drop)) {
        Ok(()) => error,
        Err(remaining) => remaining,
    }
}

struct Row<'a> {
    fields: [Field; 18],
    /// The text after the last field.
    extra: &'a [u8],
    extra_at: usize,
    /// Whether a field that must be whole in the standard has decimals.
    decimals: bool,
    /// Whether a field has more than nine decimals.
    rounded: bool,
    /// Whether a field is negative and not -1, although only -1 is allowed.
    negative: bool,
    /// The fields of [`NAMED`] that hold names.
    names: [Option<&'a str>; 4],
    /// Whether a field of [`OPTIONAL`] is malformed and taken as unknown.
    malformed: bool,
}

impl Row<'_> {
    /// Parses a line. With `lenient`, a malformed field of [`OPTIONAL`] is unknown, and names are accepted as with `relaxed`.
    fn parse(line: &[u8], relaxed: bool, lenient: bool) -> Result<Row<'_>, Box<FieldError>> {
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
                let error = || FieldError::new(at, text, expected(i));
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
    fn time_fields(&self) -> Result<[Option<u64>; 4], Box<FieldError>> {
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

    /// Returns a column after the 18 of the standard, counted from 0.
    fn column(&self, index: usize) -> Option<&str> {
        let mut extra = self.extra.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        str::from_utf8(extra.nth(index)?).ok()
    }

    /// Returns the nodes that a MetaCentrum row requests in column 21; `None` without that column.
    fn request(&self) -> Result<Option<NodeRequest>, Box<FieldError>> {
        let Some(text) = self.column(2) else { return Ok(None) };
        let error = || FieldError::new(self.extra_at, text.as_bytes(), "nodes like 2:ppn=8 in column 21");
        NodeRequest::parse(text).map(Some).ok_or_else(error)
    }

    /// Returns the number of these nodes.
    fn nodes(&self) -> Result<Option<u32>, Box<FieldError>> {
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

/// Returns the assumptions as sentences, and removes the memory column if no job has any.
pub(super) fn assumptions(builder: &mut WorkloadBuilder, tally: &Tally, options: &ImportOptions) -> Vec<String> {
    let rows = |what| tally.adjusted.of(what);
    let jobs = |n| counted(n, "job", "jobs");
    let processors = match options.processors {
        Processors::Allocated => "Processors are the allocated ones (field 5), or else the requested ones (field 8).",
        Processors::Requested => "Processors are the requested ones (field 8), or else the allocated ones (field 5).",
    };
    let mut sentences = vec![processors.to_string()];
    if rows(REQUESTED_MEMORY) + rows(USED_MEMORY) == 0 {
        sentences.push("No job has a memory value, so cpu is the only resource.".to_string());
    } else {
        sentences.push(format!(
            "Memory is in {} per {}: requested (field 10) for {}, used (field 7) for {}, unknown and set to 0 for {}.",
            options.swf_memory_unit,
            options.swf_memory_per,
            jobs(rows(REQUESTED_MEMORY)),
            jobs(rows(USED_MEMORY)),
            jobs(rows(NO_MEMORY)),
        ));
    }
    builder.remove_unused("mem");
    for (n, what) in [
        (rows(PARTITION_AS_QUEUE), "no queue; the partition (field 16) is used instead."),
        (
            rows(DECIMALS),
            "decimals where the standard requires whole numbers; they are kept in times, processors and memory, and dropped elsewhere.",
        ),
        (rows(ROUNDED), "more than nine decimals, rounded to nine."),
        (rows(EXTRA), "more than 18 columns; of the additional ones, nodes and machines are read."),
        (rows(NEGATIVE), "negative numbers other than -1, which are taken as unknown."),
        (rows(NAMES), "names where the standard has numbers of users, groups, queues or partitions."),
        (rows(MALFORMED), "a malformed optional field, which is taken as unknown."),
        (rows(ORDER), "a number that is not greater than that of the job before."),
    ] {
        if n > 0 {
            sentences.push(format!("{} {what}", counted(n, "job has", "jobs have")));
        }
    }
    sentences
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
