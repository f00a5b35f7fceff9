//! Reads LSF's `lsb.acct`: one record a line, fields with blanks between them, texts in double quotes, in which two
//! quotation marks are one.
//!
//! Fields are counted from the left, and lists of hosts and of options move those that follow; newer versions add
//! fields at the end. The run limit comes before `options3`, as real files have it, not after, as the manual says.

use std::borrow::Cow;
use std::collections::BTreeSet;

use evenhand_model::{Detail, Details, Nano, Span};

use super::{JobRecord, Jobs, OTHER_EVENT, epoch};
use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::lines::for_each_line;
use crate::import::parse_number::{NANO, decimal, integer};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part, counted};

const MEMORY_OF_JOB: &str = "memory of the job";
const GPUS_OF_HOST: &str = "GPUs of each host";
pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[
    (MEMORY_OF_JOB, "a memory request (rusage[mem=…]), which is taken as MiB of the whole job."),
    (GPUS_OF_HOST, "a GPU request (ngpus_physical), which is taken as that of each host."),
];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        tally.held = jobs.builder.len() as u64;
        if line[0] == b'#' {
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
    let mut words = line.split(|b| *b == b' ');
    let event = words.next().and_then(|w| w.strip_prefix(b"\"")).and_then(|w| w.strip_suffix(b"\""));
    let version = words.next().is_some_and(|w| w.len() > 2 && w[0] == b'"' && w[1].is_ascii_digit());
    event.is_some_and(|e| e.iter().all(|b| b.is_ascii_uppercase() || *b == b'_')) && version
}

/// The fields of a record from left to right.
struct Fields<'a> {
    fields: Vec<(usize, Cow<'a, [u8]>)>,
    next: usize,
    length: usize,
}

