//! A real past, held against the fairness properties: who could rightly complain, about whom, about
//! what, and for how long?
//!
//! Between two events (a submission, a start, a finish) nothing changes, so a past is a sequence of
//! allocations, each of which stood for some time. At an instant t
//!
//! - a task **waits** if it was submitted at or before t and started after t, and **runs** if it started
//!   at or before t and finishes after t: a task of no duration never runs, but may have waited;
//! - user i **holds** `o_i`, the sum of the amounts of his running tasks, and is **active** if a task of
//!   his runs or waits;
//! - his **entitlement** is `e_i = w_i / (sum of w over active users)`: the e' of paper 000, over those
//!   who are there now;
//! - `d` is what his first waiting task (the one submitted first, of several the first in the file) would
//!   hold, one copy of it if the row has a count;
//! - `C` is the capacity. A resource **stands in his way** if `d_r > 0` and `sum_k o_kr + d_r > C_r`.
//!
//! | property | does not hold while | finding on |
//! |---|---|---|
//! | `feasible` | `sum_k o_kr > C_r` | the resource |
//! | `pareto` | i waits and nothing stands in his way | i |
//! | `sharing_incentive` | i waits and `o_ir + d_r <= e_i C_r` on every resource: in a partition of his own the task would run | i |
//! | `envy_free` | i waits and some k with a running task has `o_ir + d_r <= (w_i / w_k) o_kr` on every resource | i against k |
//! | `no_justified_complaint` | i waits, something stands in his way, and on every resource that does `o_ir + d_r <= e_i C_r` (paper 000, justified complaints on bottlenecks) | i on each resource that stands in his way |
//!
//! Every comparison is made in integers or rationals, and durations are exact; only the share-hours of a
//! [`Finding`] are `f64`, and they decide nothing.
//!
//! [`Past::entitlements`] holds what accounts and users got against what they were entitled to, week by week;
//! its definitions are at [`Entitlements`].
//!
//! This room reads no file and simulates nothing.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod entitlement;
mod envy;
mod episodes;
mod events;
mod instant;
mod past;
mod property;
mod scale;
mod walk;

pub use audit::{Audit, Finding, Summary, Window};
pub use entitlement::{Calendar, Complaint, Entitlements, NAMED, Pair, Parties, PartyWeek, Use, Week};
pub use past::{Past, PastError};
pub use property::{Property, UnknownProperty};
