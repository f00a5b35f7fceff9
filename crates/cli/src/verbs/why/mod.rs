//! `evenhand why`: why a job of a log, or a user, waited.

mod text;

use evenhand_documents::did_you_mean;
use evenhand_forecast::{
    Change, Explanation, HALF_LIFE_S, Log, Obstacle, Standing, WhatIf, explain, overtaken_by, standing, what_if,
};
use evenhand_model::duration_text::wall_time;
use serde::Serialize;

use crate::arguments::{Common, WhyArgs};
use crate::failure::Failure;
use crate::inputs::site_log::SiteLog;
use crate::output::console::Console;

/// What is printed as JSON. Times are seconds of the log.
#[derive(Debug, Serialize)]
struct WhyRecord {
    /// None for a user's jobs together.
    job: Option<u64>,
    /// The id of the job as the log writes it, such as `100_2`.
    job_id: Option<String>,
    user: String,
    /// How many jobs are explained.
    jobs: usize,
    /// Of all those jobs together.
    waited_s: i64,
    submit_s: i64,
    start_s: i64,
    blocked_by: Vec<BlockedRecord>,
    before: Vec<BeforeRecord>,
    overtaken_by: usize,
    standing: StandingRecord,
    /// The job to which `what_if` refers: of several the one that waited longest.
    what_if_job: Option<u64>,
    what_if_job_id: Option<String>,
    what_if: Vec<WhatIfRecord>,
    /// By how much the simulation without a change misses the start in the log: later if positive; none if there is no such
    /// start.
    what_if_miss_s: Option<i64>,
    /// Whether that is so much that the other starts are weak evidence.
    what_if_misses: bool,
    capacity: f64,
    capacity_from: &'static str,
}

#[derive(Debug, Serialize)]
struct BlockedRecord {
    /// `not-eligible`, `resource`, `earlier-jobs` or `not-in-log`.
    kind: &'static str,
    /// The resources, or who.
    on: String,
    s: i64,
}

#[derive(Debug, Serialize)]
struct BeforeRecord {
    user: String,
    jobs: usize,
    share: f64,
}

#[derive(Debug, Serialize)]
struct StandingRecord {
    jobs_running: usize,
    jobs_waiting: usize,
    jobs_before: usize,
    users_before: usize,
    usage_share: f64,
    equal_share: f64,
    usage_half_life_s: i64,
}

#[derive(Debug, Serialize)]
struct WhatIfRecord {
    change: String,
    /// None if it does not start within four years.
    start: Option<i64>,
}

pub(crate) fn run(args: &WhyArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let site = SiteLog::read(&args.log, common, console)?;
    let asked = Asked::find(args, &site, console)?;
    site.note_excess(args.capacity, console);
    let record = record(args, &site, &asked)?;
    if console.is_json() { console.json(&record) } else { console.result(&text::text(&record, &asked, &site)) }
}

/// The jobs that are asked about.
struct Asked {
    /// As indexes of the log, in ascending order; at least one.
    jobs: Vec<usize>,
    /// Whether they are a user's jobs together.
    of_user: bool,
}

impl Asked {
    fn find(args: &WhyArgs, site: &SiteLog, console: &Console) -> Result<Asked, Failure> {
        let Some(name) = args.who.strip_prefix("user:") else {
            for (option, given) in [("--from", &args.from), ("--to", &args.to)] {
                if given.is_some() {
                    let problem = format!(
                        "{option}: found it with one job, expected it with all jobs of a user (user:NAME); leave it out"
                    );
                    return Err(Failure::Input(problem));
                }
            }
            let job = site.job(&args.who, console).map_err(|error| {
                match args.who.contains(|c: char| c.is_ascii_digit()) {
                    true => error,
                    false => Failure::Input(format!(
                        "WHO: found {:?}, expected the id of a job, or user:NAME for all jobs of a user",
                        args.who
                    )),
                }
            })?;
            return Ok(Asked { jobs: vec![job], of_user: false });
        };
        let user = site.workload.user_id(name).ok_or_else(|| {
            let near = did_you_mean(name, site.workload.users().iter().map(String::as_str));
            Failure::Input(format!("WHO: {}: no user of this name in the log: {name:?}{near}", site.name))
        })?;
        let time = |option: &str, text: &Option<String>| -> Result<Option<i64>, Failure> {
            text.as_deref().map(|text| site.clock.parse(option, text)).transpose()
        };
        let (from, to) = (time("--from", &args.from)?, time("--to", &args.to)?);
        let jobs = site.log.jobs().iter().enumerate();
        let in_period = |submit: i64| from.is_none_or(|from| submit >= from) && to.is_none_or(|to| submit < to);
        let jobs = jobs.filter(|(_, job)| job.user == user.0 && in_period(job.submit)).map(|(n, _)| n);
        match jobs.collect::<Vec<_>>() {
            none if none.is_empty() => Err(Failure::Input(format!(
                "--from, --to: found no job of {name} that started, expected a period in which the user submitted some"
            ))),
            jobs => Ok(Asked { jobs, of_user: true }),
        }
    }
}

