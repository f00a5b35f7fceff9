//! Measures the resource use of control groups, and sets the weights by which the kernel divides a machine among them.
//!
//! A [`Group`] is what the kernel schedules as one unit against its siblings: the scope of a virtual machine, a user's slice,
//! a step of a job. A [`Meter`] reads what groups have used; an [`Enforcer`] sets their weights and can restore the earlier
//! settings. Each mechanism is one file. All take the same [`Targets`], which are ratios: the conversion to the scale of a
//! kernel file is each enforcer's own.
//!
//! [`probe`] finds out which resources can be divided on this machine and why others cannot; its [`ProbeReport`] creates
//! the enforcers and meters that work there. [`PerResource`] holds one value for each [`Resource`].
//!
//! This module does not decide what share a group should get, and it changes only groups that it is handed, never
//! [`ProtectedCgroups`].
mod cgroup_enforcer;
mod cgroup_meter;
mod composite_enforcer;
mod composite_meter;
mod descriptor_budget;
mod dry_run;
mod enforcer;
mod error;
mod group;
mod hierarchies;
mod lock;
mod meter;
mod parse_counters;
mod pressure;
mod probe;
mod protected_cgroups;
#[cfg(test)]
mod recording_enforcer;
mod resource;
mod v1;
mod v2;

pub use cgroup_enforcer::CgroupEnforcer;
pub use cgroup_meter::CgroupMeter;
pub use composite_enforcer::{CompositeEnforcer, GroupFilter};
pub use composite_meter::CompositeMeter;
pub use descriptor_budget::DescriptorBudget;
pub use dry_run::DryRun;
pub use enforcer::{Change, Enforcer, SavedState};
pub use error::KernelError;
pub use group::{Group, GroupId, parent};
pub use hierarchies::{Hierarchies, ListedGroup};
pub use lock::HostLock;
pub use meter::Meter;
pub use pressure::{Pressure, Stall};
pub use probe::{BfqSettings, Disk, Observation, ProbeReport, ResourceSupport, SystemRoot, probe};
pub use protected_cgroups::{ProtectedCgroups, is_group_path};
pub use resource::{PerResource, Resource, Targets, Usage};
pub use v2::{DiskWeight, Protection};
