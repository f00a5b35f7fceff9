//! A study: one workload replayed under a grid of policies and capacities.
//!
//! This crate plans the grid ([`Plan`]), runs it in parallel ([`Plan::run`]), skips the runs that a folder already
//! holds for the same inputs, and turns the simulator's results into [`record`]s. [`Prepared`] runs single points of
//! larger grids ([`sweep`]). It draws no figures (the crate `report` does) and knows no policy by name:
//! [`PolicyInputs`] go to the policies' registry as they are.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account_record;
mod accounts;
mod affected_users;
mod class_results;
mod cluster_closures;
mod cluster_file;
mod cluster_licences;
mod cluster_qos;
mod compare_classes;
mod compare_runs;
mod digest;
mod idle_machines;
mod inputs;
mod jobs_on_site;
mod logged;
mod plan;
mod point;
mod policy_inputs;
mod reacting;
pub mod record;
mod recorded_machines;
mod repeat;
mod replay;
mod run;
mod scheduler;
mod sealed_json;
mod site_question;
mod study_folder;
pub mod sweep;
mod trust;
mod waste_record;
mod work_done;
mod write_cluster_and_accounts;

pub use accounts::{AccountsFile, WorkloadWithAccounts};
pub use affected_users::{ALL_USERS_LISTED, MOST_AFFECTED, OtherUsersRecord, most_affected_users};
pub use class_results::heavy_users;
pub use cluster_file::{cluster_of, read_cluster};
pub use compare_runs::compare;
pub use digest::{Digest, workload_digest};
pub use evenhand_simulator::{
    ARRIVALS, Activity, Arrivals, BACKFILLS, Backfill, Layout, LayoutError, PLACEMENTS, Placement, Reacted, Reactions,
    SlurmOptions,
};
pub use inputs::{read_pool, read_weights};
pub use jobs_on_site::{
    GroupRecord, JobRules, JobsRecord, LayoutRecord, PreemptedRecord, RejectedJobsRecord, StartedByRecord,
};
pub use logged::{LOGGED, has_starts};
pub use plan::{Plan, PlanError, RequestedCapacity, RunPlan, StudyRequest};
pub use point::{Point, PointError, Prepared};
pub use policy_inputs::PolicyInputs;
pub use reacting::{ArrivalsError, replay_reactions};
pub use repeat::{
    DEFAULT_REPEATS, Measured, RepeatError, Repeats, VARIATIONS, Variation, Vary, predicted, resolution, t_quantile,
};
pub use replay::{ReplayError, ReplayOn, replay, starts_under};
pub use run::{Live, LiveRepeats, LiveRun, RunState};
pub use scheduler::{BACKFILL_PRESETS, BackfillPreset, SCHEDULERS, parse_scheduler, scheduler_text};
pub use site_question::{
    HeaderExcess, SiteCapacity, cluster_file_of, is_generated, peak_above_stated, site_capacity, site_scheduler,
    stated_processors, unix_origin,
};
pub use study_folder::{StudyError, TaskFormat};
pub use write_cluster_and_accounts::{UserShares, accounts_text, cluster_text};