fn record(args: &WhyArgs, site: &SiteLog, asked: &Asked) -> Result<WhyRecord, Failure> {
    let (capacities, capacity_from) = site.capacities(args.capacity);
    let jobs = site.log.jobs();
    if let Some(given) = args.capacity {
        fits(given, capacities[0], site, asked)?;
    }
    let explanations = explain(&site.workload, &site.log, &capacities, &asked.jobs);
    let user = jobs[asked.jobs[0]].user as usize;
    let wait = |job: &usize| jobs[*job].wait();
    // The first of those that waited longest.
    let longest = asked.jobs.iter().copied().rev().max_by_key(wait).unwrap_or(asked.jobs[0]);
    let last = asked.jobs[asked.jobs.len() - 1];
    let standing = standing(&site.log, last);
    let what_if = simulated(site, i64::try_from(capacities[0]).unwrap_or(i64::MAX), longest);
    let miss_s = what_if.first().and_then(|unchanged| Some(unchanged.start? - jobs[longest].start));
    Ok(WhyRecord {
        job: (!asked.of_user).then(|| site.id(longest).number),
        job_id: (!asked.of_user).then(|| site.id(longest).to_string()),
        user: site.workload.users()[user].clone(),
        jobs: asked.jobs.len(),
        waited_s: asked.jobs.iter().map(wait).sum(),
        submit_s: jobs[asked.jobs[0]].submit,
        start_s: asked.jobs.iter().map(|&job| jobs[job].start).max().unwrap_or(0),
        blocked_by: blocked_by(&explanations, site),
        before: before(&explanations, site),
        overtaken_by: overtaken_by(&site.log, &asked.jobs),
        standing: StandingRecord::of(standing),
        what_if_job: asked.of_user.then(|| site.id(longest).number),
        what_if_job_id: asked.of_user.then(|| site.id(longest).to_string()),
        what_if_miss_s: miss_s,
        what_if_misses: !what_if.is_empty() && misses(miss_s, jobs[longest].wait()),
        what_if: what_if.iter().map(|w| what_if_record(w, site, longest)).collect(),
        capacity: capacities[0] as f64 / site.log.size_of(1) as f64,
        capacity_from,
    })
}

/// Simulates changes of a job in a log whose jobs come when they became eligible: before, no scheduler starts them.
fn simulated(site: &SiteLog, capacity: i64, job: usize) -> Vec<WhatIf> {
    let released = Some(&site.workload).filter(|_| site.log.has_eligible_later()).and_then(|w| Log::released(w).ok());
    let same = released.and_then(|released| Some((released.same_job(&site.log, job)?, released)));
    match same {
        Some((same, released)) => what_if(&released, capacity, same),
        None => what_if(&site.log, capacity, job),
    }
}

/// Returns whether a simulated start is so far from that in the log that it tells little about changes: by more than ten minutes,
/// and more than a quarter of the wait, or never.
fn misses(miss_s: Option<i64>, wait_s: i64) -> bool {
    miss_s.is_none_or(|miss_s| miss_s.abs() > 600.max(wait_s / 4))
}

