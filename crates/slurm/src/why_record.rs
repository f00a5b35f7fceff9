//! Why a job waits, as a record: what `evenhand slurm why` prints and `evenhand serve` shows.

use evenhand_forecast::Size;
use evenhand_model::duration_text::duration;
use evenhand_model::{Time, counted};
use serde::Serialize;

use crate::amount_text::{amount, asks_for, number, waits_for};
use crate::explain_wait::{Planned, Request, WaitingJob};
use crate::pool::{Counted, PoolResource};
use crate::priorities::{FactorRecord, Priority};
use crate::queue::{Job, JobState, Queue};
use crate::waiting_reasons::{ReasonKind, explain_reason};

/// Why a job waits, as programs read it. Times are seconds since 1970.
#[derive(Clone, Debug, Serialize)]
pub struct WhyRecord {
    /// The job.
    pub job: u64,
    /// The user.
    pub user: String,
    /// The account.
    pub account: Option<String>,
    /// The partitions.
    pub partitions: Vec<String>,
    /// How long it has waited.
    pub waited_s: Option<f64>,
    /// Slurm's own word.
    pub reason: String,
    /// What Slurm's word means.
    pub reason_means: &'static str,
    /// What stops it now.
    pub blocked_by: Vec<BlockedRecord>,
    /// Who stands before it.
    pub before: Vec<BeforeRecord>,
    /// It beside its queue.
    pub standing: StandingRecord,
    /// Planned starts: of the request itself, then of smaller ones that start earlier.
    pub what_if: Vec<WhatIfRecord>,
    /// Where Slurm itself plans to start it.
    pub slurm_start_s: Option<f64>,
    /// What the planned starts count, and what not, as a sentence.
    pub what_if_note: String,
    /// What could not be seen, in sentences.
    pub not_seen: Vec<String>,
}

/// What stops a job now.
#[derive(Clone, Debug, Serialize)]
pub struct BlockedRecord {
    /// The kind of the reason.
    pub kind: &'static str,
    /// What it waits for.
    pub on: String,
    /// How long it has waited so far; Slurm does not keep since when for this reason.
    pub s: Option<f64>,
}

/// Jobs of one user that stand before a job.
#[derive(Clone, Debug, Serialize)]
pub struct BeforeRecord {
    /// The user.
    pub user: String,
    /// The account.
    pub account: Option<String>,
    /// How many jobs.
    pub jobs: u64,
    /// How many CPUs.
    pub cpus: u64,
    /// How many GPUs, where the job's partitions have some.
    pub gpus: u64,
    /// The part of the CPUs for which jobs before it wait.
    pub share: f64,
}

/// A job beside its queue and its nodes.
#[derive(Clone, Debug, Serialize)]
pub struct StandingRecord {
    /// How many jobs stand before it.
    pub jobs_before: u64,
    /// The CPUs that it asks for.
    pub cpus_requested: u64,
    /// The free CPUs of its partitions.
    pub cpus_free: u64,
    /// How many CPUs.
    pub cpus: u64,
    /// What it asks for of each resource that is counted, and what its partitions have: CPUs, bytes of memory, GPUs.
    pub resources: Vec<AmountRecord>,
    /// The same as sentences.
    pub asks_for: String,
    /// Slurm's priority.
    pub priority: Option<u64>,
    /// The site factor in it.
    pub site_factor: Option<i64>,
    /// What the other factors add to it, as `sprio` shows, without those that add nothing.
    pub priority_factors: Vec<FactorRecord>,
    /// The user's running jobs.
    pub jobs_running: u64,
    /// The user's waiting jobs.
    pub jobs_waiting: u64,
}

/// What a job asks for of a resource, and what its partitions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AmountRecord {
    /// The resource: `cpu`, `mem` in bytes, `gpu`.
    pub resource: &'static str,
    /// What the job asks for.
    pub requested: u64,
    /// What of it is free on nodes that are not down or drained.
    pub free: u64,
    /// What these nodes have.
    pub has: u64,
}

/// A planned start for a request.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfRecord {
    /// What it would ask for.
    pub change: String,
    /// The planned start; none if it cannot start.
    pub start: Option<f64>,
}

