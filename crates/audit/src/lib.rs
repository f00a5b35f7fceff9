//! Audits a recorded history against fairness properties: which users had a justified complaint, about whom, on
//! which resource, and for how long.
//!
//! A [`History`] is a workload with the start of each task. Between two events (a submission, a start, a finish)
//! nothing changes, so a history is a sequence of allocations, each of which lasted for some time. At an instant t
//!
//! - a task **waits** if it was submitted at or before t and started after t, and **runs** if it started at or before
//!   t and finishes after t; a task of zero duration never runs, but may have waited;
//! - user i **holds** `o_i`, the sum of the amounts of the user's running tasks, and is **active** if a task of the
//!   user runs or waits;
//! - the **entitlement** of user i is `e_i = w_i / (sum of w over active users)`: e' of Zeldes & Feitelson (2013),
//!   over the users that are active at t;
//! - `d` is the demand of the user's first waiting task: the one submitted first, ties by position in the file; one
//!   copy of it if the row has a count;
//! - `C` is the capacity. A resource **blocks** the task if `d_r > 0` and `sum_k o_kr + d_r > C_r`.
//!
//! | property | violated while | finding about |
//! |---|---|---|
//! | `feasible` | `sum_k o_kr > C_r` | the resource |
//! | `pareto` | i waits and no resource blocks the task | i |
//! | `sharing_incentive` | i waits and `o_ir + d_r <= e_i C_r` on every resource: a partition of the user's share would run the task | i |
//! | `envy_free` | i waits and some k with a running task has `o_ir + d_r <= (w_i / w_k) o_kr` on every resource | i against k |
//! | `no_justified_complaint` | i waits, some resource blocks the task, and `o_ir + d_r <= e_i C_r` on every resource that does (Zeldes & Feitelson 2013, justified complaints on bottlenecks) | i, on each blocking resource |
//!
//! All comparisons are made in integers or rationals, and durations are exact; only the share-hours of a [`Finding`]
//! are `f64`, and no decision depends on them.
//!
//! [`History::audit`] checks the properties. [`History::entitlements`] compares the entitlement, demand and use of
//! accounts and users week by week; its definitions are in [`Entitlements`].
//!
//! This crate reads no files and simulates nothing.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit_properties;
mod compare_with_entitlement;
mod condition_intervals;
mod entitlements;
mod envy_tracker;
mod events;
mod history;
mod history_state;
mod property;
mod property_tracker;
mod user_set;

pub use audit_properties::{Audit, Finding, Summary, Window};
pub use entitlements::{
    Calendar, Complaint, Entitlements, MAX_NAMED_HOLDERS, OverusePair, Parties, PartyWeek, ResourceUse, Week,
};
pub use history::{AuditError, History};
pub use property::{Property, UnknownProperty};