/// Rejects a given capacity on which a job that is asked about could not have run.
fn fits(given: u32, capacity: u128, site: &SiteLog, asked: &Asked) -> Result<(), Failure> {
    let jobs = site.log.jobs();
    let largest = asked.jobs.iter().copied().max_by_key(|&job| jobs[job].size.first()).unwrap_or(asked.jobs[0]);
    if u128::try_from(jobs[largest].size.first()).is_ok_and(|size| size <= capacity) {
        return Ok(());
    }
    let needs = jobs[largest].size.first() as f64 / site.log.size_of(1) as f64;
    let resource = &site.workload.resources()[0].name;
    Err(Failure::Input(format!(
        "--capacity: found {given}, expected at least {needs}: job {} held {needs} {resource}; give what the site had, or leave the \
         option out",
        site.id(largest)
    )))
}

fn blocked_by(explanations: &[Explanation], site: &SiteLog) -> Vec<BlockedRecord> {
    let mut sums: Vec<(&Obstacle, i64)> = Vec::new();
    for (obstacle, seconds) in explanations.iter().flat_map(|e| &e.blocked_by) {
        match sums.iter_mut().find(|(known, _)| *known == obstacle) {
            Some((_, sum)) => *sum += seconds,
            None => sums.push((obstacle, *seconds)),
        }
    }
    sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let record = |(obstacle, s): (&Obstacle, i64)| {
        let (kind, on) = match obstacle {
            Obstacle::NotEligible => ("not-eligible", "dependency, hold or begin time".to_string()),
            Obstacle::Resources(lacking) => {
                let names = lacking.iter().map(|&r| site.workload.resources()[r].name.as_str());
                ("resource", names.collect::<Vec<_>>().join("+"))
            }
            Obstacle::EarlierJobs => ("earlier-jobs", "jobs submitted before".to_string()),
            Obstacle::NotInLog => {
                ("not-in-log", "limits, reservations or machines that the log does not show".to_string())
            }
        };
        BlockedRecord { kind, on, s }
    };
    sums.into_iter().map(record).collect()
}

/// Who held the first resource, over all the waits: shares count by how long each job was eligible and waited.
fn before(explanations: &[Explanation], site: &SiteLog) -> Vec<BeforeRecord> {
    let mut sums: Vec<(u32, usize, f64)> = Vec::new();
    for explanation in explanations {
        let waited = (site.log.jobs()[explanation.job].start - site.log.eligible(explanation.job)) as f64;
        for holder in &explanation.holders {
            match sums.iter_mut().find(|sum| sum.0 == holder.user) {
                Some(sum) => (sum.1, sum.2) = (sum.1 + holder.jobs, sum.2 + holder.share * waited),
                None => sums.push((holder.user, holder.jobs, holder.share * waited)),
            }
        }
    }
    let all: f64 = sums.iter().map(|sum| sum.2).sum();
    sums.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
    let name = |user: u32| site.workload.users()[user as usize].clone();
    sums.iter().map(|&(user, jobs, held)| BeforeRecord { user: name(user), jobs, share: held / all }).collect()
}

impl StandingRecord {
    fn of(standing: Standing) -> StandingRecord {
        StandingRecord {
            jobs_running: standing.running,
            jobs_waiting: standing.waiting,
            jobs_before: standing.jobs_before,
            users_before: standing.users_before,
            usage_share: standing.usage_share,
            equal_share: standing.equal_share,
            usage_half_life_s: HALF_LIFE_S,
        }
    }
}

fn what_if_record(what_if: &WhatIf, site: &SiteLog, job: usize) -> WhatIfRecord {
    let own = site.log.jobs()[job];
    let resource = &site.workload.resources()[0].name;
    let amount = |size: i64| size as f64 / site.log.size_of(1) as f64;
    // Limits are not negative.
    let time = |seconds: i64| wall_time(seconds.unsigned_abs());
    let change = match what_if.change {
        Change::Unchanged => "no change (simulated)".to_string(),
        Change::Limit(limit) => format!("a wall time of {} instead of {}", time(limit), time(own.limit)),
        Change::Size(size) => {
            format!("{} {resource} instead of {}, running longer in proportion", amount(size), amount(own.size.first()))
        }
    };
    WhatIfRecord { change, start: what_if.start }
}
