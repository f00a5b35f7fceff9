//! Reads the `accounting` file of Grid Engine: 45 fields with colons between them in SGE, OGS and Son of Grid Engine,
//! more in Univa's and Altair's, which also write times in milliseconds.
//!
//! A job's name may hold colons; the number of the job and its times, which follow it, tell where it ends.

use std::borrow::Cow;

use evenhand_model::{Nano, Time};

use super::{JobRecord, Jobs, clock_or_seconds, optional, size};
use crate::byte_source::{Meter, Shard};
use crate::import::error::{FieldError, up_to};
use crate::import::lines::{for_each_line, utf8};
use crate::import::parse_number::{NANO, decimal, integer};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part, counted};

// The indexes of the fields that are read, without the colons of the job's name.
const QUEUE: usize = 0;
const GROUP: usize = 2;
const OWNER: usize = 3;
const JOB: usize = 5;
const SUBMIT: usize = 8;
const START: usize = 9;
const END: usize = 10;
const EXIT: usize = 12;
const PROJECT: usize = 31;
const DEPARTMENT: usize = 32;
const SLOTS: usize = 34;
const TASK: usize = 35;
const CATEGORY: usize = 39;
const PE_TASK: usize = 41;
/// The fields of the oldest version that is read.
const FIELDS: usize = 42;

const MEMORY_PER_SLOT: &str = "memory of each slot";
const GPUS_OF_JOB: &str = "GPUs of the job";
pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[
    (MEMORY_PER_SLOT, "a memory request (h_vmem, m_mem_free, mem_free, s_vmem), which is taken as that of each slot."),
    (GPUS_OF_JOB, "a GPU request (gpu, gpus, ngpus), which is taken as that of the whole job."),
];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        tally.held = jobs.builder.len() as u64;
        if line[0] == b'#' || line.len() == 1 {
            return Ok(());
        }
        tally.rows_read += 1;
        row(line, &mut jobs)
    })?;
    jobs.tally.merge(tally);
    Ok(jobs.finish())
}

/// Returns whether a line is one of these files.
pub(in crate::import) fn is_record(line: &[u8]) -> bool {
    split(line).is_some()
}

/// The fields of a line, each with the byte where it starts. The name of the job is one of them.
struct Fields<'a>(Vec<(usize, &'a [u8])>);

/// The fields by which a record is recognised: whole numbers.
const WHOLE: [(usize, &str); 5] =
    [(JOB, "job_number"), (SUBMIT, "submission_time"), (START, "start_time"), (END, "end_time"), (EXIT, "exit_status")];

/// Splits a line at its colons, each part with the byte where it starts.
fn parts(line: &[u8]) -> Vec<(usize, &[u8])> {
    let starts = memchr::memchr_iter(b':', line).map(|colon| colon + 1);
    std::iter::once(0).chain(starts).zip(line.split(|b| *b == b':')).collect()
}

/// Returns the fields of [`WHOLE`] that are no whole numbers, if the name of the job has so many colons.
fn malformed<'a>(fields: &'a [(usize, &[u8])], colons: usize) -> impl Iterator<Item = (usize, &'static str)> + use<'a> {
    WHOLE.into_iter().filter(move |(i, _)| fields.get(i + colons).is_none_or(|(_, text)| integer(text).is_none()))
}

fn split(line: &[u8]) -> Option<Fields<'_>> {
    let mut fields = parts(line);
    let colons = (0..=fields.len().checked_sub(FIELDS)?).find(|colons| malformed(&fields, *colons).next().is_none())?;
    fields.drain(JOB..JOB + colons);
    Some(Fields(fields))
}

/// Describes why a line is no record: it has too few fields, or a number is malformed.
fn no_record(line: &[u8]) -> Box<FieldError> {
    let fields = parts(line);
    let Some(most) = fields.len().checked_sub(FIELDS) else {
        let expected = "a record of Grid Engine: at least 42 fields with colons";
        return FieldError::described(0, counted(fields.len() as u64, "field", "fields"), expected);
    };
    // The number of colons in the name with which the record would be the least malformed, if possible with a job's number.
    let problems = |colons: &usize| {
        let found = malformed(&fields, *colons);
        found.fold((0, false), |(count, of_job), (i, _)| (count + 1, of_job || i == JOB))
    };
    let colons = (0..=most).min_by_key(problems).unwrap_or(0);
    let (i, name) = malformed(&fields, colons).next().unwrap_or(WHOLE[0]);
    let (at, text) = fields.get(i + colons).copied().unwrap_or_default();
    FieldError::new(at, text, up_to(text, format!("field {} ({name}): a whole number", i + 1), u64::MAX))
}

