//! `evenhand slurm when`: when a job of the queue starts, or one that could be submitted.

use evenhand_forecast::{Forecaster, StartRecord};
use evenhand_model::Span;
use evenhand_slurm::{Configuration, Counted, FinishedJob, NewJob, Nodes, Partitions, PastAndQueue, Queue};

use super::find_job::{caller, check_number, waiting_record};
use super::new_jobs::{admitted, wanted};
use super::show::or_note;
use super::{parse_time, read_failure, slurm_commands};
use crate::arguments::{Common, SlurmWhenArgs};
use crate::failure::Failure;
use crate::inputs::times::LogClock;
use crate::output::console::Console;
use crate::verbs::when::starts::StartsRecord;

pub(super) fn run(args: &SlurmWhenArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    args.job.as_deref().map_or(Ok(()), check_number)?;
    let wanted = wanted(args)?;
    let history = Span::parse(&args.history).map_err(|e| Failure::Input(format!("--history: {e}")))?;
    let slurm = slurm_commands(&args.queue, console);
    let slurm = slurm.as_ref();
    let now = parse_time::now();
    let queue = Queue::read(slurm).map_err(read_failure)?;
    let record = args.job.as_deref().map(|job| waiting_record(&queue, job)).transpose()?;
    if let Some(at) = record {
        has_a_start(&queue.jobs[at])?;
    }
    let nodes = Nodes::read(slurm).map_err(read_failure)?.nodes;
    let mut notes = Vec::new();
    let configuration = or_note(
        Configuration::read(slurm),
        "Memory is not counted, as it is not known whether Slurm counts it",
        &mut notes,
    )?;
    let counted = Counted::of(&nodes, configuration.as_ref());
    let partitions = match wanted.is_empty() {
        true => Vec::new(),
        false => Partitions::read(slurm).map_err(read_failure)?.partitions,
    };
    let with_memory = configuration.as_ref().filter(|_| counted.memory);
    let wanted: Vec<_> =
        wanted.iter().map(|wanted| admitted(wanted, &partitions, &nodes, with_memory)).collect::<Result<_, _>>()?;
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
    let past = PastAndQueue::new(&ended, &queue, &nodes, counted, now);
    let past = past.map_err(|e| Failure::Environment(e.to_string()))?;
    let at = now.whole_secs();
    let mut forecaster = Forecaster::at(&past.log, at, common.seed());
    let mut forecasts = Vec::new();
    if let (Some(record), Some(text)) = (record, &args.job) {
        let start = past.start_of_record(&mut forecaster, &queue, record, now);
        let start = start.ok_or_else(|| {
            Failure::Input(format!(
                "JOB: job {text} does not wait for its turn; expected a job without a dependency or a hold"
            ))
        })?;
        let start = start.map_err(|reason| Failure::Environment(format!("JOB: {reason}")))?;
        forecasts.push(named_as_asked(start, text));
    }
    let user = match (&args.user, wanted.is_empty()) {
        (Some(user), _) => user.clone(),
        (None, true) => String::new(),
        (None, false) => caller("--user", "give --user NAME")?,
    };
    for job in &wanted {
        let name = &job.wanted.name;
        let new = past.new_job(&NewJob {
            user: &user,
            account: job.wanted.account.as_deref(),
            partitions: job.wanted.partition.iter().flat_map(|partitions| partitions.split(',')).collect(),
            size: past.pools.counted.size(job.cpus.max(1), job.memory, job.request.all_gpus()),
            limit: job.request.limit,
        });
        let starts_now = forecaster.new_job_starts_now(&new);
        let start = StartRecord::new(at, 0, &forecaster.new_job(&new), name.clone());
        let start = start.of_shape(name.clone(), Some(user.clone()));
        forecasts.push(job.bounded(start, starts_now, &past.pools, &nodes, &queue, now)?);
    }
    let record = StartsRecord::new(at, forecaster.waiting().len(), forecasts);
    if console.is_json() { console.json(&record) } else { console.result(&record.text(&LogClock::since_1970(at))) }
}

/// Returns the start of a job by the id that was asked for: of an array that of its record has another number.
fn named_as_asked(start: StartRecord, text: &str) -> StartRecord {
    match text.parse() {
        Ok(number) => StartRecord { job: Some(number), name: format!("job {number}"), ..start },
        Err(_) => StartRecord { job_id: Some(text.to_string()), name: format!("job {text}"), ..start },
    }
}

/// Rejects a job that waits for something else than its turn: no number could be given.
fn has_a_start(job: &evenhand_slurm::Job) -> Result<(), Failure> {
    let Some(no_turn) = job.no_turn() else { return Ok(()) };
    Err(Failure::Input(format!(
        "JOB: job {} {}, so that its start cannot be forecast; expected a job that waits for its turn: {}; see evenhand slurm why {}",
        job.id, no_turn.why, no_turn.remedy, job.id
    )))
}
