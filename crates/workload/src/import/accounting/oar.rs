//! Reads the jobs of OAR as `oarstat --json` prints them (`oarstat -J --accounting`, `-J --gantt` and `-J -f` alike): an
//! object of jobs by their numbers, or a list.
//!
//! A job holds its assigned resources, which are cores in nearly all installations.

use evenhand_model::{Nano, Span};
use serde_json::Value;

use super::{JobRecord, Jobs, Records, for_each_record, number, text, time};
use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::parse_number::NANO;
use crate::import::{ImportError, ImportOptions, Part};

const CORES: &str = "assigned resources";
pub(in crate::import) const ASSUMED: &[(&str, &str)] =
    &[(CORES, "assigned resources, each of which is taken as one core.")];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    for_each_record(shard, options, meter, Records::Values, &mut jobs, row)?;
    Ok(jobs.finish())
}

fn row(job: &Value, jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let either = |names: [&str; 2]| names.into_iter().map(|n| &job[n]).find(|v| !v.is_null()).unwrap_or(&Value::Null);
    let submit = time(either(["submissionTime", "submission_time"]), "the submission")?;
    let start = time(either(["startTime", "start_time"]), "the start")?;
    let end = time(either(["stopTime", "stop_time"]), "the end")?;
    let resources = job["assigned_resources"].as_array().map(|list| list.len() as Nano * NANO).filter(|n| *n > 0);
    if start.is_some() && resources.is_some() {
        jobs.tally.adjust(CORES);
    }
    jobs.push(&JobRecord {
        id: text(either(["Job_Id", "id"])),
        submit,
        start,
        end,
        requested: number(either(["walltime", "moldable_walltime"]))
            .filter(|n| *n > 0)
            .and_then(Span::checked_from_nanos),
        user: text(either(["owner", "job_user"])),
        account: text(&job["project"]),
        queue: text(either(["queue", "queue_name"])),
        cpu: resources,
        nodes: job["assigned_network_address"].as_array().map(|hosts| hosts.len() as u64),
        ..JobRecord::default()
    })
}
