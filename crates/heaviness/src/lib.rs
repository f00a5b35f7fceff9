//! How much a user burdens the whole cloud, from what its guests use, what they are sized for and what the
//! user may have: paper 003 (Poullie, Mannhart, Stiller), section III.
//!
//! A [`Node`] has a supply and hosts guests (virtual machines, containers, groups of processes). Each guest
//! has a virtual size, from which comes its *endowment*: what the node budgets for it. A [`Cloud`] is the
//! supply of all nodes and the users' quotas. A [`Metric`] says how heavy a guest is (h_v), and a user
//! (h_u); the two together say in which order running guests should yield (h_p, the heavier first).
//!
//! Everything is written once, generic over [`Number`]: in exact rationals it is the reference, in `f64`
//! the product.
//!
//! This room opens no file and no socket, knows no clock, and sets no weight.
//!
//! Experiment 1 of the paper: a node with two cores; user 0 runs two guests and user 1 one, all alike; only
//! the first uses anything.
//!
//! ```
//! use evenhand_heaviness::{Cloud, Endowment, Guest, Heaviness, Node, Parameters, metric_named};
//!
//! let guest = |owner, load| Guest { owner, sizes: vec![Some(1.0)], load: vec![load] };
//! let guests = vec![guest(0, 2.0), guest(0, 0.0), guest(1, 0.0)];
//! let node = Node::new(vec![2.0], vec![1.0], Endowment::Proportional, guests)?;
//! let cloud = Cloud::new(node.supply().to_vec(), vec![vec![Some(1.0)]; 2])?;
//! let metric = (metric_named("greediness").unwrap().build)(&Parameters::default())?;
//!
//! let found = Heaviness::of(metric.as_ref(), &cloud, &[node])?;
//! let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
//! assert!(near(found.guests[0][0], 22.0 / 9.0) && near(found.guests[0][2], 2.0 / 9.0));
//! assert!(near(found.users[0], 5.0 / 3.0) && near(found.users[1], -7.0 / 9.0));
//! // The idle guest of user 1 comes first, the idle one of user 0 second.
//! assert!(near(found.precedence[0][0], 37.0 / 9.0) && near(found.precedence[0][2], -5.0 / 9.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cloud;
mod condition;
pub mod controller;
mod endowment;
mod error;
mod metric;
mod metrics;
mod node;
mod update;

pub use cloud::Cloud;
pub use condition::Condition;
pub use endowment::Endowment;
pub use error::{HeavinessError, MetricError};
pub use evenhand_mechanisms::Number;
pub use metric::{Build, Metric, Parameters, Registration};
pub use metrics::{
    Asset, Bottleneck, Deviation, Dominant, DominantShare, Greediness, METRICS, RootPenalty, metric_named,
};
pub use node::{Guest, Node};
pub use update::{Heaviness, Local, add_sums, precedence, user_heaviness};

/// The examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/src/reference/heaviness.md")]
struct Documentation;
