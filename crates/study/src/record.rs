//! The records of a study in `summary.json`, which the report presents.
//!
//! Times are in seconds, amounts in the workload's own units. Absent numbers (`None`) are ones
//! that do not exist, such as the mean wait of a user none of whose tasks started.

use std::collections::BTreeMap;

pub use evenhand_simulator::{NormalizedWait, NuwtSpread, Series, Totals, UserRecord};

pub use crate::account_record::{AccountRecord, AccountResults, AccountUserRecord};
pub use crate::affected_users::OtherUsersRecord;
pub use crate::class_results::ClassResults;
pub use crate::compare_classes::ClassComparison;
pub use crate::jobs_on_site::{
    GroupRecord, JobsRecord, LayoutRecord, PreemptedRecord, RejectedJobsRecord, StartedByRecord, layout_rule_text,
};
pub use crate::recorded_machines::RecordedMachinesRecord;
pub use crate::repeat::{ComparisonNoise, Estimate, RepeatsRecord, RunNoise};
pub use crate::trust::{ClaimRecord, ClassRecord, StartsWithin, TrustRecord};
pub use crate::waste_record::{StrandedRecord, WasteRecord};
pub use crate::work_done::{WorkComparison, WorkRecord};
use serde::{Deserialize, Serialize};

/// One number per resource, by the resource's name.
pub type PerResource = BTreeMap<String, f64>;

/// A whole study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// The replayed workload.
    pub workload: WorkloadRecord,
    /// The parameters of the study, so that it can be repeated.
    pub method: MethodRecord,
    /// The finished runs: for each capacity in the given order, each policy in the given order.
    pub runs: Vec<RunRecord>,
    /// The comparison of each run with one policy, by default the first, at the same capacity.
    pub comparisons: Vec<ComparisonRecord>,
    /// How near the simulation comes to what happened, where the log has starts: of the policy that the others are
    /// compared with, or else of the first simulated one, on the first capacity in absolute units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustRecord>,
    /// How the runs were repeated, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RepeatsRecord>,
    /// The ids of runs that are missing because the study was interrupted.
    pub missing: Vec<String>,
}

/// The workload of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Its source: a path, or the generator's parameters.
    pub source: String,
    /// The number of its tasks.
    pub tasks: u64,
    /// The number of its users.
    pub users: u64,
    /// From the first submission to the last original event, in seconds.
    pub span_s: f64,
    /// The first submission in seconds since 1970, if the log has dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_submission_unix_s: Option<u64>,
    /// R: the mean use of each resource over time.
    pub mean_use: PerResource,
    /// The unit of each resource, for axis labels; empty if it has none.
    pub units: BTreeMap<String, String>,
    /// Digest of everything in the workload that a run depends on.
    pub digest: String,
    /// How many jobs each rule of layout covers, at the first capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<LayoutRecord>,
}

/// The parameters of a study, sufficient to repeat it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// The command line that repeats it.
    pub command: String,
    /// The version of evenhand.
    pub version: String,
    /// Parameters as name and value, in the order in which they should be read.
    pub parameters: Vec<(String, String)>,
}

