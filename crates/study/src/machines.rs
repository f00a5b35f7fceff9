//! Runs of jobs: on machines, or on a pool with backfilling.

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

/// Changes when the same inputs give other results, or more of them.
const SIMULATION: &str = "jobs 2";

/// How jobs are put on machines, and which may start before others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRules {
    /// Where on a cluster of machines a chunk is put.
    pub placement: Placement,
    /// Who may start before the head of the queue.
    pub backfill: Backfill,
}

impl JobRules {
    /// The name of the kind of backfilling.
    pub fn backfill_name(self) -> &'static str {
        BACKFILLS.iter().find(|(_, b)| *b == self.backfill).map_or("", |(name, _)| name)
    }

    /// The name of the placement rule.
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
    /// On the machines of a cluster.
    pub(crate) fn machines(cluster: &Cluster, workload: &Workload, rules: JobRules) -> Result<Arc<OnSite>, SiteError> {
        let site = Site::machines(cluster, workload.resources())?;
        let jobs = Jobs::new(workload, &site);
        Ok(Arc::new(OnSite { site, jobs, rules, cluster: Some(cluster.clone()) }))
    }

    /// On a pool with backfilling; `None` without: the simulation of the pool does that.
    pub(crate) fn pool(capacity: &Capacity, workload: &Workload, rules: JobRules) -> Option<Arc<OnSite>> {
        let site = (rules.backfill != Backfill::None).then(|| Site::pool(capacity))?;
        let jobs = Jobs::new(workload, &site);
        Some(Arc::new(OnSite { site, jobs, rules, cluster: None }))
    }

    pub(crate) fn options(&self, pool: PoolOptions) -> JobOptions {
        let JobRules { placement, backfill, .. } = self.rules;
        JobOptions { placement, backfill, blocking: pool.blocking, until: pool.until }
    }

    /// Adds what a run on this site depends on.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(SIMULATION).text(self.rules.backfill_name());
        if let Some(cluster) = &self.cluster {
            // Every field, exactly.
            digest.text(self.rules.placement_name()).text(&format!("{cluster:?}"));
        }
    }

    /// Returns what was assumed about wall times, if backfilling uses them.
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

    /// Returns what a run measured beside waits.
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
            let mut why: BTreeMap<Rejection, u64> = BTreeMap::new();
            for &row in tasks.of(UserId(user as u32)) {
                let submitted = workload.columns().submit[row as usize] <= run.end;
                if let Some(refusal) = run.rejections[row as usize].filter(|_| submitted) {
                    *why.entry(refusal).or_default() += 1;
                }
            }
            for (refusal, jobs) in why {
                let why = refusal.describe(workload.resources());
                record.refused.push(RefusedRecord { user: name.clone(), why, jobs });
            }
        }
        record
    }
}

/// Returns where a run is replayed: on a site, or on the pool where there is none.
pub(crate) fn replay_on<'a>(on_site: Option<&'a OnSite>, capacity: &'a Capacity, options: PoolOptions) -> ReplayOn<'a> {
    match on_site {
        None => ReplayOn::Pool { capacity, options },
        Some(on) => ReplayOn::Site { site: &on.site, jobs: &on.jobs, options: on.options(options) },
    }
}

/// Measurements of a run of jobs beside waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsRecord {
    /// Who could start before the head: `none`, `easy` or `conservative`.
    pub backfill: String,
    /// Where chunks were put; absent on a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Jobs that asked for no wall time: their run time stood for it.
    pub unasked: u64,
    /// Jobs that ran longer than they asked: their run time stood for what they asked.
    pub overran: u64,
    /// The groups of machines; none on a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRecord>,
    /// Refused jobs by user and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedRecord>,
}

/// A group of machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Its name.
    pub name: String,
    /// How many machines it has.
    pub machines: u32,
    /// Time mean of what was held over what there is, from the first submission to the end.
    pub utilization: PerResource,
}

/// Jobs of a user that could never run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RefusedRecord {
    /// The user's name.
    pub user: String,
    /// Why.
    pub why: String,
    /// How many.
    pub jobs: u64,
}
