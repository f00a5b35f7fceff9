//! Division of capacity at one instant: mechanisms, each in a file of its own, and the fairness properties that
//! allocations are checked against.
//!
//! A [`Problem`] gives the share of every resource's capacity that one task of each user takes. A [`Mechanism`] returns
//! the number of tasks per user ([`Allocation`]); a [`Property`] returns what is wrong with an allocation
//! ([`Finding`]). Most are written once, generic over [`Number`]: in exact rationals they are the reference, in `f64`
//! the product. [`problem_files`] reads problems, allocations and scenarios.
//!
//! The crate knows nothing of time or threads, nor of how the caller obtains a problem.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account_tree;
mod asset;
mod baa;
mod bbf;
mod bmf;
mod ceei;
mod drf;
mod max_min;
mod mechanism;
mod misreports;
mod number;
mod problem;
pub mod problem_files;
mod properties;
mod sdrf;
mod solvers;

pub use account_tree::{Account, AccountTree};
pub use asset::Asset;
pub use baa::Baa;
pub use bbf::Bbf;
pub use bmf::{Bmf, BmfSolutions, bmf_by_iteration, bmf_solutions};
pub use ceei::Ceei;
pub use drf::Drf;
pub use max_min::MaxMin;
pub use mechanism::{Allocation, MECHANISMS, Mechanism, MechanismError, MechanismOptions, mechanism_named};
pub use misreports::{Misreport, MisreportSearch, search_misreports};
pub use number::{Arithmetic, Computation, Number};
pub use problem::{Problem, ProblemError, User};
pub use properties::{
    BaaLocalRules, BottleneckMaxFair, EnvyFree, Feasible, Finding, Measure, NoJustifiedComplaint, PROPERTIES,
    ParetoEfficient, Property, SharingIncentive, property_named,
};
pub use sdrf::Sdrf;
pub use solvers::simplex::{LinearProgram, Optimum, Relation};
