//! Dividing capacity at one instant: one file a mechanism, one file a property.
//!
//! A [`Problem`] says what one task of each user takes of each resource, as a share of capacity. A
//! [`Mechanism`] answers with tasks per user. Most are written once, generic over [`Number`]: in exact
//! rationals they are the reference, in `f64` the product.
//!
//! This room knows nothing of time, files or threads.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod asset;
mod baa;
mod bbf;
mod bmf;
mod bottleneck;
mod ceei;
mod complaint;
mod drf;
mod eisenberg_gale;
mod envy;
mod feasible;
mod filling;
mod hierarchy;
mod lies;
mod local_rules;
mod max_min;
mod mechanism;
mod number;
mod pareto;
mod problem;
pub mod problem_files;
mod property;
mod sdrf;
mod sharing_incentive;
mod simplex;
mod tree;

pub use asset::Asset;
pub use baa::Baa;
pub use bbf::Bbf;
pub use bmf::{Bmf, BmfSolutions, bmf_by_levels, bmf_solutions};
pub use bottleneck::BottleneckMaxFair;
pub use ceei::Ceei;
pub use complaint::NoJustifiedComplaint;
pub use drf::Drf;
pub use envy::EnvyFree;
pub use feasible::Feasible;
pub use lies::{Lie, LieSearch, search_lies};
pub use local_rules::LocalRules;
pub use max_min::MaxMin;
pub use mechanism::{Allocation, MECHANISMS, Mechanism, MechanismError, Options, mechanism_named};
pub use number::Number;
pub use pareto::Pareto;
pub use problem::{Problem, ProblemError, User};
pub use property::{Finding, Measure, PROPERTIES, Property, property_named};
pub use sdrf::Sdrf;
pub use sharing_incentive::SharingIncentive;
pub use simplex::{Bound, LinearProgram, Optimum};
pub use tree::{Account, Tree};
