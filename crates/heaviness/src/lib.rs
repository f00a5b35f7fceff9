//! Heaviness: how much a user's running workloads burden the whole cloud, given their loads, their virtual sizes and the
//! user's quota. Follows Poullie et al. (2016), section III.
//!
//! A [`Node`] has a supply of resources and hosts workloads (virtual machines, containers, groups of processes). The
//! virtual size of a workload determines its *endowment*, the part of the node budgeted for it (Eq. 1). A [`Cloud`] is the
//! supply of all nodes and the users' quotas, which determine the users' endowments (Eq. 2). A [`Metric`] defines how
//! heavy a workload is (h_v) and how heavy a user is (h_u, Eq. 3). Their sum h_p orders the running workloads of a node:
//! the heavier ones should yield to the lighter ones.
//!
//! | symbol | name in the code |
//! |---|---|
//! | e, eps | endowment of a workload, of a user |
//! | u | load of a workload |
//! | n | [`Cloud::norm`] |
//! | s, d | static and dynamic heaviness |
//! | h_v = s + d | [`Metric::workload_heaviness`] |
//! | h_u | [`user_heaviness`] |
//! | h_p = h_v + h_u | [`combined_heaviness`] |
//!
//! All code is generic over [`Number`]: with exact rationals it is the reference, with `f64` the product. It does no I/O,
//! has no clock and sets no weight; [`controller`] turns heaviness into weights.
//!
//! Experiment 1 of the paper: a node with two cores; user 0 runs two workloads and user 1 one, all of the same size; only
//! the first is busy.
//!
//! ```
//! use evenhand_heaviness::{Cloud, Endowment, RunningWorkload, Heaviness, Node, Parameters, metric_named};
//!
//! let workload = |owner, load| RunningWorkload { owner, sizes: vec![Some(1.0)], load: vec![load] };
//! let workloads = vec![workload(0, 2.0), workload(0, 0.0), workload(1, 0.0)];
//! let node = Node::new(vec![2.0], vec![1.0], Endowment::Proportional, workloads)?;
//! let cloud = Cloud::new(node.supply().to_vec(), vec![vec![Some(1.0)]; 2])?;
//! let metric = (metric_named("greediness").unwrap().build)(&Parameters::default())?;
//!
//! let found = Heaviness::compute(metric.as_ref(), &cloud, &[node])?;
//! let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
//! assert!(near(found.workloads[0][0], 22.0 / 9.0) && near(found.workloads[0][2], 2.0 / 9.0));
//! assert!(near(found.users[0], 5.0 / 3.0) && near(found.users[1], -7.0 / 9.0));
//! // The idle workload of user 1 is the lightest, the idle one of user 0 the second lightest.
//! assert!(near(found.combined_heaviness[0][0], 37.0 / 9.0) && near(found.combined_heaviness[0][2], -5.0 / 9.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cloud;
mod compute_heaviness;
pub mod controller;
mod endowment;
mod error;
mod metric;
mod metric_condition;
mod metrics;
mod node;

pub use cloud::Cloud;
pub use compute_heaviness::{Heaviness, NodeHeaviness, add_sums, combined_heaviness, user_heaviness};
pub use endowment::Endowment;
pub use error::{HeavinessError, MetricError};
pub use evenhand_mechanisms::Number;
pub use metric::{Metric, MetricBuilder, Parameters, Registration};
pub use metric_condition::MetricCondition;
pub use metrics::{
    Asset, Bottleneck, Deviation, Dominant, DominantShare, Greediness, METRICS, RootPenalty, metric_named,
};
pub use node::{Node, RunningWorkload};

/// The examples of the documentation, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/src/reference/heaviness.md")]
struct Documentation;
