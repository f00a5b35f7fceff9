//! Reads the job log of Microsoft's Philly cluster (`cluster_job_log` of msr-fiddle/philly-traces): a JSON list of jobs
//! with their attempts.
//!
//! A job is taken as one task, from the start of its first attempt, for the sum of its attempts' run times, with the most
//! GPUs that an attempt held. Times have no zone and are taken as UTC.

use evenhand_model::{Nano, Span};
use serde_json::Value;

use crate::byte_source::{Meter, Shard};
use crate::import::accounting::{JobRecord, Jobs, Records, for_each_record, text, time};
use crate::import::error::FieldError;
use crate::import::parse_number::NANO;
use crate::import::{ImportError, ImportOptions, Part};

const ATTEMPTS: &str = "several attempts";
pub(in crate::import) const ASSUMED: &[(&str, &str)] =
    &[(ATTEMPTS, "several attempts; the run time is their sum, without the time between them.")];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    for_each_record(shard, options, meter, Records::Objects, &mut jobs, row)?;
    Ok(jobs.finish())
}

fn row(job: &Value, jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let (mut first, mut run, mut gpus, mut ran) = (None, Span::ZERO, 0, 0);
    for attempt in job["attempts"].as_array().into_iter().flatten() {
        let start = time(&attempt["start_time"], "the start of an attempt")?;
        let end = time(&attempt["end_time"], "the end of an attempt")?;
        let (Some(start), Some(end)) = (start, end) else { continue };
        if end < start {
            let found = format!("an attempt that ends {} s before its start", start.since(end));
            return Err(FieldError::described(0, found, "an end that is not before the start"));
        }
        let held = attempt["detail"].as_array().into_iter().flatten();
        let held: usize = held.filter_map(|node| node["gpus"].as_array()).map(Vec::len).sum();
        first = Some(first.map_or(start, |f| start.min(f)));
        run = Span::checked_from_nanos(Nano::from(run.nanos()) + Nano::from(end.since(start).nanos())).unwrap_or(run);
        gpus = gpus.max(held as Nano * NANO);
        ran += 1;
    }
    if ran > 1 {
        jobs.tally.adjust(ATTEMPTS);
    }
    jobs.push(&JobRecord {
        submit: time(&job["submitted_time"], "the submission")?,
        start: first,
        elapsed: first.map(|_| run),
        user: text(&job["user"]),
        account: text(&job["vc"]),
        gpu: Some(gpus),
        ..JobRecord::default()
    })
}
