//! What every metric looks like from outside.

use std::fmt::Debug;

use evenhand_model::Rational;

use crate::{Cloud, Condition, MetricError, Node, Number};

/// A definition of heaviness (paper 003, section III.C): static s, dynamic d, h_v = s + d, and h_u.
///
/// An update goes in three steps, so that nodes only need each other's sums a user: every node takes its
/// own [`factors`](Metric::factors), from those each guest's h_v and the [`terms`](Metric::terms) of each
/// user; the terms of all nodes are added up; [`user_heaviness`](Metric::user_heaviness) is the same
/// everywhere.
///
/// Loads, endowments and sums are in units of the reference node. The answer depends on nothing but the
/// arguments.
pub trait Metric<N: Number>: Debug + Send + Sync {
    /// s: what a guest weighs for its endowment alone.
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N;

    /// d: what its load adds or takes away.
    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N;

    /// h_v = s + d
    fn guest_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        self.static_heaviness(cloud, endowment) + self.dynamic_heaviness(cloud, factors, endowment, load)
    }

    /// One number a resource, between 0 and 1, about the node as a whole. 1 unless the metric says what
    /// it is.
    fn factors(&self, node: &Node<N>) -> Vec<N> {
        vec![N::one(); node.resources()]
    }

    /// How many sums a user has, of a cloud with so many resources.
    fn terms(&self, resources: usize) -> usize {
        resources
    }

    /// Adds what a guest contributes to its owner's sums.
    fn add_terms(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N], sums: &mut [N]);

    /// The most that the guests of a node with this supply, in units of the reference node, can add to each
    /// term, all users together, without regard to signs, in a cloud of so many users. A node that says more has
    /// not measured it.
    fn most_terms(&self, users: usize, supply: &[N]) -> Vec<N>;

    /// h_u (Eq. 3), from a user's sums over all nodes; `totals` are the sums over all users.
    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], totals: &[N]) -> N;

    /// The conditions that can fail, with these parameters.
    fn breaks(&self) -> Vec<Condition>;

    /// The most that h_v rises when a load that weighs x (norm times amount) becomes one that weighs
    /// x + 1: what a controller's gain is limited by. `None` if there is no such limit.
    fn steepest(&self) -> Option<f64>;
}

/// What can be chosen about a metric. What a metric does not have must be `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// `greediness`: k between 0 and 1; beta = 4 / (2 + k), gamma = 2 / (2 + k). 1 unless said.
    pub k: Option<Rational>,
    /// `deviation`, `greediness`: what a unit used beyond the endowment weighs.
    pub beta: Option<Rational>,
    /// `deviation`, `greediness`: what a unit of the endowment that is not used is credited with.
    pub gamma: Option<Rational>,
    /// `bottleneck`: the part of a resource in use from which on it is a bottleneck. 19/20 unless said.
    pub saturation: Option<Rational>,
}

impl Parameters {
    /// Refuses every parameter that is not among `known`.
    pub(crate) fn only(&self, metric: &'static str, known: &[&str]) -> Result<(), MetricError> {
        let Parameters { k, beta, gamma, saturation } = self;
        let all = [("k", k), ("beta", beta), ("gamma", gamma), ("saturation", saturation)];
        match all.iter().find(|(name, value)| value.is_some() && !known.contains(name)) {
            Some((parameter, _)) => Err(MetricError::UnknownParameter { metric, parameter }),
            None => Ok(()),
        }
    }
}

/// Makes a metric from its parameters.
pub type Build<N> = fn(&Parameters) -> Result<Box<dyn Metric<N>>, MetricError>;

/// A metric as it is registered.
pub struct Registration {
    /// What users type.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Makes it.
    pub build: Build<f64>,
    /// Makes it in exact numbers. `None` if its answers can be irrational.
    pub build_exact: Option<Build<Rational>>,
}
