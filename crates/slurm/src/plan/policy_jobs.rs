//! A site's jobs as policies take them, and the pending jobs that have no rank.

use evenhand_model::{Amount, Nano, Resource, Span, Time, to_f64};
use evenhand_policies::LogPlace;
use evenhand_policies::queue_order::{PendingJob, StartedJob};

use super::parties::Parties;
use super::speeds::Speeds;
use super::{PlanOptions, SiteSnapshot, Unranked};
use crate::finished_job::FinishedJob;
use crate::parse_values::Limit;
use crate::queue::{Job, JobState};

pub(super) const NANO: Nano = 1_000_000_000;
/// Assumed requested wall time of a job without a time limit.
const UNLIMITED: Span = Span::from_secs(30 * 86_400);

pub(super) type Jobs = (Vec<StartedJob>, Vec<PendingJob>, Vec<usize>, Vec<(usize, Unranked)>);

impl Parties<'_> {
    /// Returns the started jobs, the pending ones (each user's in the user's own order) with their index of the queue, and
    /// the pending ones that have no rank.
    pub(super) fn jobs(
        &mut self,
        site: &SiteSnapshot<'_>,
        options: &PlanOptions,
        speeds: &Speeds,
        resources: &[Resource],
        now: Time,
    ) -> Jobs {
        let ask = |limit: Limit, partition: Option<&str>| {
            let of = partition.and_then(|name| site.partitions.iter().find(|p| p.name == name));
            let of = of.and_then(|p| p.default_time.span().or(p.max_time.span()));
            limit.span().or(of).unwrap_or(UNLIMITED)
        };
        let rate = |partition: Option<&str>| partition.and_then(|name| options.prices.get(name)).map_or(1.0, to_f64);
        let queue = |partition: Option<&str>| {
            let at = site.partitions.iter().position(|p| Some(p.name.as_str()) == partition);
            at.map(|at| at as u32)
        };
        let qos = |name: &str| site.qos.iter().position(|qos| qos.name == name).map(|at| at as u32);
        let nodes = |nodes: Option<u64>| nodes.and_then(|n| u32::try_from(n).ok());
        let mut started_jobs = Vec::new();
        for job in site.ended.iter().chain(&FinishedJob::not_listed(site.queue, site.ended, now)) {
            let partition = job.partition.as_deref();
            started_jobs.push(StartedJob {
                job: PendingJob {
                    place: LogPlace::new(job.submit, job.id),
                    chunks: chunks(job.held.nodes()),
                    queue: queue(partition),
                    qos: job.qos.as_deref().and_then(qos),
                    nodes: nodes(job.held.nodes()),
                    requested: ask(job.limit, partition),
                    rate: rate(partition) * speeds.mean(job.node_list.as_deref()),
                    ..PendingJob::new(self.of(&job.user, job.account.as_deref()), steps(&job.held.demand(), resources))
                },
                started: job.start,
                ended: Some(job.end),
            });
        }
        let mut rows: Vec<usize> = Vec::new();
        let mut unranked = Vec::new();
        let mut pending: Vec<Option<PendingJob>> = vec![None; site.queue.jobs.len()];
        for (at, job) in site.queue.jobs.iter().enumerate() {
            let partition = job.partitions.first().map(String::as_str);
            let asked = job.requested.nodes().or(job.nodes);
            let waits = PendingJob {
                place: LogPlace::new(job.submit.unwrap_or(now), job.id),
                chunks: chunks(asked),
                queue: queue(partition),
                qos: job.qos.as_deref().and_then(qos),
                nodes: nodes(asked),
                nice: job.nice.unwrap_or(0),
                requested: ask(job.limit, partition),
                rate: rate(partition) * speeds.mean(job.node_list.as_deref()),
                tasks: job.tasks().max(1),
                ..PendingJob::new(self.of(&job.user, job.account.as_deref()), steps(&job.requested.demand(), resources))
            };
            if job.runs() {
                let started = job.start.unwrap_or(now).min(now);
                started_jobs.push(StartedJob { job: PendingJob { tasks: 1, ..waits }, started, ended: None });
            } else if job.state == JobState::Pending {
                match no_place(job, now) {
                    Some(why) => unranked.push((at, why)),
                    None => rows.push(at),
                }
                pending[at] = Some(waits);
            }
        }
        // A user's own order: nice as the user set it, then submission.
        rows.sort_by_key(|at| {
            let job = &site.queue.jobs[*at];
            (job.nice.unwrap_or(0), job.submit, job.id)
        });
        let waits = rows.iter().filter_map(|at| pending[*at].take()).collect();
        (started_jobs, waits, rows, unranked)
    }
}

fn chunks(nodes: Option<u64>) -> u32 {
    nodes.and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1)
}

/// Whole units of each resource, rounded up.
fn steps(demand: &[Nano; 3], resources: &[Resource]) -> Vec<Amount> {
    let of = |resource: &Resource| match resource.name.as_str() {
        "cpu" => demand[0],
        "mem" => demand[1],
        _ => demand[2],
    };
    let whole = |nano: Nano| Amount(u64::try_from(nano.div_ceil(NANO)).unwrap_or(u64::MAX).min(Amount::MAX.0));
    resources.iter().map(|r| whole(of(r))).collect()
}

/// Returns why a pending job has no rank, if so.
fn no_place(job: &Job, now: Time) -> Option<Unranked> {
    if let Some(hold) = job.held() {
        return Some(Unranked::Held(hold));
    }
    if job.heterogeneous.is_some_and(|part| part.offset > 0) {
        return Some(Unranked::NotEligible("a part of a job that starts with its first".into()));
    }
    if let Some(on) = job.waits_for() {
        return Some(Unranked::Depends(on.to_owned()));
    }
    let reason = job.reason.clone().unwrap_or_default();
    if let Some(reservation) = &job.reservation {
        return Some(Unranked::Reservation(reservation.clone()));
    }
    let later = job.eligible.is_none_or(|at| at > now);
    // A limit, the throttle of an array, or a request that nothing will ever meet. Who waits for a machine that is down or drained
    // has a place: it is the machine that is missing.
    (job.is_barred() || (later && reason == "BeginTime")).then_some(Unranked::NotEligible(reason))
}