/// One policy on one capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Unique in the study and fit for a file name: `sdrf-0.5`, or `drf-pool`.
    pub id: String,
    /// The policy's name.
    pub policy: String,
    /// The capacity of the pool.
    pub capacity: PerResource,
    /// The capacity as a multiple of R, if it was given as one.
    pub capacity_factor: Option<f64>,
    /// The capacity as the user named it: `0.5` or the file's name.
    pub capacity_name: String,
    /// The discount factor per second, of policies that have one.
    pub delta: Option<f64>,
    /// The time constant -1 s / ln(delta), of policies that have one.
    pub tau_s: Option<f64>,
    /// The half-life as typed (`8d`), if the decay was given as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<String>,
    /// How jobs are started: `strict`, `easy` or `conservative`, these with settings, or `slurm`; absent for what happened (`logged`).
    #[serde(default)]
    pub scheduler: Option<String>,
    /// One entry per user, in the workload's order of users. In the summary of a study with very many users only those
    /// most affected.
    pub users: Vec<UserRecord>,
    /// The users that a summary does not list; absent where `users` has all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_users: Option<OtherUsersRecord>,
    /// Mean wait over all started tasks; `None` if none started.
    pub mean_wait_s: Option<f64>,
    /// Mean of max(1, (wait + run) / max(run, 10 s)) over all started tasks; `None` if none started.
    #[serde(default)]
    pub mean_bounded_slowdown: Option<f64>,
    /// Mean over users of their mean waits (users with a started task).
    pub users_mean_wait_s: Option<f64>,
    /// Jain's index over users' mean waits: 1 is equal, 1/n is one user waiting for all.
    pub jain_wait: Option<f64>,
    /// Largest over smallest of the users' mean waits; `None` if the smallest is 0.
    pub max_min_wait_ratio: Option<f64>,
    /// The time mean of the resources in use divided by the capacity, from the first submission to the end.
    pub utilization: PerResource,
    /// The time from the first submission to the last simulated event, in seconds.
    pub makespan_s: f64,
    /// The number of times the policy chose the next user.
    pub decisions: u64,
    /// Order changes of the policy's ordering structure, as Sadok et al. (2021) count them; 0 for a scan.
    pub order_events: u64,
    /// Wall-clock time of the simulation.
    pub elapsed_s: f64,
    /// Tasks submitted, rejected, started and completed, all users together.
    pub totals: Totals,
    /// The spread of users' waits divided by squashed areas of CPUs; `None` if no resource is processors.
    #[serde(default)]
    pub nuwt_per_cpu: Option<NuwtSpread>,
    /// The same for areas in processor equivalents.
    #[serde(default)]
    pub nuwt_per_pe: Option<NuwtSpread>,
    /// The resources that were idle while tasks waited; measured for studies only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waste: Option<WasteRecord>,
    /// The accounts, the root first and each after its parent; measured for studies only, none where there
    /// are no accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountRecord>,
    /// The classes of users and tasks; measured for studies only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassResults>,
    /// How near the run comes to what happened; absent for what happened itself, for multiples of R, and where the log
    /// has no starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustRecord>,
    /// What users get done; measured where they react (`--arrivals`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkRecord>,
    /// How much the measurements vary between the repeats of the run, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<RunNoise>,
    /// Further measurements on machines or with backfilling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobsRecord>,
    /// Time series; not in `summary.json`, but in `runs/`.
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub series: Series,
}

/// One run against the run of the policy that all are compared with, at the same capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRecord {
    /// The run.
    pub run: String,
    /// The run it is held against.
    pub against: String,
    /// Users (of those with started tasks in both) whose mean wait is lower.
    pub users_better: u64,
    /// Users whose mean wait is higher.
    pub users_worse: u64,
    /// Users whose mean wait is the same.
    pub users_same: u64,
    /// users_worse over the users compared; `None` if there are none.
    pub share_worse: Option<f64>,
    /// Mean over users of 1 - wait / wait of the other run, over users who wait in the other run:
    /// the reduction in Figure 4 of Sadok et al. (2021); `None` if no user waits there.
    pub mean_user_wait_reduction: Option<f64>,
    /// 1 - users_mean_wait_s / that of the other run; `None` if no user waits there.
    pub users_mean_wait_reduction: Option<f64>,
    /// Users who complete more of their tasks than in the other run.
    pub complete_more: u64,
    /// Users who complete fewer.
    pub complete_fewer: u64,
    /// The classes of users and tasks; compared in studies only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassComparison>,
    /// What users get done against the other run; measured where they react (`--arrivals`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkComparison>,
    /// The number of repeats, that of the log itself included; absent without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// Those of `users_better` whose paired difference lies below zero with 95 % probability in another repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_better_beyond_noise: Option<u64>,
    /// Those of `users_worse` whose paired difference lies above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_worse_beyond_noise: Option<u64>,
    /// Paired differences over all users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<ComparisonNoise>,
}
