//! The jobs of a workload on a site (machines, or a pool with backfilling), and the records of their runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_model::{Capacity, Cluster, NO_TIME, SiteTime, Time, UserId, Workload, counted};
use evenhand_policies::equivalents::PROCESSORS;
use evenhand_simulator::{
    Activity, Backfill, FreeWhileWaiting, JobOptions, Jobs, Layout, PLACEMENTS, Placement, PoolOptions, Processors,
    Rejection, Simulated, Site, SiteError, SlurmOptions, UserTasks,
};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::idle_machines::{MeanWait, idle_machines};
use crate::record::PerResource;
use crate::recorded_machines::{self, RecordedMachinesRecord};
use crate::replay::ReplayOn;
use crate::scheduler::{backfill_text, scheduler_text};

/// The version of the simulation; changes when the same inputs give other or more results.
pub(crate) const SIMULATION: &str = "jobs 14";
/// The same of Slurm's scheduler.
const SLURM_SIMULATION: &str = "slurm 10";

/// The rules for the placement of jobs on machines, and for backfilling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRules {
    /// The rule that chooses the machine of a chunk.
    pub placement: Placement,
    /// The rule for jobs that start before the head of the queue.
    pub backfill: Backfill,
    /// How jobs lie on machines.
    pub layout: Layout,
    /// The settings of Slurm's scheduler.
    pub slurm: SlurmOptions,
}

impl JobRules {
    /// Returns the name of the kind of backfilling, with its settings.
    pub fn backfill_name(self) -> String {
        backfill_text(self.backfill)
    }

    /// Returns the name of the scheduler, with its settings.
    pub fn scheduler_name(self) -> String {
        scheduler_text(self.backfill)
    }

    /// Returns the name of the placement rule.
    pub fn placement_name(self) -> &'static str {
        PLACEMENTS.iter().find(|(_, p)| *p == self.placement).map_or("", |(name, _)| name)
    }
}

/// A site, and the jobs of a workload on it.
#[derive(Clone, Debug)]
pub(crate) struct OnSite {
    pub(crate) site: Site,
    pub(crate) jobs: Jobs,
    pub(crate) rules: JobRules,
    pub(crate) cluster: Option<Cluster>,
    /// Whether it is known when the log's zero was.
    log_has_dates: bool,
}

/// The time from which on a log counts from 1970, if its header does not state its zero.
const DATES_FROM: Time = Time::from_secs(10 * 366 * 86_400);

fn has_dates(workload: &Workload) -> bool {
    workload.zero_s() > 0 || workload.columns().submit.first().is_some_and(|first| *first >= DATES_FROM)
}

/// Returns a note on the jobs whose array limits how many of its tasks run at once.
pub(crate) fn note_of_throttles(workload: &Workload, are_followed: bool) -> Option<String> {
    let throttled = workload.throttled_tasks();
    (throttled > 0).then(|| {
        let jobs = counted(throttled, "job is a task of an array", "jobs are tasks of arrays");
        match are_followed {
            true => format!("{jobs} with a throttle (sbatch --array=0-99%5): no more tasks of an array run at once than it allows."),
            false => format!("{jobs} with a throttle (sbatch --array=0-99%5), which is ignored here: --scheduler slurm, easy and strict follow it on the machines of a cluster file."),
        }
    })
}

impl OnSite {
    /// Places a workload's jobs on the machines of a cluster.
    pub(crate) fn machines(cluster: &Cluster, workload: &Workload, rules: JobRules) -> Result<Arc<OnSite>, SiteError> {
        let site = match rules.layout {
            Layout::Whole => Site::whole_machines(cluster, workload.resources())?,
            _ if rules.backfill == Backfill::Slurm => {
                Site::machines(cluster, workload.resources())?.for_slurm(&rules.slurm)
            }
            _ => Site::machines(cluster, workload.resources())?,
        };
        let jobs = Jobs::new(workload, &site, rules.layout);
        Ok(Arc::new(OnSite { site, jobs, rules, cluster: Some(cluster.clone()), log_has_dates: has_dates(workload) }))
    }

