//! One point of a larger grid: a workload prepared once and replayed any number of times, without a folder.

use std::time::Instant;

use evenhand_model::{AccountTree, Capacity, CapacityError, MeanUse, Workload, mean_use, to_f64};
use evenhand_policies::equivalents::Combine;
use evenhand_policies::{Decay, PolicyError};
use evenhand_simulator::{
    Metrics, PoolOptions, Progress, Simulated, SimulationError, SiteError, TaskProcessors, UserTasks,
};
use thiserror::Error;

use crate::digest::workload_digest;
use crate::jobs_on_site::{JobRules, OnSite, replay_on};
use crate::plan::{RequestedCapacity, RunSite, last_event, per_resource};
use crate::policy_inputs::PolicyInputs;
use crate::record::{RunRecord, WorkloadRecord};
use crate::replay::replay;
use crate::site_question::unix_origin;

/// A workload with everything that its runs share.
#[derive(Debug)]
pub struct Prepared {
    workload: Workload,
    tasks: UserTasks,
    mean_use: MeanUse,
    digest: String,
    accounts: Option<AccountTree>,
}

/// One run of a prepared workload.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// How fast the past is forgotten, for policies that need it.
    pub decay: Option<Decay>,
    /// The pool, or machines: in strict order, first fit.
    pub capacity: &'a RequestedCapacity,
    /// The inputs from which policies are built.
    pub inputs: &'a PolicyInputs,
    /// Whether a task that does not fit stops all scheduling.
    pub blocking: bool,
    /// Whether the run stops at the last original event.
    pub until_trace_end: bool,
    /// Backfilling, and placement on machines.
    pub jobs: JobRules,
}

/// Why a point has no result.
#[derive(Debug, Error)]
pub enum PointError {
    /// The pool is refused.
    #[error("capacity {name}: {source}")]
    Capacity {
        /// The capacity as named.
        name: String,
        /// Why.
        source: CapacityError,
    },
    /// The machines do not go with the workload.
    #[error("{name}: {source}")]
    Site {
        /// The capacity as named.
        name: String,
        /// Why.
        source: SiteError,
    },
    /// The policy cannot be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// It cannot be simulated, or was cancelled.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

impl Prepared {
    /// Expands rows with a count, and computes what all runs need: R, and each user's tasks.
    pub fn new(workload: Workload) -> Prepared {
        let workload = workload.expanded();
        let (mean_use, digest, tasks) = (mean_use(&workload), workload_digest(&workload), UserTasks::new(&workload));
        Prepared { workload, tasks, mean_use, digest, accounts: None }
    }

    /// Prepares a workload whose users are those of a tree of accounts.
    pub fn in_accounts(workload: Workload, tree: AccountTree) -> Prepared {
        Prepared { accounts: Some(tree), ..Prepared::new(workload) }
    }

    /// Returns the accounts of the workload's users.
    pub fn accounts(&self) -> Option<&AccountTree> {
        self.accounts.as_ref()
    }

    /// Returns the workload.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Returns the record of the workload; `source` describes where it came from.
    pub fn record(&self, source: &str) -> WorkloadRecord {
        workload_record(&self.workload, &self.mean_use, &self.digest, source)
    }

    /// Runs one point. The record has the curves, and no id.
    ///
    /// # Errors
    /// Returns an error if the capacity is refused, the policy cannot be built, the run passes the end of simulated time,
    /// or it was cancelled.
    pub fn run(&self, point: &Point<'_>, progress: &Progress) -> Result<RunRecord, PointError> {
        let run_site = point.capacity.run_site(&self.workload, &self.mean_use, point.jobs);
        let RunSite { name, factor, capacity, on_site, equivalents } =
            run_site.map_err(|(name, source)| match source {
                SiteError::Capacity(source) => PointError::Capacity { name, source },
                source => PointError::Site { name, source },
            })?;
        let until = point.until_trace_end.then(|| last_event(&self.workload, &self.mean_use));
        let options = PoolOptions { blocking: point.blocking, until };
        let begun = Instant::now();
        let context = point.inputs.context(&self.workload, &capacity, equivalents.as_ref(), point.decay);
        let mut policy = point.inputs.registry.build(point.policy, &context)?;
        let on_site = on_site.as_deref();
        let on = replay_on(on_site, &capacity, options);
        let simulated = replay(&self.workload, &self.tasks, on, policy.as_mut(), progress)?;
        let elapsed_s = begun.elapsed().as_secs_f64();
        let processors = processors(&self.workload, &capacity, on_site);
        Ok(RunRecord {
            policy: point.policy.to_string(),
            capacity_factor: factor,
            capacity_name: name,
            delta: point.decay.map(|d| d.delta()),
            tau_s: point.decay.map(|d| d.tau_s()),
            scheduler: Some(point.jobs.scheduler_name()),
            elapsed_s,
            jobs: on_site.map(|on| on.record(&self.workload, &self.tasks, &simulated)),
            ..measured(&self.workload, &self.tasks, &capacity, &simulated, processors.as_ref())
        })
    }
}

/// Returns the processor equivalents of tasks: on machines by each machine, in a pool by the pool.
pub(crate) fn processors<'a>(
    workload: &'a Workload,
    capacity: &Capacity,
    on_site: Option<&'a OnSite>,
) -> Option<TaskProcessors<'a>> {
    match on_site.and_then(|on| Some((on, on.cluster.as_ref()?))) {
        Some((on, cluster)) => TaskProcessors::on_machines(workload, cluster, &on.jobs, Combine::default()),
        None => TaskProcessors::in_pool(workload, capacity),
    }
}

