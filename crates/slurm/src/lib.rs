//! A site that runs Slurm, as typed values: what is in the queue, what was, on which machines, for which accounts.
//!
//! Everything is read as text from the commands each site has (`squeue`, `sacct`, `scontrol`, `sacctmgr`, `sshare`,
//! `sprio`), by the names in their header lines, so that the column order and columns of other releases (22.05 to
//! 25.11) do not matter. Text is 10 to 20 times cheaper for the controller than `--json`, which besides changes
//! with each release; the queue can be had as JSON all the same, from slurmrestd ([`Rest`]). A value that is not needed
//! may be absent; one that is there and bad is a [`TextError`] with its place.
//!
//! This room prints nothing, decides nothing and changes nothing at the site; fairness is not its business.
//!
//! ```
//! use evenhand_slurm::{Queue, Recorded};
//!
//! let text = "JOBID|USER|STATE|ARRAY_JOB_ID|ARRAY_TASK_ID|TRES_ALLOC\n7|ann|PENDING|7|1-1000%5|cpu=2,mem=4G,node=1\n";
//! let queue = Queue::read(&Recorded::default().with("squeue", text)).unwrap();
//! assert_eq!(queue.jobs[0].tasks(), 1000);
//! assert_eq!(queue.jobs[0].requested.to_string(), "cpu=2,mem=4096M,node=1");
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accounts;
mod cluster;
mod commands;
mod configuration;
pub mod drive;
mod ended;
mod error;
mod gres;
mod history;
mod hosts;
mod nodes;
mod partitions;
mod plan;
mod priorities;
mod queue;
mod records;
mod rest;
mod shares;
mod table;
mod tasks;
mod tres;
mod value;

pub use accounts::{Accounts, Association, Leaves, Shares};
pub use cluster::{ClusterOptions, Described, cluster};
pub use commands::{Call, CommandError, Commands, Complaint, Recorded, System};
pub use configuration::Configuration;
pub use ended::Ended;
pub use error::{ReadError, TextError};
pub use gres::{Gres, parse_gres};
pub use history::{History, Window};
pub use hosts::hosts;
pub use nodes::{Node, Nodes};
pub use partitions::{Partition, Partitions};
pub use plan::{Lacks, Party, Place, Plan, PlanError, PlanOptions, SiteSnapshot, Unranked};
pub use priorities::{Priorities, Priority};
pub use queue::{Array, Heterogeneous, Hold, Job, JobState, Queue};
pub use rest::{ApiVersion, Rest, RestError};
pub use shares::{ShareRow, ShareTable};
pub use tasks::TaskIds;
pub use tres::Tres;
pub use value::Limit;