    /// Places a workload's jobs on a pool with backfilling. Returns `None` without backfilling, which the simulation of
    /// the pool handles.
    pub(crate) fn pool(
        capacity: &Capacity,
        workload: &Workload,
        rules: JobRules,
    ) -> Result<Option<Arc<OnSite>>, SiteError> {
        let (site, layout) = match rules.backfill {
            Backfill::None => return Ok(None),
            Backfill::Planned(settings) if settings.processors == Processors::Named => {
                (Site::named_processors(capacity, workload.resources())?, Layout::Packed)
            }
            _ => (Site::pool(capacity), rules.layout),
        };
        let rules = JobRules { layout, ..rules };
        let jobs = Jobs::new(workload, &site, layout);
        Ok(Some(Arc::new(OnSite { site, jobs, rules, cluster: None, log_has_dates: has_dates(workload) })))
    }

    /// Returns the same site with the jobs of another workload, which has the same resources and queues.
    pub(crate) fn for_workload(&self, workload: &Workload) -> OnSite {
        let mut on_site = self.clone();
        on_site.jobs = Jobs::new(workload, &self.site, self.rules.layout);
        on_site
    }

    pub(crate) fn options(&self, pool: PoolOptions) -> JobOptions {
        let JobRules { placement, backfill, slurm, .. } = self.rules;
        JobOptions { placement, backfill, blocking: pool.blocking, slurm, until: pool.until }
    }

