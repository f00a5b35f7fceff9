//! Reference models: for each policy its definition, in exact rationals, computed from scratch at every step.
//!
//! Sdrf and others decay by a transcendental function, but at whole multiples of the half-life everything is rational. So
//! times are whole half-lives here, and a tie is a tie.
//!
//! A model is a file of this folder, named as its policy, and an entry of [`MODELS`]. A test fails if a policy has none. The
//! tests of the simulator use the same models.

#![allow(dead_code, clippy::unwrap_used)]

use evenhand_model::{Rational, Weights};
use evenhand_policies::multifactor::Settings;

mod asset;
mod cpu_time;
mod drf;
mod fair_tree;
mod fifo;
mod half_life;
mod multifactor;
pub(crate) mod parts;
mod penalty;
mod sdrf;
mod sdrf_dominant;
mod sdrf_tree;
mod sdrf_window;
mod usage_weighted;

/// The pool and the users of a test.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Capacity in units, by resource.
    pub(crate) capacity: Vec<Rational>,
    pub(crate) weights: Weights,
    pub(crate) half_life_s: u64,
    /// Of the policy multifactor.
    pub(crate) settings: Settings,
}

/// A job in whole units and half-lives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ModelJob {
    pub(crate) id: usize,
    pub(crate) user: usize,
    pub(crate) amounts: [u64; 2],
    /// In the unit of the test: models only compare it, but for multifactor, where it is half-lives.
    pub(crate) submit: u64,
    /// Its position in the log among the jobs submitted at that time.
    pub(crate) position: u64,
    /// Requested wall time, in half-lives.
    pub(crate) requested: u64,
}

impl ModelJob {
    /// Where the job stands in the log, by which ties are decided.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.submit, self.position)
    }
}

/// A policy by definition.
pub(crate) trait ReferenceModel {
    /// A job starts.
    fn started(&mut self, job: &ModelJob);

    /// A job that started ends.
    fn finished(&mut self, job: &ModelJob);

    /// Time passes.
    fn pass(&mut self, half_lives: u64);

    /// The key of a user whose first pending job is `first`; the lowest goes first.
    fn key(&self, first: &ModelJob) -> Rational;

    /// The commitments of a user, of models that have any.
    fn commitments(&self, _user: usize) -> Option<[Rational; 2]> {
        None
    }

    /// The part of a user's key that a policy keeps only to so many digits, over the user's weight.
    fn remembered(&self, _user: usize) -> Rational {
        Rational::ZERO
    }

    /// The numbers that the policy compares with so many [`digits`](ReferenceModel::digits).
    fn compared(&self, candidates: &[ModelJob]) -> Vec<Rational> {
        candidates.iter().map(|job| self.key(job)).collect()
    }

    /// Binary digits to which the policy tells keys apart.
    fn digits(&self) -> usize {
        80
    }
}

/// Builds a model.
pub(crate) type Build = fn(&World) -> Box<dyn ReferenceModel>;

/// Every model, by the name of its policy.
pub(crate) const MODELS: &[(&str, Build)] = &[
    ("asset", asset::model),
    ("cpu-time", cpu_time::model),
    ("drf", drf::model),
    ("fair-tree", fair_tree::model),
    ("fifo", fifo::model),
    ("half-life", half_life::model),
    ("multifactor", multifactor::model),
    ("penalty", penalty::model),
    ("sdrf", sdrf::model),
    ("sdrf-dominant", sdrf_dominant::model),
    ("sdrf-tree", sdrf_tree::model),
    ("sdrf-window", sdrf_window::model),
    ("usage-weighted", usage_weighted::model),
];

/// The model of a policy.
pub(crate) fn model(policy: &str, world: &World) -> Box<dyn ReferenceModel> {
    let found = MODELS.iter().find(|(name, _)| *name == policy);
    let (_, build) = found.unwrap_or_else(|| panic!("{policy} has no reference model: add tests/reference_models/"));
    build(world)
}