/// Returns the measurements of a run; the other fields of the record have defaults.
pub(crate) fn measured(
    workload: &Workload,
    tasks: &UserTasks,
    capacity: &Capacity,
    simulated: &Simulated,
    processors: Option<&TaskProcessors<'_>>,
) -> RunRecord {
    let metrics = Metrics::measure(workload, tasks, capacity, simulated, processors);
    RunRecord {
        capacity: per_resource(workload, |r| capacity.units(r)),
        mean_wait_s: metrics.mean_wait_s,
        mean_bounded_slowdown: metrics.mean_bounded_slowdown,
        users_mean_wait_s: metrics.users_mean_wait_s,
        jain_wait: metrics.jain_wait,
        max_min_wait_ratio: metrics.max_min_wait_ratio,
        utilization: per_resource(workload, |r| metrics.utilization[r]),
        makespan_s: metrics.makespan.secs_f64(),
        decisions: simulated.decisions,
        order_events: simulated.order_events,
        totals: metrics.totals,
        users: metrics.users,
        nuwt_per_cpu: metrics.nuwt_per_cpu,
        nuwt_per_pe: metrics.nuwt_per_pe,
        series: metrics.series,
        ..RunRecord::default()
    }
}

/// Returns the record of a workload; `source` describes where it came from.
pub(crate) fn workload_record(w: &Workload, mean_use: &MeanUse, digest: &str, source: &str) -> WorkloadRecord {
    let resources = || w.resources().iter();
    let first = w.columns().submit.first().copied().unwrap_or_default();
    WorkloadRecord {
        source: source.to_string(),
        tasks: w.tasks(),
        users: w.users().len() as u64,
        span_s: (last_event(w, mean_use) - first).secs_f64(),
        first_submission_unix_s: unix_origin(w).map(|origin| origin + first.nanos() / 1_000_000_000),
        mean_use: resources().zip(&mean_use.units).map(|(r, u)| (r.name.clone(), to_f64(u))).collect(),
        units: resources().map(|r| (r.name.clone(), r.unit.clone())).collect(),
        digest: digest.to_string(),
        layout: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::MethodRecord;
    use crate::{Live, Plan, StudyRequest, TaskFormat};
    use evenhand_model::{Quantity, Resource, Span, Task, Time, Weights, WorkloadBuilder};
    use evenhand_policies::Order;

    /// The reference is the study, which runs through a plan and a folder.
    #[test]
    fn a_point_is_what_a_study_of_one_run_says() {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for i in 0..120u64 {
            b.push(&Task {
                submit: Time::from_secs(i / 4),
                duration: Span::from_secs(3 + i % 11),
                user: ["a", "b", "c"][(i % 7 % 3) as usize],
                amounts: &[1_000_000_000],
                ..Task::default()
            });
        }
        let workload = b.finish().unwrap();
        let weights = Weights::new(["1", "2", "1/3"].map(|w| Quantity::parse(w).unwrap())).unwrap();
        let inputs = PolicyInputs { order: Order::LiveTree, ..PolicyInputs::new(weights) };
        let prepared = Prepared::new(workload.clone());
        for (policy, blocking, until_trace_end) in [("fifo", true, false), ("sdrf", false, true)] {
            let capacity = RequestedCapacity::Multiple("0.7".into(), Quantity::parse("0.7").unwrap());
            let decay = Decay::from_delta(&Quantity::parse("0.99").unwrap()).unwrap();
            let request = StudyRequest {
                policies: vec![policy.into()],
                against: None,
                capacities: vec![capacity.clone()],
                decays: vec![("0.99".into(), decay)],
                inputs: inputs.clone(),
                blocking,
                until_trace_end,
                jobs: JobRules::default(),
            };
            let plan = Plan::new(workload.clone(), &request).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let study =
                plan.run(dir.path(), "s", MethodRecord::default(), TaskFormat::None, &Live::new(&plan)).unwrap();
            let decay = inputs.registry.get(policy).unwrap().needs_decay.then_some(decay);
            let point = Point {
                policy,
                decay,
                capacity: &capacity,
                inputs: &inputs,
                blocking,
                until_trace_end,
                jobs: JobRules::default(),
            };
            let mut run = prepared.run(&point, &Progress::default()).unwrap();
            (run.id, run.elapsed_s) = (study.runs[0].id.clone(), study.runs[0].elapsed_s);
            // Only studies measure it.
            run.waste = study.runs[0].waste.clone();
            run.trust = study.runs[0].trust.clone();
            run.classes = study.runs[0].classes.clone();
            assert_eq!(run, study.runs[0]);
            assert_eq!(
                WorkloadRecord { layout: study.workload.layout.clone(), ..prepared.record("s") },
                study.workload
            );
        }
    }
}
