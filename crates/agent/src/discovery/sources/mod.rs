//! The sources of running workloads, one file or directory for each.

pub(crate) mod containers;
pub(crate) mod libvirt;
pub(crate) mod pattern;
pub(crate) mod slurm;
pub(crate) mod table;
pub(crate) mod user_slices;
