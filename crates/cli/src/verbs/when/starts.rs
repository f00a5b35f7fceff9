//! `evenhand when --shape`, `--job`: when jobs start that could be submitted, or that wait.

use evenhand_documents::did_you_mean;
use evenhand_forecast::{Forecaster, Job, NONE, Size, StartRecord};
use evenhand_model::duration_text::interval;
use evenhand_model::{Span, counted};
use serde::Serialize;

use crate::arguments::{Common, WhenArgs};
use crate::failure::Failure;
use crate::inputs::job_shape::JobShape;
use crate::inputs::site_log::SiteLog;
use crate::inputs::times::LogClock;
use crate::output::console::Console;
use crate::output::human_units;
use crate::output::numbers::percent;
use crate::output::table::{Table, printable};

/// What is printed as JSON. Times are seconds of the log.
#[derive(Debug, Serialize)]
pub(crate) struct StartsRecord {
    at_s: i64,
    waiting: usize,
    forecasts: Vec<StartRecord>,
    /// The shape or job with the lowest median, if there are several.
    first: Option<String>,
}

pub(super) fn run(args: &WhenArgs, site: &SiteLog, common: &Common, console: &Console) -> Result<(), Failure> {
    let jobs = args.job.iter().map(|id| site.job(id, console)).collect::<Result<Vec<usize>, _>>()?;
    if !args.shape.is_empty() {
        site.note_excess(args.capacity, console);
    }
    let shapes = args.shape.iter().map(|text| shape(text, args, site)).collect::<Result<Vec<_>, _>>()?;
    let at = match (&args.at, &jobs[..]) {
        (Some(text), _) => Some(site.clock.parse("--at", text)?),
        (None, [_]) if shapes.is_empty() => None,
        _ => Some(site.clock.last()),
    };
    let mut forecaster = match (at, &jobs[..]) {
        // What was known at its submission, and no job behind it in the log.
        (None, [job, ..]) => Forecaster::at_submission(&site.log, *job, common.seed()),
        (at, _) => {
            let at = at.unwrap_or_else(|| site.clock.last());
            jobs.iter().try_for_each(|&job| waits_at(site, job, at))?;
            Forecaster::at(&site.log, at, common.seed())
        }
    };
    let at = forecaster.now();
    let mut forecasts = Vec::new();
    for (text, job) in args.shape.iter().zip(&shapes) {
        let forecast = forecaster.new_job(job);
        let record = StartRecord::new(at, 0, &forecast, text.clone());
        forecasts.push(record.of_shape(text.clone(), args.user.clone()));
    }
    for &job in &jobs {
        let Some(forecast) = forecaster.waiting_job(job) else { continue };
        let known = site.log.jobs()[job];
        let record = StartRecord::new(at, at - known.submit, &forecast, format!("job {}", site.id(job)));
        let user = site.workload.users()[known.user as usize].clone();
        let id = site.id(job);
        forecasts.push(StartRecord { job_id: id.text.map(String::from), ..record.of_job(id.number, user) });
    }
    let record = StartsRecord::new(at, forecaster.waiting().len(), forecasts);
    if console.is_json() { console.json(&record) } else { console.result(&record.text(&site.clock)) }
}

impl StartsRecord {
    pub(crate) fn new(at_s: i64, waiting: usize, forecasts: Vec<StartRecord>) -> StartsRecord {
        let earliest = forecasts.iter().min_by_key(|f| (f.median_s, f.interval_80_s[1]));
        let first = earliest.filter(|_| forecasts.len() > 1).map(|f| f.name.clone());
        StartsRecord { at_s, waiting, forecasts, first }
    }

    /// Formats the forecasts for people.
    pub(crate) fn text(&self, clock: &LogClock) -> String {
        text(self, clock)
    }
}

