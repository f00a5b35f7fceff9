//! What the kernel measures of groups of processes, and the weights by which it divides a machine among them.
//!
//! A [`Group`] is what the kernel weighs as one against its siblings: a virtual machine's scope, a user's
//! slice, a job's step. A [`Meter`] reads what groups have used; an [`Enforcer`] gives them weights, and knows how
//! to put back what was there. Each file with an enforcer is one way of doing that. All of them take the same
//! [`Levels`], which are ratios: what numbers a kernel file takes is the enforcer's own matter.
//!
//! This room decides nothing about who should get what, and touches no group that it was not handed.
mod attributes;
mod counters;
mod descriptors;
mod dry_run;
mod enforcer;
mod error;
mod group;
mod hierarchies;
mod levels;
mod lock;
mod meter;
mod own;
mod pressure;
mod probe;
mod recorder;
mod several;
mod sources;
mod v1;
mod v2;

pub use descriptors::Budget;
pub use dry_run::DryRun;
pub use enforcer::{Before, Change, Enforcer};
pub use error::KernelError;
pub use group::{Group, GroupId, parent};
pub use hierarchies::{Hierarchies, Listed};
pub use levels::{Control, Levels};
pub use lock::HostLock;
pub use meter::{Meter, Usage};
pub use own::Own;
pub use pressure::{Pressure, Stall};
pub use probe::{Bfq, Disk, Finding, Findings, Places, Remark, probe};
pub use recorder::{Recorder, Recording};
pub use several::{Meters, Several, Whom};
pub use v1::{CgroupV1, CgroupV1Meter};
pub use v2::{CgroupV2, CgroupV2Meter, DiskWeight, Protection};
