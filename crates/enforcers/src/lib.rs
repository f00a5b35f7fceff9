//! Measures the resource use of groups of processes, and divides the resources of a machine among them: by control groups
//! ([`cgroups`]), by systemd for the units that it owns ([`systemd`]), and by traffic control for the network ([`traffic`]).
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod cgroups;
pub mod systemd;
pub mod traffic;
