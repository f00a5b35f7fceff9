//! Reading and setting what the Linux kernel, systemd and traffic control give to running workloads.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod cgroups;
pub mod systemd;
pub mod traffic;
