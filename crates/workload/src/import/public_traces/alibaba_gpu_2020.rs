//! Reads Alibaba's GPU trace of 2020: `pai_task_table.csv`, and `pai_job_table.csv` for the users, in any order. Both are
//! published without header lines.
//!
//! A task is `inst_num` instances of its demand: `plan_cpu` and `plan_gpu` in percent, `plan_mem` in GB. Its start is its
//! launch, and the trace has no submission: tasks are taken as submitted when they start.

use std::borrow::Cow;
use std::collections::HashMap;

use evenhand_model::{Nano, Resource, Task, WorkloadBuilder};

use crate::byte_source::{Meter, Shard};
use crate::import::accounting::epoch;
use crate::import::csv::split;
use crate::import::error::FieldError;
use crate::import::lines::{for_each_line, utf8};
use crate::import::parse_number::{decimal, integer};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part, counted};

const NO_USER: &str = "no user";
const SUBMIT: &str = "submitted at the start";

/// The fields of the two tables.
const JOB_FIELDS: usize = 6;
const TASK_FIELDS: usize = 10;
const JOB_TABLE: [&str; JOB_FIELDS] = ["job_name", "inst_id", "user", "status", "start_time", "end_time"];
const TASK_TABLE: [&str; TASK_FIELDS] = [
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];

/// Whether a field is a status of a job, a task or an instance.
pub(in crate::import) fn is_status(field: &[u8]) -> bool {
    [&b"Terminated"[..], b"Failed", b"Running", b"Waiting", b"Interrupted", b"Ready"].contains(&field)
}

/// Returns whether a line is of one of the two tables: a row, or its header where somebody put it in front.
pub(in crate::import) fn is_row(line: &[u8]) -> bool {
    let Ok(fields) = split(line, b',') else { return false };
    let is_header =
        |names: &[&str]| fields.iter().map(|(_, field)| field.trim_ascii()).eq(names.iter().map(|n| n.as_bytes()));
    if is_header(&JOB_TABLE) || is_header(&TASK_TABLE) {
        return true;
    }
    let numbers: &[usize] = match fields.len() {
        JOB_FIELDS => &[4, 5],
        TASK_FIELDS => &[2, 4, 5, 6, 7, 8],
        _ => return false,
    };
    let is_number_or_empty = |at: &usize| {
        let text = fields[*at].1.trim_ascii();
        text.is_empty() || decimal(text).is_some()
    };
    is_status(fields[3].1.trim_ascii()) && numbers.iter().all(is_number_or_empty)
}

pub(in crate::import) fn read(
    shards: Vec<Shard>,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Part, ImportError> {
    let resources = [Resource::new("cpu", ""), Resource::new("mem", "GB"), Resource::new("gpu", "")];
    let mut builder = WorkloadBuilder::new(resources);
    let mut tally = Tally::default();
    let mut users: HashMap<Vec<u8>, String> = HashMap::new();
    // The users are in the table that may be read second.
    let mut tasks: Vec<PaiTask> = Vec::new();
    let names: Vec<String> = shards.iter().map(|shard| shard.name.clone()).collect();
    for shard in shards {
        for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
            let fields = split(line, b',')?;
            match fields.len() {
                // A header that was put in front.
                _ if fields[0].1.trim_ascii() == b"job_name" => Ok(()),
                JOB_FIELDS => {
                    let user = utf8(&fields[2].1, fields[2].0, "a user's name")?;
                    users.insert(fields[0].1.to_vec(), user.to_string());
                    Ok(())
                }
                TASK_FIELDS => {
                    tally.rows_read += 1;
                    tasks.extend(task(&fields, tally)?);
                    Ok(())
                }
                n => {
                    let found = counted(n as u64, "column", "columns");
                    Err(FieldError::described(line.len(), found, "10 columns of pai_task_table or 6 of pai_job_table"))
                }
            }
        })?;
    }
    if tally.rows_read == 0 && !users.is_empty() {
        return Err(ImportError::Shape {
            file: names.join(", "),
            found: "pai_job_table, which has only the users".to_string(),
            expected: "pai_task_table, which has the demands and the run times".to_string(),
            remedy: "name pai_task_table.csv too, before or after it".to_string(),
        });
    }
    for task in tasks {
        let user = users.get(&task.job);
        if user.is_none() {
            tally.adjust(NO_USER);
        }
        tally.adjust(SUBMIT);
        builder.push(&Task {
            submit: task.start,
            start: Some(task.start),
            duration: task.end.since(task.start),
            user: user.map_or("unknown", String::as_str),
            queue: task.gpu_type.as_deref(),
            amounts: &task.amounts,
            count: task.instances,
            ..Task::default()
        });
    }
    Ok(Part { builder, tally })
}

struct PaiTask {
    job: Vec<u8>,
    start: evenhand_model::Time,
    end: evenhand_model::Time,
    amounts: [Nano; 3],
    instances: u32,
    gpu_type: Option<String>,
}

fn task(fields: &[(usize, Cow<'_, [u8]>)], tally: &mut Tally) -> Result<Option<PaiTask>, Box<FieldError>> {
    let field = |i: usize| (fields[i].0, fields[i].1.trim_ascii());
    let number = |i: usize| -> Result<Nano, Box<FieldError>> {
        let (at, text) = field(i);
        if text.is_empty() {
            return Ok(0);
        }
        decimal(text).map(|d| d.nano).ok_or_else(|| FieldError::new(at, text, "a number"))
    };
    let (Some(start), Some(end)) = (epoch(field(4).1), epoch(field(5).1)) else {
        tally.drop(if field(4).1.is_empty() { "never started" } else { "no end" });
        return Ok(None);
    };
    if end < start {
        let found = format!("an end {} s before the start", start.since(end));
        return Err(FieldError::described(field(5).0, found, "an end that is not before the start"));
    }
    let (at, instances) = field(2);
    let whole = instances.strip_suffix(b".0").unwrap_or(instances);
    let instances = integer(whole).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let instances = instances.ok_or_else(|| FieldError::new(at, field(2).1, "a number of instances"))?;
    let gpu_type = utf8(field(9).1, field(9).0, "a type of GPU")?;
    Ok(Some(PaiTask {
        job: field(0).1.to_vec(),
        start,
        end,
        amounts: [number(6)? / 100, number(7)?, number(8)? / 100],
        instances,
        gpu_type: (!gpu_type.is_empty()).then(|| gpu_type.to_string()),
    }))
}

pub(in crate::import) fn assumptions(tally: &Tally) -> Vec<String> {
    let sentences = [
        (SUBMIT, "no submission in this trace; the start is taken as the submission."),
        (NO_USER, "no user, because pai_job_table.csv was not read; the user is taken to be \"unknown\"."),
    ];
    let sentence = |(what, rest): (&str, &str)| {
        let n = tally.adjusted.of(what);
        (n > 0).then(|| format!("{} {rest}", counted(n, "row has", "rows have")))
    };
    sentences.into_iter().filter_map(sentence).collect()
}