impl WhyRecord {
    /// Describes a waiting job of the queue, with what could not be seen in sentences. `planned` is the job in the queue by
    /// which starts are planned: the same, or one with jobs that are not shown.
    pub fn new(
        queue: &Queue,
        waiting: &WaitingJob<'_>,
        planned: &WaitingJob<'_>,
        priority: Option<&Priority>,
        now: Time,
        not_seen: Vec<String>,
    ) -> WhyRecord {
        let job = &queue.jobs[waiting.job];
        let waited_s = job.submit.map(|submit| now.since(submit).secs_f64());
        let (kind, means) = explain_reason(job.reason());
        let ahead = waiting.ahead();
        let cpus: u64 = ahead.iter().map(|a| a.cpus).fold(0, u64::saturating_add).max(1);
        let on = match kind {
            ReasonKind::Resources => waits_for(waiting),
            ReasonKind::Priority => format!("{} before it", counted(waiting.jobs_before(), "job", "jobs")),
            ReasonKind::Dependency => job.dependency.clone().unwrap_or_else(|| job.reason().to_string()),
            _ => job.reason().to_string(),
        };
        let of_user = |state: fn(&Job) -> bool| -> u64 {
            queue.jobs.iter().filter(|other| other.user == job.user && state(other)).map(Job::tasks).sum()
        };
        // A job that waits for something else than its turn has no place in the queue.
        let no_turn = job.no_turn();
        let what_if = if no_turn.is_none() { planned.what_if() } else { Vec::new() };
        let mut not_seen = not_seen;
        if let Some(no_turn) = no_turn.filter(|_| job.held().is_none() && job.waits_for().is_none()) {
            not_seen.push(format!(
                "No start is planned here: whatever the order of the queue is, the job {}; {}.",
                no_turn.why, no_turn.remedy
            ));
        }
        not_seen.extend(contradicted(&what_if, planned.counted, job, now));
        WhyRecord {
            job: job.id,
            user: job.user.clone(),
            account: job.account.clone(),
            partitions: job.partitions.clone(),
            waited_s,
            reason: job.reason().to_string(),
            reason_means: means,
            blocked_by: vec![BlockedRecord { kind: kind.name(), on, s: waited_s }],
            before: ahead
                .into_iter()
                .map(|a| BeforeRecord {
                    share: a.cpus as f64 / cpus as f64,
                    user: a.user,
                    account: a.account,
                    jobs: a.jobs,
                    cpus: a.cpus,
                    gpus: a.gpus,
                })
                .collect(),
            standing: StandingRecord {
                jobs_before: waiting.jobs_before(),
                cpus_requested: job.cpus.unwrap_or_else(|| job.requested.cpus()),
                cpus_free: PoolResource::Cpus.of(waiting.free).unsigned_abs(),
                cpus: PoolResource::Cpus.of(waiting.capacity).unsigned_abs(),
                resources: amounts(waiting),
                asks_for: asks_for(waiting),
                priority: job.priority,
                site_factor: priority.map(|p| p.site_factor),
                priority_factors: priority.map_or_else(Vec::new, |p| p.factors.clone()),
                jobs_running: of_user(|job| job.state.holds_resources()),
                jobs_waiting: of_user(|job| job.state == JobState::Pending),
            },
            what_if: what_if.iter().map(|start| what_if_record(start, planned.need(), now)).collect(),
            slurm_start_s: job.start.map(Time::secs_f64),
            what_if_note: what_if_note(planned.counted),
            not_seen,
        }
    }
}

fn amounts(waiting: &WaitingJob<'_>) -> Vec<AmountRecord> {
    let amount = |resource: PoolResource| {
        // Records have memory in bytes.
        let unit = if resource == PoolResource::Memory { 1 << 20 } else { 1 };
        let of = |size: Size| u64::try_from(resource.of(size)).unwrap_or_default().saturating_mul(unit);
        let [requested, free, has] = [waiting.need(), waiting.free, waiting.capacity].map(of);
        AmountRecord { resource: resource.name(), requested, free, has }
    };
    waiting.counted.resources().map(amount).collect()
}

/// What the planned starts count, and what not.
fn what_if_note(counted: Counted) -> String {
    format!(
        "Planned by {}, with all jobs running to their limits and none submitted; {} and the shapes of nodes are not planned.",
        counted.words(),
        counted.not_counted().join(", ")
    )
}

/// Says so where Slurm plans a job only after the start that is planned here.
fn contradicted(what_if: &[Planned], counted: Counted, job: &Job, now: Time) -> Option<String> {
    let planned = what_if.first()?.start_s?;
    let by_slurm = job.planned_start(now)?.since(now).whole_secs();
    // Slurm looks again each bf_interval, so that its plan may be a minute old.
    (planned.saturating_add(60) < by_slurm).then(|| {
        format!(
            "Slurm itself plans a later start than this plan by {}: the job lacks something that the plan does not count, such as {}, \
             whole nodes or certain nodes, and asking for {} or less time may not help.",
            counted.words(),
            counted.not_counted().join(", "),
            if counted == Counted::default() { "fewer CPUs" } else { "less" },
        )
    })
}

fn what_if_record(planned: &Planned, need: Size, now: Time) -> WhatIfRecord {
    let change = match planned.request {
        Request::Unchanged => "none: as submitted".to_string(),
        Request::Limit(limit) => format!("a wall time of {}", duration(limit as f64)),
        Request::Less(resource, less) => {
            format!("{} instead of {}", amount(resource, less), number(resource, resource.of(need)))
        }
    };
    WhatIfRecord { change, start: planned.start_s.map(|start| now.secs_f64() + start as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Nodes;

    /// The record of a job that asks for one of eight free CPUs, at 1000 s.
    fn record(reason: &str, start: &str, eligible: &str) -> WhyRecord {
        let text = format!(
            "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|ELIGIBLE_TIME|TIME_LIMIT|CPUS\n\
             7|ann|PENDING|{reason}|main|9|900|{start}|{eligible}|5:00|1\n"
        );
        let queue = Queue::parse(&text).unwrap();
        let nodes = Nodes::parse("NodeName=n1 CPUTot=8 Partitions=main State=IDLE\n").unwrap().nodes;
        let now = Time::from_secs(1000);
        let waiting = WaitingJob::new(&queue, &nodes, Counted::default(), 0, now);
        WhyRecord::new(&queue, &waiting, &waiting, None, now, Vec::new())
    }

    #[test]
    fn a_plan_by_cpus_is_left_out_where_no_turn_is_waited_for_and_doubted_where_slurm_s_is_later() {
        let later = record("BeginTime", "8200", "8200");
        assert_eq!((later.what_if[0].start, later.not_seen.len()), (Some(8200.0), 0));
        let throttled = record("JobArrayTaskLimit", "N/A", "N/A");
        assert!(throttled.what_if.is_empty(), "{throttled:?}");
        assert!(
            throttled.not_seen[0].contains("waits for a limit (Slurm's reason is JobArrayTaskLimit"),
            "{throttled:?}"
        );
        let lacks = record("Resources", "8200", "900");
        assert_eq!(lacks.what_if[0].start, Some(1000.0));
        assert!(lacks.not_seen[0].starts_with("Slurm itself plans a later start"), "{lacks:?}");
        assert!(record("Priority", "1030", "900").not_seen.is_empty());
    }
}