    /// Adds the inputs of a run on this site to a digest.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(SIMULATION).text(&self.rules.backfill_name());
        if self.rules.backfill == Backfill::Slurm {
            digest.text(SLURM_SIMULATION).text(&format!("{:?}", self.rules.slurm));
        }
        if let Some(cluster) = &self.cluster {
            // Every field, exactly.
            digest.text(self.rules.placement_name()).text(&self.rules.layout.to_string()).text(&format!("{cluster:?}"));
        }
    }

    /// Returns how many jobs, with how many processor hours, each rule laid out.
    pub(crate) fn layout(&self, workload: &Workload) -> Vec<LayoutRecord> {
        layout_records(workload, |row| self.jobs.rule(row).name())
    }

    /// Returns what had to be assumed about the jobs, in sentences.
    pub(crate) fn notes(&self, workload: &Workload) -> Vec<String> {
        let (unknown, dropped) = (self.jobs.unknown_requirements, self.jobs.dropped_requirements);
        let unknown = (unknown > 0).then(|| {
            format!(
                "{} that no machine in the cluster file has; the requirement is ignored.",
                counted(unknown, "job requires a property", "jobs require a property")
            )
        });
        let dropped = (dropped > 0).then(|| {
            let jobs = counted(dropped, "job fits", "jobs fit");
            format!("{jobs} on no machines with everything it requires; these requirements are ignored.")
        });
        let (larger, more) = (self.jobs.larger_than_nodes, self.jobs.more_than_nodes);
        let remedy = "they lie otherwise than the log says: in one part, or as single processors; check the amounts of the machines in the cluster file";
        let larger = (larger > 0).then(|| {
            let jobs = counted(larger, "job asks", "jobs ask");
            format!("{jobs} for more on a node than any machine has that may be used; {remedy}.")
        });
        let more = (more > 0).then(|| {
            let jobs = counted(more, "job asks", "jobs ask");
            format!("{jobs} for more nodes of a size than there are; {remedy}, and their number.")
        });
        let (rows, queues) = &self.jobs.unknown_queues;
        let queues = (*rows > 0).then(|| {
            let more = if queues.len() > 3 { format!(" and {} more", queues.len() - 3) } else { String::new() };
            let names = queues.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
            let jobs = counted(*rows, "job is in a queue", "jobs are in queues");
            format!("{jobs} that the cluster file does not define ({names}{more}); such jobs may use all machines, without limits.")
        });
        let licences = self.jobs.unknown_licences;
        let licences = (licences > 0).then(|| {
            let jobs = counted(licences, "job asks", "jobs ask");
            format!("{jobs} for licences that the cluster file does not have ([[licences]]); these have no effect.")
        });
        let several = self.jobs.several_queues;
        let several = (several > 0).then(|| {
            format!(
                "{} several queues, and may run on the machines of any of them.",
                counted(several, "job names", "jobs name")
            )
        });
        let note = self.note().into_iter();
        note.chain(larger)
            .chain(more)
            .chain(queues)
            .chain(unknown)
            .chain(dropped)
            .chain(licences)
            .chain(note_of_throttles(workload, self.follows_throttles()))
            .chain(several)
            .chain(self.note_of_closures())
            .chain(self.note_of_submissions(workload))
            .collect()
    }

    /// Whether throttles of arrays hold jobs back: reservations that are kept do not know them, nor does a pool.
    fn follows_throttles(&self) -> bool {
        self.cluster.is_some() && !self.rules.backfill.keeps_reservations()
    }

    /// Returns a note on jobs of the log beyond limits of submissions.
    fn note_of_submissions(&self, workload: &Workload) -> Option<String> {
        let end = |row: usize| workload.start(row).map(|start| (start + workload.columns().duration[row]).nanos());
        let beyond = self.jobs.beyond_submit_limits(workload, end).filter(|beyond| *beyond > 0)?;
        Some(format!(
            "{} submitted beyond a limit of submissions (max_submitted) by the log's own times; all are accepted.",
            counted(beyond, "of the log's jobs was", "of the log's jobs were")
        ))
    }

    /// Returns a note on reservations and outages that have no effect.
    fn note_of_closures(&self) -> Option<String> {
        let cluster = self.cluster.as_ref()?;
        let (reservations, outages) = (cluster.reservations.len(), cluster.outages.len());
        if reservations + outages == 0 {
            return None;
        }
        let kinds = [(reservations, "reservation", "reservations"), (outages, "outage", "outages")];
        let kinds = kinds.into_iter().filter(|(number, _, _)| *number > 0);
        let kinds: Vec<String> = kinds.map(|(number, one, many)| counted(number, one, many)).collect();
        let closures = kinds.join(" and the ");
        if self.rules.backfill != Backfill::Slurm {
            return Some(format!(
                "{} ignores the {closures} of the cluster file; only --scheduler slurm follows {}.",
                self.rules.scheduler_name(),
                if reservations + outages == 1 { "it" } else { "them" }
            ));
        }
        let mut all = cluster.reservations.iter().chain(&cluster.outages);
        let has_dates = all.any(|closure| matches!(closure.from, SiteTime::Date(_)));
        (has_dates && !self.log_has_dates).then(|| {
            format!(
                "The {closures} of the cluster file have dates, and the log has none (no UnixStartTime in its header): \
                 closures with dates have no effect."
            )
        })
    }

    /// Returns a note on assumed wall times, if backfilling uses them.
    fn note(&self) -> Option<String> {
        let (unasked, overran) = (self.jobs.without_request, self.jobs.exceeded_request);
        if self.rules.backfill == Backfill::Slurm {
            let text = "no time limit of their own: the limit of the partition counts, else backfill plans a year.";
            return (unasked > 0).then(|| format!("{} {text}", counted(unasked, "job has", "jobs have")));
        }
        if self.rules.backfill == Backfill::None || unasked + overran == 0 {
            return None;
        }
        let mut assumed = Vec::new();
        if unasked > 0 {
            assumed.push(counted(unasked, "job requests no wall time", "jobs request no wall time"));
        }
        if overran > 0 {
            let one = "job ran longer than its requested wall time";
            assumed.push(counted(overran, one, "jobs ran longer than their requested wall time"));
        }
        let whose = if unasked + overran == 1 { "its" } else { "their" };
        Some(format!("{}; {whose} run time is used as the estimate.", assumed.join(" and ")))
    }

    /// Returns the mean wait and the mean run time of the jobs that started, in seconds.
    fn waits(&self, workload: &Workload, run: &Simulated) -> MeanWait {
        let columns = workload.columns();
        let started = || (0..workload.len()).filter(|row| run.starts[*row] != NO_TIME);
        let wait = |row: usize| u128::from(run.starts[row].saturating_sub(columns.submit[row].nanos()));
        let ran = |row: usize| u128::from(run.run_time(row, columns.duration[row]).nanos());
        let mean = |sum: u128| sum as f64 / 1e9 / started().count().max(1) as f64;
        MeanWait { wait_s: mean(started().map(wait).sum()), run_s: mean(started().map(ran).sum()) }
    }

    /// Records a run's measurements other than waits.
    pub(crate) fn record(&self, workload: &Workload, tasks: &UserTasks, run: &Simulated) -> JobsRecord {
        let span = run.end - workload.columns().submit.first().copied().unwrap_or_default();
        let mut record = JobsRecord {
            backfill: self.rules.backfill_name(),
            unasked: self.jobs.without_request,
            overran: self.jobs.exceeded_request,
            ..JobsRecord::default()
        };
        let Some(on) = &run.machines else { return record };
        if let Some(slurm) = &on.slurm {
            let by = |activity| slurm.started_by.iter().filter(|by| **by == Some(activity)).count() as u64;
            record.started_by = Some(StartedByRecord {
                submit: by(Activity::Submit),
                main: by(Activity::Main),
                backfill: by(Activity::Backfill),
            });
            record.ended_by_limit = Some(slurm.ended_by_limit);
            record.beyond_submit_limits = slurm.beyond_submit_limits;
            record.never_started = slurm.never_started;
            record.preempted = slurm.preempted.map(|p| PreemptedRecord {
                requeued: p.requeued,
                cancelled: p.cancelled,
                suspended: p.suspended,
            });
        }
        if let Some(cluster) = &self.cluster {
            record.recorded_machines = recorded_machines::compare(workload, run);
            record.placement = on.slurm.is_none().then(|| self.rules.placement_name().into());
            let names = || workload.resources().iter().map(|r| r.name.clone());
            let by_name = |each: Vec<Option<f64>>| names().zip(each).filter_map(|(name, u)| Some((name, u?))).collect();
            for (group, each) in cluster.groups.iter().zip(on.group_utilization(&self.site, span)) {
                let (name, machines) = (group.name.clone(), group.count);
                let utilization = by_name(each);
                record.groups.push(GroupRecord { name, machines, utilization, ..GroupRecord::default() });
            }
            let waiting = FreeWhileWaiting::measure(workload, &self.site, &self.jobs, run);
            for (group, waiting) in record.groups.iter_mut().zip(waiting) {
                group.free_while_waiting = by_name(waiting.free);
                group.waits_that_may_use = Some(waiting.may_use);
            }
            record.idle_machines = idle_machines(&record.groups, self.waits(workload, run), self.rules.layout);
        }
        for (user, name) in workload.users().iter().enumerate() {
            let mut reasons: BTreeMap<Rejection, u64> = BTreeMap::new();
            for &row in tasks.of(UserId(user as u32)) {
                let submitted = workload.columns().submit[row as usize] <= run.end;
                if let Some(rejection) = run.rejections[row as usize].filter(|_| submitted) {
                    *reasons.entry(rejection).or_default() += 1;
                }
            }
            for (rejection, jobs) in reasons {
                let why = self.jobs.describe(rejection, workload.resources());
                record.refused.push(RejectedJobsRecord { user: name.clone(), why, jobs });
            }
        }
        record
    }
}

