//! Reads the history of HTCondor: the history file, `condor_history -l`, and `condor_history -json` or `-jsonl`.
//!
//! In the text form a job is a run of lines `Attribute = value`, ended by a line of asterisks or a blank line. Names of
//! attributes are compared without case. A job that started several times is taken to have run once, from its last
//! start, because the history has no others.

use std::borrow::Cow;
use std::collections::HashMap;

use evenhand_model::Nano;
use serde_json::Value;

use super::{JobRecord, Jobs, Records, epoch, for_each_record};
use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::lines::{for_each_line_or_blank, utf8};
use crate::import::parse_number::{NANO, decimal};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part};

const SEVERAL_STARTS: &str = "several starts";
const ONE_CPU: &str = "one processor";
pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[
    (SEVERAL_STARTS, "started more than once; only their last run is kept."),
    (ONE_CPU, "no number of processors, or an expression, which is taken as one."),
];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut shard = shard;
    let head = shard.head()?;
    let json = head.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|b| matches!(b, b'{' | b'['));
    let mut jobs = Jobs::new(options);
    if json {
        for_each_record(shard, options, meter, Records::Objects, &mut jobs, |ad, jobs| {
            let attributes = ad.as_object().into_iter().flatten();
            let literal = |value: &Value| match value {
                Value::String(text) => Some(text.as_bytes().to_vec()),
                Value::Number(number) => Some(number.to_string().into_bytes()),
                _ => None,
            };
            let ad = attributes.filter_map(|(name, value)| Some((name.to_ascii_lowercase(), literal(value)?)));
            job(&ad.collect(), jobs)
        })?;
        return Ok(jobs.finish());
    }
    let file = shard.name.clone();
    let mut tally = Tally::default();
    let mut ad = Ad::new();
    let mut first_line = 0;
    for_each_line_or_blank(shard, options, meter, &mut tally, |line, number, tally| {
        tally.held = jobs.builder.len() as u64;
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"***") {
            return if ad.is_empty() { Ok(()) } else { flush(&mut ad, &mut jobs, tally) };
        }
        if ad.is_empty() {
            first_line = number;
        }
        let (name, value) = attribute(line)?;
        ad.insert(name.to_ascii_lowercase(), value.to_vec());
        Ok(())
    })?;
    if !ad.is_empty()
        && let Err(error) = flush(&mut ad, &mut jobs, &mut tally)
    {
        if !options.lenient {
            return Err(error.located(&file, first_line).into());
        }
        crate::import::lines::malformed(&mut tally, &error);
    }
    jobs.tally.merge(tally);
    Ok(jobs.finish())
}

/// The attributes of a job that are literals, by their names in lower case.
type Ad = HashMap<String, Vec<u8>>;

/// Returns whether a line is an attribute of a job.
pub(in crate::import) fn is_attribute(line: &[u8]) -> bool {
    attribute(line).is_ok()
}

fn attribute(line: &[u8]) -> Result<(&str, &[u8]), Box<FieldError>> {
    let error = || FieldError::new(0, line, "Attribute = value, or a line of asterisks after a job");
    let equals = memchr::memchr(b'=', line).ok_or_else(error)?;
    let (name, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    if name.is_empty() || !name.iter().all(word) || name[0].is_ascii_digit() {
        return Err(error());
    }
    let value = match value {
        [b'"', inner @ .., b'"'] => inner,
        plain => plain,
    };
    Ok((utf8(name, 0, "an attribute's name")?, value))
}

fn flush(ad: &mut Ad, jobs: &mut Jobs, tally: &mut Tally) -> Result<(), Box<FieldError>> {
    tally.rows_read += 1;
    job(&std::mem::take(ad), jobs)
}

fn job(ad: &Ad, jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let get = |name: &str| ad.get(&name.to_ascii_lowercase()).map(Vec::as_slice);
    let number = |name: &str| get(name).and_then(decimal).map(|d| d.nano);
    let positive = |names: &[&str]| names.iter().find_map(|name| number(name).filter(|n| *n > 0));
    let text = |name: &str| get(name).map(|t| String::from_utf8_lossy(t).into_owned()).filter(|t| !t.is_empty());
    let time = |name: &str| get(name).and_then(epoch);
    if get("ClusterId").is_none() && get("QDate").is_none() && get("GlobalJobId").is_none() {
        return Err(FieldError::described(0, "a record without ClusterId and QDate", "a job of HTCondor"));
    }
    // 7 is the scheduler universe (DAGMan), 12 the local one: both run beside the queue.
    if matches!(get("JobUniverse"), Some(b"7" | b"12")) {
        jobs.tally.drop("jobs of the scheduler or local universe, which hold no machine");
        return Ok(());
    }
    let start = time("JobCurrentStartDate").or(time("JobStartDate"));
    let over = match get("JobStatus") {
        Some(b"3" | b"4") => true,
        Some(_) => false,
        None => time("CompletionDate").is_some(),
    };
    let end = time("CompletionDate").or(time("EnteredCurrentStatus")).filter(|_| over);
    if start.is_some() && number("NumJobStarts").is_some_and(|n| n > NANO) {
        jobs.tally.adjust(SEVERAL_STARTS);
    }
    let cpu = positive(&["CpusProvisioned", "RequestCpus"]);
    if cpu.is_none() && start.is_some() {
        jobs.tally.adjust(ONE_CPU);
    }
    let mebibytes = positive(&["MemoryProvisioned", "RequestMemory"]);
    // `group_physics.ann` names the group and the user.
    let group = text("AcctGroup").or_else(|| {
        let whole = text("AccountingGroup")?;
        Some(whole.rsplit_once('.').map_or(whole.clone(), |(group, _)| group.to_string()))
    });
    let user = text("Owner").or_else(|| text("User").map(|u| u.split('@').next().unwrap_or_default().to_string()));
    let id = text("ClusterId").map(|cluster| format!("{cluster}.{}", text("ProcId").unwrap_or_else(|| "0".into())));
    jobs.push(&JobRecord {
        id: id.or_else(|| text("GlobalJobId")).map(Cow::Owned),
        submit: time("QDate"),
        start,
        end,
        user: user.map(Cow::Owned),
        account: group.map(Cow::Owned),
        cpu: Some(cpu.unwrap_or(NANO)),
        mem: mebibytes.and_then(|m: Nano| m.checked_mul(1 << 20)),
        gpu: positive(&["GPUsProvisioned", "RequestGPUs"]),
        // 11 is the parallel universe; jobs of all others have one slot.
        nodes: if matches!(get("JobUniverse"), Some(b"11")) { None } else { Some(1) },
        ..JobRecord::default()
    })
}
