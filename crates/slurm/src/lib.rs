//! Reads a site that runs Slurm as typed values: its queue, history, nodes, partitions, accounts and priorities; plans
//! the order of the queue under a policy, and keeps the queue in that order.
//!
//! The input is the text output of Slurm's commands (`squeue`, `sacct`, `scontrol`, `sacctmgr`, `sshare`, `sprio`).
//! Columns are found by their names in the header line, so their order, and further columns of other releases (22.05 to
//! 25.11), do not matter. For the controller text is 10 to 20 times cheaper than `--json`, whose form changes with each
//! release. The queue can also be read as JSON from slurmrestd ([`Rest`]). Optional values may be missing; a malformed
//! value is a [`TextError`] with its position.
//!
//! Only [`queue_driver`] changes anything at the site, and only site factors of waiting jobs.
//!
//! ```
//! use evenhand_slurm::{Queue, RecordedOutput};
//!
//! let text = "JOBID|USER|STATE|ARRAY_JOB_ID|ARRAY_TASK_ID|TRES_ALLOC\n7|ann|PENDING|7|1-1000%5|cpu=2,mem=4G,node=1\n";
//! let queue = Queue::read(&RecordedOutput::default().with("squeue", text)).unwrap();
//! assert_eq!(queue.jobs[0].tasks(), 1000);
//! assert_eq!(queue.jobs[0].requested.to_string(), "cpu=2,mem=4096M,node=1");
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accounting_history;
mod amount_text;
mod array_task_ids;
mod associations;
mod batch_script;
mod bounded_start;
mod cluster_from_site;
mod configuration;
mod coordinators;
mod error;
mod explain_wait;
mod fair_share_tree;
mod find_waiting;
mod finished_job;
mod new_request;
mod nodes;
mod parse_key_values;
mod parse_table;
mod parse_values;
mod partitions;
mod past_and_queue;
mod plan;
mod pool;
mod priorities;
mod queue;
pub mod queue_driver;
mod run_commands;
mod site_files;
mod site_priority;
mod slurmrestd;
mod tres;
mod turn;
mod waiting_reasons;
mod why_record;

pub use accounting_history::{History, Window};
pub use array_task_ids::ArrayTaskIds;
pub use associations::{Accounts, Association, AssociationSetting, AssociationTree, RawShares};
pub use batch_script::{BatchRequest, BatchScriptError};
pub use bounded_start::{NotPlanned, bounded_start};
pub use cluster_from_site::{ClusterOptions, LeftOut, SiteCluster, cluster};
pub use configuration::Configuration;
pub use coordinators::Coordinators;
pub use error::{ReadError, TextError};
pub use evenhand_model::expand_hostlist;
pub use evenhand_workload::slurm_notation::{Gres, parse_gres};
pub use explain_wait::{Ahead, Planned, Request, WaitingJob};
pub use fair_share_tree::{ShareRow, ShareTable};
pub use find_waiting::NotWaiting;
pub use finished_job::FinishedJob;
pub use new_request::{NeverStarts, NewRequest};
pub use nodes::{Node, Nodes};
pub use parse_values::Limit;
pub use partitions::{DefaultMemory, Partition, Partitions};
pub use past_and_queue::{NewJob, PastAndQueue};
pub use plan::{Lacks, Party, Place, Plan, PlanError, PlanOptions, SiteSnapshot, Unranked};
pub use pool::{Counted, PoolResource, Pools};
pub use priorities::{FactorRecord, Priorities, Priority};
pub use queue::{Array, Heterogeneous, Hold, Job, JobState, Queue};
pub use run_commands::{Call, CommandError, Commands, FailureKind, LocalCommands, RecordedOutput};
pub use site_files::{
    Dump, Position, Qos, SIMULATED_SETTINGS, SchedulerSettings, SiteClosure, SiteFileError, SlurmConf, TextFiles,
    Unmodelled, gang_with_other_modes, inconsistent_qos, licences_of_conf, limit_associations, limit_jobs_of_qos,
    limit_partitions, memory_without_effect, parse_dump, parse_events, parse_qos, parse_reservations,
    priorities_and_preemption_of_qos, read_command_text, read_slurm_conf, scheduler_settings, simulated_settings_text,
    slurm_conf_names, some_records, unmodelled_settings, weights_without_priorities,
};
pub use site_priority::{site_configuration, site_priority};
pub use slurmrestd::{ApiVersion, Rest, RestError};
pub use tres::Tres;
pub use turn::NoTurn;
pub use waiting_reasons::{ReasonKind, explain_reason};
pub use why_record::{AmountRecord, BeforeRecord, BlockedRecord, StandingRecord, WhatIfRecord, WhyRecord};