/// The jobs that a rule laid out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayoutRecord {
    /// The rule: `source`, `exclusive`, `single`, `packed`, `whole`, `chunk`, `otherwise`, or `pool` where there are no machines.
    pub rule: String,
    /// The number of jobs.
    pub jobs: u64,
    /// Their processors, or else their amounts of the first resource, times their run times, in hours.
    pub cpu_hours: f64,
}

/// Sums jobs by the rule that laid them out, in the order of the rules' names.
pub(crate) fn layout_records(workload: &Workload, rule: impl Fn(usize) -> &'static str) -> Vec<LayoutRecord> {
    let resource = workload.resources().iter().position(|r| PROCESSORS.contains(&r.name.as_str())).unwrap_or(0);
    let mut sums: BTreeMap<&'static str, (u64, u128)> = BTreeMap::new();
    for row in 0..workload.len() {
        let (jobs, area) = sums.entry(rule(row)).or_default();
        *jobs += 1;
        let amount = u128::from(workload.amounts(row)[resource].0);
        *area += amount * u128::from(workload.columns().duration[row].nanos());
    }
    let hour = workload.resources()[resource].steps() as f64 * 3600e9;
    let record = |(rule, (jobs, area)): (&str, (u64, u128))| LayoutRecord {
        rule: rule.to_string(),
        jobs,
        cpu_hours: area as f64 / hour,
    };
    sums.into_iter().map(record).collect()
}

