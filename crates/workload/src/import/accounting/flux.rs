//! Reads the jobs of Flux as `flux jobs -a --json` prints them.
//!
//! Attributes that are absent are unknown. A job holds its cores (`ncores`, else `ntasks`) from `t_run` to `t_cleanup`.

use evenhand_model::Span;
use serde_json::Value;

use super::{JobRecord, Jobs, Records, for_each_record, number, text, time};
use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::parse_number::NANO;
use crate::import::{ImportError, ImportOptions, Part};

const TASKS: &str = "tasks";
pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[(TASKS, "no number of cores; one for each task is taken.")];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    for_each_record(shard, options, meter, Records::Under("jobs"), &mut jobs, row)?;
    Ok(jobs.finish())
}

fn row(job: &Value, jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let positive = |key: &str| number(&job[key]).filter(|n| *n > 0);
    let start = time(&job["t_run"], "t_run")?;
    let end = time(&job["t_cleanup"], "t_cleanup")?.or(time(&job["t_inactive"], "t_inactive")?);
    let (cores, tasks) = (positive("ncores"), positive("ntasks"));
    if start.is_some() && cores.is_none() && tasks.is_some() {
        jobs.tally.adjust(TASKS);
    }
    let queue = text(&job["queue"]).or_else(|| text(&job["annotations"]["sched"]["queue"]));
    jobs.push(&JobRecord {
        id: text(&job["id"]),
        submit: time(&job["t_submit"], "t_submit")?,
        start,
        end,
        // A duration of 0 is no limit.
        requested: positive("duration").and_then(Span::checked_from_nanos),
        user: text(&job["username"]).or_else(|| text(&job["userid"])),
        account: text(&job["bank"]).or_else(|| text(&job["project"])),
        queue,
        cpu: cores.or(tasks),
        gpu: positive("ngpus"),
        nodes: positive("nnodes").and_then(|n| u64::try_from(n / NANO).ok()),
        ..JobRecord::default()
    })
}
