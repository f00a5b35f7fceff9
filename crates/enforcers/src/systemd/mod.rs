//! Sets the weights of systemd's units.
//!
//! Slices, scopes and services belong to systemd: it alone writes their cgroup files (the single-writer rule of its
//! `CGROUP_DELEGATION` document), and it may overwrite the changes of other processes at any time. So [`SystemdDbus`]
//! calls `SetUnitProperties` of systemd's D-Bus interface: one call a unit for all values that changed, no call for a
//! unit without changes, and calls for several units concurrently. The properties are `CPUWeight`, `IOWeight` (from
//! which systemd writes both `io.weight` and `io.bfq.weight`), and `MemoryLow` or `MemoryMin`.
//!
//! The values are set at run time only: systemd keeps them in files below `/run/systemd/system.control`, which a
//! reboot removes. A file below `/etc` that an administrator created overrides them when systemd reloads its files
//! (systemd issue 16592), so all values are set again after each `daemon-reload`, and after a connection was lost. To
//! end that, an administrator removes the unit from the agent's configuration; `set-property` does not suffice.
//!
//! [`restore`](crate::cgroups::Enforcer::restore) resets the earlier values. A weight that was unset is
//! unset again; the file below `/run` that records this remains until the next reboot.
//!
//! The caller needs the right to set properties of units: root, or the polkit action
//! `org.freedesktop.systemd1.manage-units`.
mod bus;
mod systemd_dbus;
mod unit;
mod worker;

pub use systemd_dbus::{Settings, SystemdDbus};