impl<'a> Fields<'a> {
    fn split(line: &'a [u8]) -> Result<Fields<'a>, Box<FieldError>> {
        let mut fields = Vec::new();
        let mut at = 0;
        while at < line.len() {
            if line[at] == b' ' {
                at += 1;
                continue;
            }
            if line[at] != b'"' {
                let end = memchr::memchr(b' ', &line[at..]).map_or(line.len(), |n| at + n);
                fields.push((at, Cow::Borrowed(&line[at..end])));
                at = end;
                continue;
            }
            let (start, mut text) = (at, Vec::new());
            at += 1;
            loop {
                match (line.get(at), line.get(at + 1)) {
                    (Some(b'"'), Some(b'"')) => {
                        text.push(b'"');
                        at += 2;
                    }
                    (Some(b'"'), _) => break,
                    (Some(byte), _) => {
                        text.push(*byte);
                        at += 1;
                    }
                    (None, _) => {
                        return Err(FieldError::described(start, "a text without its closing quotation mark", "\"…\""));
                    }
                }
            }
            at += 1;
            fields.push((start, Cow::Owned(text)));
        }
        Ok(Fields { fields, next: 0, length: line.len() })
    }

    /// Returns the next field, if the record goes on.
    fn take(&mut self) -> Option<(usize, &[u8])> {
        let (at, text) = self.fields.get(self.next)?;
        self.next += 1;
        Some((*at, text))
    }

    fn needed(&mut self, what: &'static str) -> Result<(usize, &[u8]), Box<FieldError>> {
        let (n, length) = (self.fields.len() as u64, self.length);
        let found = counted(n, "field", "fields");
        self.take().ok_or_else(|| FieldError::described(length, found, format!("{what} in a JOB_FINISH record")))
    }

    fn skip(&mut self, n: usize) {
        self.next = self.next.saturating_add(n);
    }

    fn number(&mut self, what: &'static str) -> Result<usize, Box<FieldError>> {
        let (at, text) = self.needed(what)?;
        let number = integer(text).and_then(|n| usize::try_from(n).ok());
        number.ok_or_else(|| FieldError::new(at, text, format!("{what}, a number")))
    }

    fn text(&mut self, what: &'static str) -> Result<String, Box<FieldError>> {
        let (at, text) = self.needed(what)?;
        String::from_utf8(text.to_vec()).map_err(|_| FieldError::new(at, text, format!("{what} in UTF-8")))
    }
}

fn row(line: &[u8], jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    if !is_record(line) {
        return Err(FieldError::new(0, line, "a record of lsb.acct such as \"JOB_FINISH\" \"10.1\" …"));
    }
    let mut fields = Fields::split(line)?;
    if fields.needed("the event")?.1 != b"JOB_FINISH" {
        jobs.tally.drop(OTHER_EVENT);
        return Ok(());
    }
    fields.skip(1);
    let end = epoch(fields.needed("the time of the event")?.1);
    let id = fields.text("jobId")?;
    fields.skip(2);
    let requested_slots = fields.number("numProcessors")?;
    let submit = epoch(fields.needed("submitTime")?.1);
    fields.skip(2);
    let start = epoch(fields.needed("startTime")?.1);
    let (user, queue) = (fields.text("userName")?, fields.text("queue")?);
    let request = fields.text("resReq")?;
    fields.skip(8);
    let asked = fields.number("numAskedHosts")?;
    fields.skip(asked);
    let executed = fields.number("numExHosts")?;
    let (mut slots, mut hosts) = (0u64, BTreeSet::new());
    for _ in 0..executed {
        let host = fields.text("execHost")?;
        // A word is a slot, or `16*host` the slots of a host.
        let (n, host) = host.split_once('*').and_then(|(n, h)| Some((n.parse().ok()?, h))).unwrap_or((1, &host));
        slots = slots.saturating_add(n);
        hosts.insert(host.to_string());
    }
    // jStatus, hostFactor, jobName, command, 19 fields of usage and mailUser.
    fields.skip(4 + 19 + 1);
    let project = fields.take().map(|(_, text)| String::from_utf8_lossy(text).into_owned());
    // exitStatus, maxNumProcessors, loginShell and timeExpression; the index is 0 of a job that is no task of an array.
    fields.skip(4);
    let index = fields.take().and_then(|(_, text)| integer(text)).filter(|index| *index > 0);
    // maxRMem, maxRSwap, and the 21 fields to jobDescription.
    fields.skip(2 + 21);
    let (limit, effective) = limit_and_request(&mut fields);
    let request = effective.filter(|text| !text.is_empty()).unwrap_or(request);
    let memory = rusage(&request, "mem").map(|(mebibytes, _)| mebibytes).and_then(|m| m.checked_mul(1 << 20));
    let gpu = rusage(&request, "ngpus_physical").and_then(|(n, per)| match per {
        "task" | "slot" => n.checked_mul(Nano::from(slots.max(1))),
        _ => n.checked_mul(hosts.len().max(1) as Nano),
    });
    if start.is_some() && memory.is_some() {
        jobs.tally.adjust(MEMORY_OF_JOB);
    }
    if start.is_some() && gpu.is_some() {
        jobs.tally.adjust(GPUS_OF_HOST);
    }
    let slots = if slots > 0 { Nano::from(slots) } else { requested_slots as Nano };
    let mut details = Details::default();
    let id = match index {
        Some(index) => {
            let task = format!("{id}[{index}]");
            details[Detail::Array] = Some(Cow::Owned(id));
            task
        }
        None => id,
    };
    jobs.push(&JobRecord {
        id: Some(Cow::Owned(id)),
        details,
        submit,
        start,
        end,
        requested: limit,
        user: Some(user.into()),
        account: project.map(Cow::Owned),
        queue: Some(queue.into()),
        cpu: Some(slots * NANO),
        mem: memory.filter(|m| *m > 0),
        gpu: gpu.filter(|n| *n > 0),
        nodes: Some(hosts.len() as u64),
        ..JobRecord::default()
    })
}

/// Returns the run limit and the effective resource request, which LSF has recorded since version 9; `None` where the
/// record ends before.
fn limit_and_request(fields: &mut Fields<'_>) -> (Option<Span>, Option<String>) {
    let number = |fields: &mut Fields<'_>| {
        fields.take().and_then(|(_, text)| integer(text)).and_then(|n| usize::try_from(n).ok())
    };
    let Some(options) = number(fields) else { return (None, None) };
    fields.skip(options.saturating_mul(2));
    let Some(usages) = number(fields) else { return (None, None) };
    for _ in 0..usages {
        // Host, memory, swap, user time, system time, and as many more as the next number says.
        fields.skip(5);
        let Some(more) = number(fields) else { return (None, None) };
        fields.skip(more);
    }
    let limit = fields.take().and_then(|(_, text)| integer(text)).filter(|seconds| *seconds > 0);
    let limit = limit.and_then(|seconds| Span::checked_from_nanos(Nano::from(seconds) * NANO));
    fields.skip(2);
    (limit, fields.take().map(|(_, text)| String::from_utf8_lossy(text).into_owned()))
}

/// Returns the amount of `name` in the `rusage[…]` of a request, in billionths, and what it is per (`host`, `task`).
fn rusage<'a>(request: &'a str, name: &str) -> Option<(Nano, &'a str)> {
    let (_, list) = request.split_once("rusage[")?;
    let list = list.split(']').next()?;
    list.split([',', ':']).find_map(|one| {
        let (key, value) = one.trim().split_once('=')?;
        if key.trim() != name {
            return None;
        }
        let (value, per) = value.split_once('/').unwrap_or((value, ""));
        Some((decimal(value.trim().as_bytes())?.nano, per.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_in_rusage() {
        let request =
            "select[(type == local)] order[r15s:pg] rusage[mem=6000.00,ngpus_physical=2.00/host] span[hosts=1]";
        assert_eq!(rusage(request, "mem"), Some((6000 * NANO, "")));
        assert_eq!(rusage(request, "ngpus_physical"), Some((2 * NANO, "host")));
        assert_eq!(rusage(request, "swp"), None);
        assert_eq!(rusage("select[mem>4]", "mem"), None);
    }
}
