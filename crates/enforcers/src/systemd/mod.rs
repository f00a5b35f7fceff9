//! Weights of units that systemd owns.
//!
//! Slices, scopes and services are systemd's: it alone writes their control groups' files (the single-writer rule of
//! its `CGROUP_DELEGATION` document), and what somebody else writes there it may undo at any time. So [`SystemdDbus`]
//! asks systemd, by `SetUnitProperties` of its D-Bus interface: one call a unit for all that changed, nothing where
//! nothing did, and calls for several units without waiting in between. The properties are `CPUWeight`, `IOWeight`
//! (systemd writes both `io.weight` and `io.bfq.weight`), and `MemoryLow` or `MemoryMin`.
//!
//! Values are set at run time only: systemd keeps them in files below `/run/systemd/system.control`, which the next start
//! of the machine does not have. A file below `/etc` that an administrator made outranks them when systemd reads its files
//! anew (systemd issue 16592), so all values are set again after each `daemon-reload`, and after a connection that was
//! lost. The administrator's way to end that is to take the unit out of the configuration, not `set-property`.
//!
//! [`restore`](evenhand_enforcers::cgroups::Enforcer::restore) sets back what was there. A weight that was not set is not set
//! afterwards; the file below `/run` that says so stays until the machine starts anew.
//!
//! The caller needs the right to set properties of units: root, or the polkit action
//! `org.freedesktop.systemd1.manage-units`.
mod bus;
mod systemd;
mod unit;
mod worker;

pub use systemd::{Settings, SystemdDbus};