fn row(line: &[u8], jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let fields = split(line).ok_or_else(|| no_record(line))?;
    let field = |i: usize| fields.0.get(i).copied().unwrap_or_default();
    let name = |i: usize| -> Result<Option<Cow<'_, str>>, Box<FieldError>> {
        let (at, text) = field(i);
        let known = !matches!(text, b"" | b"NONE" | b"none" | b"defaultdepartment");
        if known { utf8(text, at, "a name").map(|t| Some(Cow::Borrowed(t))) } else { Ok(None) }
    };
    let (submit, start, end) = (time(field(SUBMIT))?, time(field(START))?, time(field(END))?);
    // The tasks of a parallel job on other hosts have records of their own; the job's counts all its slots.
    if submit.is_none() || !matches!(field(PE_TASK).1, b"NONE" | b"none" | b"") {
        jobs.tally.drop("tasks of a parallel job, which its own record counts");
        return Ok(());
    }
    let (at, text) = field(SLOTS);
    let slots = decimal(text).map(|d| d.nano).ok_or_else(|| FieldError::new(at, text, "slots: a number"))?;
    let requests = Requests::of(field(CATEGORY).1);
    let each = |bytes: Nano| bytes.checked_mul(slots).map(|m| m / NANO);
    let memory = ["h_vmem", "m_mem_free", "mem_free", "s_vmem", "virtual_free"];
    let memory = memory.iter().find_map(|key| requests.get(key)).and_then(size).filter(|m| *m > 0).and_then(each);
    let gpus = ["gpu", "gpus", "ngpus"].iter().find_map(|key| requests.get(key));
    let gpu = gpus.and_then(|text| decimal(text).map(|d| d.nano)).filter(|n| *n > 0);
    if start.is_some() && memory.is_some() {
        jobs.tally.adjust(MEMORY_PER_SLOT);
    }
    if start.is_some() && gpu.is_some() {
        jobs.tally.adjust(GPUS_OF_JOB);
    }
    let limit = requests.get("h_rt").or(requests.get("s_rt"));
    let limit = limit.filter(|text| !text.eq_ignore_ascii_case(b"INFINITY"));
    let limit = limit
        .map(|text| clock_or_seconds(text).ok_or_else(|| FieldError::new(field(CATEGORY).0, text, "h_rt: a duration")));
    let requested = optional(limit.transpose(), jobs)?;
    let number = |i: usize| String::from_utf8_lossy(field(i).1);
    let id = match integer(field(TASK).1) {
        None | Some(0) => number(JOB),
        Some(task) => Cow::Owned(format!("{}.{task}", number(JOB))),
    };
    jobs.push(&JobRecord {
        id: Some(id),
        submit,
        start,
        end,
        requested,
        user: name(OWNER)?,
        account: name(PROJECT)?.or(name(DEPARTMENT)?).or(name(GROUP)?),
        queue: name(QUEUE)?,
        cpu: Some(slots),
        mem: memory,
        gpu,
        ..JobRecord::default()
    })
}

/// Parses a time in seconds, or in milliseconds as Univa's versions write it; `None` for 0.
fn time((at, text): (usize, &[u8])) -> Result<Option<Time>, Box<FieldError>> {
    let value = integer(text).ok_or_else(|| FieldError::new(at, text, "a time: seconds or milliseconds since 1970"))?;
    // 10^11 seconds are in the year 5138, and 10^11 milliseconds in 1973.
    let nanos = Nano::from(value) * if value >= 100_000_000_000 { 1_000_000 } else { NANO };
    Ok(Time::checked_from_nanos(nanos).filter(|_| value > 0))
}

/// The resource requests of a job's category: `-u ann -l h_rt=36000,h_vmem=4G -pe mpi 4`.
struct Requests<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Requests<'a> {
    fn of(category: &'a [u8]) -> Requests<'a> {
        let words: Vec<&[u8]> = category.split(u8::is_ascii_whitespace).collect();
        let lists = words.windows(2).filter(|pair| pair[0] == b"-l").flat_map(|pair| pair[1].split(|b| *b == b','));
        let pairs = lists.filter_map(|one| {
            let equals = one.iter().position(|b| *b == b'=')?;
            Some((&one[..equals], &one[equals + 1..]))
        });
        Requests(pairs.collect())
    }

    fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| *value)
    }
}