/// Returns the job that a shape describes.
fn shape(text: &str, args: &WhenArgs, site: &SiteLog) -> Result<Job, Failure> {
    let resource = &site.workload.resources()[0].name;
    let shape = JobShape::parse("--shape", text, resource)?;
    fits(text, &shape, args, site)?;
    let user = match &args.user {
        None => site.log.stranger(),
        Some(name) => {
            site.workload.user_id(name).map(|id| id.0).ok_or_else(|| unknown("--user", name, site.workload.users()))?
        }
    };
    let jobs = site.log.jobs();
    let latest = jobs.iter().rev().find(|job| job.user == user).or(jobs.last());
    let queue = match &args.queue {
        None => latest.map_or(NONE, |job| job.queue),
        Some(name) => {
            let found = site.workload.queues().iter().position(|queue| queue == name);
            found.ok_or_else(|| unknown("--queue", name, site.workload.queues()))? as u32
        }
    };
    let account = latest.filter(|job| job.user == user).map_or(NONE, |job| job.account);
    let total = u32::try_from(shape.total()).unwrap_or(u32::MAX);
    Ok(Job {
        submit: 0,
        start: 0,
        end: 0,
        size: Size::from(site.log.size_of(total)),
        limit: seconds(shape.wall),
        user,
        account,
        queue,
        pool: 0,
    })
}

/// Rejects a shape that is larger than the site.
fn fits(text: &str, shape: &JobShape, args: &WhenArgs, site: &SiteLog) -> Result<(), Failure> {
    let (capacities, from) = site.capacities(args.capacity);
    let (total, has) = (shape.total(), capacities[0] / (site.log.size_of(1) as u128));
    if u128::from(total) <= has {
        return Ok(());
    }
    let resource = &site.workload.resources()[0].name;
    Err(Failure::Input(format!(
        "--shape: found {text:?}, which needs {total} {resource}, expected at most {has}, which is all that the site has ({from}); \
         give a smaller shape, or --capacity if the site has more"
    )))
}

fn unknown(option: &str, name: &str, known: &[String]) -> Failure {
    let near = did_you_mean(name, known.iter().map(String::as_str));
    Failure::Input(format!("{option}: found {name:?}, expected a name of the log{near}"))
}

fn seconds(span: Span) -> i64 {
    (span.nanos() / 1_000_000_000).max(1) as i64
}

/// Rejects a job that does not wait at the instant of the forecast.
fn waits_at(site: &SiteLog, job: usize, at: i64) -> Result<(), Failure> {
    let id = site.id(job);
    let job = site.log.jobs()[job];
    let state = if job.submit > at {
        format!("is submitted at {}", site.clock.show(job.submit))
    } else if job.end <= at && job.start < at {
        format!("ran from {} to {}", site.clock.show(job.start), site.clock.show(job.end))
    } else if job.start < at {
        format!("runs since {}", site.clock.show(job.start))
    } else {
        return Ok(());
    };
    let (from, to) = (site.clock.show(job.submit), site.clock.show(job.start));
    Err(Failure::Input(format!(
        "--job: job {id} does not wait at {}: it {state}; expected --at from {from} to {to}, when it waited",
        site.clock.show(at)
    )))
}

fn text(record: &StartsRecord, clock: &LogClock) -> String {
    let at = clock.show(record.at_s);
    let waiting = counted(record.waiting, "job waits", "jobs wait");
    let mut table = Table::new(1, ["job", "starts in", "80 % interval", "median start"]);
    for f in &record.forecasts {
        // What is planned has no interval that would hold 80 % of the starts.
        let (wait, interval) = match f.planned_by {
            Some(_) => (format!("at most {}", duration(f.median_s)), "-".to_string()),
            None => (duration(f.median_s), interval(f.interval_80_s.map(duration))),
        };
        table.row(vec![printable(&f.name), wait, interval, clock.show(f.start_s)]);
    }
    let mut blocks = vec![format!("At {at} {waiting}."), table.render()];
    if let Some(first) = &record.first {
        blocks.push(format!("Starts first: {}.", printable(first)));
    }
    for f in record.forecasts.iter().filter(|f| !f.caveats.is_empty()) {
        let of_whom = if record.forecasts.len() > 1 { format!("{}: ", printable(&f.name)) } else { String::new() };
        blocks.push(format!("{of_whom}{}", printable(&f.caveats.join(" "))));
    }
    if let Some(f) = record.forecasts.iter().find(|f| !f.weights.is_empty()) {
        let weights = f.weights.iter().map(|(name, w)| format!("{name} {}", percent(*w)));
        blocks.push(format!(
            "Sources of the forecast, by how much each counts: {}.",
            weights.collect::<Vec<_>>().join(", ")
        ));
    }
    blocks.join("\n\n")
}

fn duration(seconds: i64) -> String {
    human_units::duration(seconds as f64)
}