/// Describes a rule of layout to users.
pub fn layout_rule_text(rule: &str) -> &'static str {
    match rule {
        "source" => "as the source says",
        "single" => "one chunk each",
        "packed" => "single processors",
        "whole" => "whole machines",
        "exclusive" => "whole machines as required",
        "otherwise" => "otherwise than the source says, which no machines hold",
        "pool" => "in a pool",
        _ => "chunks",
    }
}

/// Returns the system on which a run is replayed: the site, or otherwise the pool.
pub(crate) fn replay_on<'a>(on_site: Option<&'a OnSite>, capacity: &'a Capacity, options: PoolOptions) -> ReplayOn<'a> {
    match on_site {
        None => ReplayOn::Pool { capacity, options },
        Some(on) => ReplayOn::Site { site: &on.site, jobs: &on.jobs, options: on.options(options) },
    }
}

/// How often running jobs were preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptedRecord {
    /// And waited to run again; a job counts as often as that happened.
    pub requeued: u64,
    /// And ended.
    pub cancelled: u64,
    /// And stopped until they could go on; a job counts as often as that happened.
    #[serde(default)]
    pub suspended: u64,
}

/// Measurements of a run of jobs other than waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsRecord {
    /// The kind of backfilling: `none`, `easy` or `conservative`, these with settings, or `slurm`.
    pub backfill: String,
    /// The placement rule; absent on a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// How many jobs each activity of Slurm's scheduler started; absent under another scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<StartedByRecord>,
    /// How many jobs Slurm's scheduler ended at their limits; absent under another scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by_limit: Option<u64>,
    /// How often running jobs were preempted; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted: Option<PreemptedRecord>,
    /// How many jobs were submitted beyond a limit of submissions, which Slurm's scheduler would have refused; absent
    /// under another scheduler, and without such limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_submit_limits: Option<u64>,
    /// How many jobs never started under Slurm's scheduler, mostly since the machines that they need do not come back;
    /// absent if none were left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_started: Option<u64>,
    /// Jobs without a requested wall time; their run time was used as the request.
    pub unasked: u64,
    /// Jobs that ran longer than their requested wall time; their run time was used as the request.
    pub overran: u64,
    /// The machines that the log names, beside those of the simulation; absent on a pool, or if the log names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_machines: Option<RecordedMachinesRecord>,
    /// Which kinds of machine are free while jobs wait, why, and what to do; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_machines: Option<String>,
    /// The groups of machines; none on a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRecord>,
    /// Rejected jobs by user and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RejectedJobsRecord>,
}

/// How many jobs each activity of Slurm's scheduler started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedByRecord {
    /// At their submission (`SchedSubmit` in sacct's Flags).
    pub submit: u64,
    /// In a pass of the main scheduler (`SchedMain`).
    pub main: u64,
    /// By backfill (`SchedBackfill`).
    pub backfill: u64,
}

/// A group of machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Its name.
    pub name: String,
    /// How many machines it has.
    pub machines: u32,
    /// The time mean of the resources in use divided by the capacity, from the first submission to the end.
    pub utilization: PerResource,
    /// The free part of each resource while jobs waited: the mean over all seconds that jobs waited, so that an instant with
    /// two waiting jobs counts twice. Empty if none waited.
    #[serde(default, skip_serializing_if = "PerResource::is_empty")]
    pub free_while_waiting: PerResource,
    /// The part of these seconds that is of jobs which may use these machines, and a part of which fits on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_that_may_use: Option<f64>,
}

/// A user's jobs that were rejected because they could never run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RejectedJobsRecord {
    /// The user's name.
    pub user: String,
    /// The reason.
    pub why: String,
    /// The number of jobs.
    pub jobs: u64,
}
