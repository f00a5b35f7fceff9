//! The jobs of a workload on a site (machines, or a pool with backfilling), and the records of their runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_model::{Capacity, Cluster, UserId, Workload};
use evenhand_simulator::{
    BACKFILLS, Backfill, JobOptions, Jobs, PLACEMENTS, Placement, PoolOptions, Rejection, Simulated, Site, SiteError,
    UserTasks,
};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::record::PerResource;
use crate::replay::ReplayOn;

/// The version of the simulation; changes when the same inputs give other or more results.
const SIMULATION: &str = "jobs 3";

/// The schedulers by name: strict order, or a kind of backfilling.
pub const SCHEDULERS: [(&str, Backfill); 3] =
    [("strict", Backfill::None), ("easy", Backfill::Easy), ("conservative", Backfill::Conservative)];

/// The rules for the placement of jobs on machines, and for backfilling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRules {
    /// The rule that chooses the machine of a chunk.
    pub placement: Placement,
    /// The rule for jobs that start before the head of the queue.
    pub backfill: Backfill,
}

impl JobRules {
    /// Returns the name of the kind of backfilling.
    pub fn backfill_name(self) -> &'static str {
        BACKFILLS.iter().find(|(_, b)| *b == self.backfill).map_or("", |(name, _)| name)
    }

    /// Returns the name of the scheduler.
    pub fn scheduler_name(self) -> &'static str {
        SCHEDULERS.iter().find(|(_, b)| *b == self.backfill).map_or("", |(name, _)| name)
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
}

impl OnSite {
    /// Places a workload's jobs on the machines of a cluster.
    pub(crate) fn machines(cluster: &Cluster, workload: &Workload, rules: JobRules) -> Result<Arc<OnSite>, SiteError> {
        let site = Site::machines(cluster, workload.resources())?;
        let jobs = Jobs::new(workload, &site);
        Ok(Arc::new(OnSite { site, jobs, rules, cluster: Some(cluster.clone()) }))
    }

    /// Places a workload's jobs on a pool with backfilling. Returns `None` without backfilling, which the simulation of
    /// the pool handles.
    pub(crate) fn pool(capacity: &Capacity, workload: &Workload, rules: JobRules) -> Option<Arc<OnSite>> {
        let site = (rules.backfill != Backfill::None).then(|| Site::pool(capacity))?;
        let jobs = Jobs::new(workload, &site);
        Some(Arc::new(OnSite { site, jobs, rules, cluster: None }))
    }

    pub(crate) fn options(&self, pool: PoolOptions) -> JobOptions {
        let JobRules { placement, backfill, .. } = self.rules;
        JobOptions { placement, backfill, blocking: pool.blocking, until: pool.until }
    }

    /// Adds the inputs of a run on this site to a digest.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(SIMULATION).text(self.rules.backfill_name());
        if let Some(cluster) = &self.cluster {
            // Every field, exactly.
            digest.text(self.rules.placement_name()).text(&format!("{cluster:?}"));
        }
    }

    /// Returns a note on assumed wall times, if backfilling uses them.
    pub(crate) fn note(&self) -> Option<String> {
        let (unasked, overran) = (self.jobs.without_request, self.jobs.exceeded_request);
        if self.rules.backfill == Backfill::None || unasked + overran == 0 {
            return None;
        }
        let mut assumed = Vec::new();
        if unasked > 0 {
            assumed.push(format!("{unasked} jobs that ask for no wall time"));
        }
        if overran > 0 {
            assumed.push(format!("{overran} jobs that ran longer than they asked"));
        }
        Some(format!("Backfilling takes the run time as the estimate of {}", assumed.join(" and of ")))
    }

    /// Records a run's measurements other than waits.
    pub(crate) fn record(&self, workload: &Workload, tasks: &UserTasks, run: &Simulated) -> JobsRecord {
        let span = run.end - workload.columns().submit.first().copied().unwrap_or_default();
        let mut record = JobsRecord {
            backfill: self.rules.backfill_name().into(),
            unasked: self.jobs.without_request,
            overran: self.jobs.exceeded_request,
            ..JobsRecord::default()
        };
        let Some(on) = &run.machines else { return record };
        if let Some(cluster) = &self.cluster {
            record.placement = Some(self.rules.placement_name().into());
            let names = || workload.resources().iter().map(|r| r.name.clone());
            for (group, each) in cluster.groups.iter().zip(on.group_utilization(&self.site, span)) {
                let utilization = names().zip(each).filter_map(|(name, u)| Some((name, u?))).collect();
                record.groups.push(GroupRecord { name: group.name.clone(), machines: group.count, utilization });
            }
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
                let why = rejection.describe(workload.resources());
                record.refused.push(RejectedJobsRecord { user: name.clone(), why, jobs });
            }
        }
        record
    }
}

/// Returns the system on which a run is replayed: the site, or otherwise the pool.
pub(crate) fn replay_on<'a>(on_site: Option<&'a OnSite>, capacity: &'a Capacity, options: PoolOptions) -> ReplayOn<'a> {
    match on_site {
        None => ReplayOn::Pool { capacity, options },
        Some(on) => ReplayOn::Site { site: &on.site, jobs: &on.jobs, options: on.options(options) },
    }
}

/// Measurements of a run of jobs other than waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsRecord {
    /// The kind of backfilling: `none`, `easy` or `conservative`.
    pub backfill: String,
    /// The placement rule; absent on a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Jobs without a requested wall time; their run time was used as the request.
    pub unasked: u64,
    /// Jobs that ran longer than their requested wall time; their run time was used as the request.
    pub overran: u64,
    /// The groups of machines; none on a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRecord>,
    /// Rejected jobs by user and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RejectedJobsRecord>,
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
