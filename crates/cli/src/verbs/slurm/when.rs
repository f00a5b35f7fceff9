//! `evenhand slurm when`: when a job of the queue starts, or one that could be submitted.

use evenhand_forecast::{Forecaster, StartRecord};
use evenhand_model::{Span, counted};
use evenhand_slurm::{BatchRequest, FinishedJob, NewJob, Nodes, PastAndQueue, Queue};

use super::find_job::{caller, waiting_record};
use super::show::or_note;
use super::{parse_time, read_failure, slurm_commands};
use crate::arguments::{Common, SlurmWhenArgs};
use crate::failure::Failure;
use crate::inputs::job_shape::JobShape;
use crate::inputs::times::LogClock;
use crate::output::console::Console;
use crate::verbs::when::starts::StartsRecord;

/// A job that could be submitted, as it was asked for.
struct Wanted {
    name: String,
    cpus: u64,
    limit: Span,
    partition: Option<String>,
    account: Option<String>,
}

/// The wall time of a script that names none, as far as the partition does not either.
const DEFAULT_LIMIT: Span = Span::from_secs(86_400);

pub(super) fn run(args: &SlurmWhenArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let wanted = wanted(args)?;
    let history = Span::parse(&args.history).map_err(|e| Failure::Input(format!("--history: {e}")))?;
    let slurm = slurm_commands(&args.queue, console);
    let slurm = slurm.as_ref();
    let now = parse_time::now();
    let queue = Queue::read(slurm).map_err(read_failure)?;
    let record = args.job.map(|job| waiting_record(&queue, &job.to_string())).transpose()?;
    if let Some(at) = record {
        has_a_start(&queue.jobs[at])?;
    }
    let nodes = Nodes::read(slurm).map_err(read_failure)?.nodes;
    let cpus: u64 = nodes.iter().filter(|n| !n.is_unavailable() && !n.is_future()).map(|n| n.cpus).sum();
    // Nodes that are down or drained may come back before the job starts.
    let all: u64 = nodes.iter().filter(|n| !n.is_future()).map(|n| n.cpus).sum();
    wanted.iter().try_for_each(|wanted| fits(wanted, all))?;
    let mut notes = Vec::new();
    let read = FinishedJob::read(slurm, now.saturating_sub(history), now, true);
    let ended = or_note(read, "Without accounting, run times and waits of the past are not known", &mut notes)?;
    notes.iter().for_each(|note| console.note(note));
    let ended = ended.unwrap_or_default();
    if ended.is_empty() {
        // From the queue and its limits alone an interval would look certain and mean nothing.
        return Err(Failure::Environment(format!(
            "no job that ended within {} is known (--history, from Slurm's accounting), and so not how long jobs run of their \
             limits: no start can be forecast; evenhand slurm why JOB plans a start by limits",
            args.history
        )));
    }
    let past = PastAndQueue::new(&ended, &queue, cpus, now).map_err(|e| Failure::Environment(e.to_string()))?;
    let at = (now.nanos() / 1_000_000_000) as i64;
    let mut forecaster = Forecaster::at(&past.log, at, common.seed());
    let mut forecasts = Vec::new();
    if let (Some(at_record), Some(number)) = (record, args.job) {
        let job = past.job_of_record(at_record);
        let forecast = job.and_then(|job| Some((job, forecaster.waiting_job(job)?)));
        let (job, forecast) = forecast.ok_or_else(|| {
            Failure::Input(format!(
                "JOB: job {number} does not wait for its turn; expected a job without a dependency or a hold"
            ))
        })?;
        let waited = at - past.log.jobs()[job].submit;
        let start = StartRecord::new(at, waited, &forecast, format!("job {number}"));
        forecasts.push(start.of_job(number, queue.jobs[at_record].user.clone()));
    }
    let user = match (&args.user, wanted.is_empty()) {
        (Some(user), _) => user.clone(),
        (None, true) => String::new(),
        (None, false) => caller()?,
    };
    for job in &wanted {
        let new = past.new_job(&NewJob {
            user: &user,
            account: job.account.as_deref(),
            partition: job.partition.as_deref(),
            cpus: job.cpus,
            limit: job.limit,
        });
        let forecast = forecaster.new_job(&new);
        let start = StartRecord::new(at, 0, &forecast, job.name.clone());
        forecasts.push(start.of_shape(job.name.clone(), Some(user.clone())));
    }
    let record = StartsRecord::new(at, forecaster.waiting().len(), forecasts);
    if console.is_json() { console.json(&record) } else { console.result(&record.text(&LogClock::since_1970(at))) }
}

/// Rejects a job that waits for something else than its turn: no number could be given.
fn has_a_start(job: &evenhand_slurm::Job) -> Result<(), Failure> {
    let Some(why) = job.no_turn() else { return Ok(()) };
    Err(Failure::Input(format!(
        "JOB: job {} {why}, so that its start cannot be forecast; expected a job that waits for its turn, see evenhand slurm why {}",
        job.id, job.id
    )))
}

fn wanted(args: &SlurmWhenArgs) -> Result<Vec<Wanted>, Failure> {
    let mut found = Vec::new();
    if let Some(path) = &args.script {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("--script: {name}: {e}"), e.kind() != std::io::ErrorKind::NotFound))?;
        let request = BatchRequest::parse(&name, &text).map_err(Failure::input)?;
        found.push(Wanted {
            name,
            cpus: request.cpus(),
            limit: request.limit.unwrap_or(DEFAULT_LIMIT),
            partition: args.partition.clone().or(request.partition),
            account: request.account,
        });
    }
    for text in &args.shape {
        let shape = JobShape::parse("--shape", text, "cpu")?;
        found.push(Wanted {
            name: text.clone(),
            cpus: shape.total(),
            limit: shape.wall,
            partition: args.partition.clone(),
            account: None,
        });
    }
    Ok(found)
}

/// Rejects a job that is larger than the site.
fn fits(wanted: &Wanted, cpus: u64) -> Result<(), Failure> {
    if wanted.cpus <= cpus {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{}: found a job of {}, expected at most {cpus}, which is all that the nodes of the site have; give a smaller job",
        wanted.name,
        counted(wanted.cpus, "cpu", "cpus")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_larger_than_the_site_is_refused() {
        let shape =
            |cpus| Wanted { name: "1x200cpu,1h".into(), cpus, limit: DEFAULT_LIMIT, partition: None, account: None };
        assert!(fits(&shape(100), 100).is_ok());
        let error = fits(&shape(200), 100).unwrap_err().to_string();
        assert!(error.starts_with("1x200cpu,1h: found a job of 200 cpus, expected at most 100"), "{error}");
    }
}
