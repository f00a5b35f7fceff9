//! One file or folder a way of finding guests.

pub(crate) mod containers;
pub(crate) mod libvirt;
pub(crate) mod pattern;
pub(crate) mod slurm;
pub(crate) mod table;
pub(crate) mod user_slices;
