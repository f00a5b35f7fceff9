//! The trait of all metrics, and their parameters.

use std::fmt::Debug;

use evenhand_model::Rational;

use crate::{Cloud, MetricCondition, MetricError, Node, Number};

/// A definition of heaviness (Poullie et al. 2016, section III.C): static s, dynamic d, h_v = s + d, and h_u.
///
/// An update has three steps, so that nodes exchange only a few sums for each user. Every node computes its own
/// [`factors`](Metric::factors), and from them h_v of each workload and the [`terms`](Metric::terms) of each user. The
/// terms of all nodes are added. [`user_heaviness`](Metric::user_heaviness) then gives the same result on every node.
///
/// Loads, endowments and sums are in units of the reference node, with one number for each resource. The results depend
/// on the arguments only.
pub trait Metric<N: Number>: Debug + Send + Sync {
    /// Returns s, the heaviness of an endowment without regard to load.
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N;

    /// Returns d, which the load adds to s; negative if less than the endowment is used.
    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N;

    /// Returns h_v = s + d.
    fn workload_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        self.static_heaviness(cloud, endowment) + self.dynamic_heaviness(cloud, factors, endowment, load)
    }

    /// Returns one factor in [0, 1] for each resource, which depends on the node as a whole. By default all are 1.
    fn factors(&self, node: &Node<N>) -> Vec<N> {
        vec![N::one(); node.resources()]
    }

    /// Returns the number of sums for each user in a cloud with this number of resources.
    fn terms(&self, resources: usize) -> usize {
        resources
    }

    /// Adds a workload's terms to the sums of its owner.
    fn add_terms(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N], sums: &mut [N]);

    /// Returns an upper bound on each term: on the sum of its absolute values over all users, for a node with this supply
    /// (in units of the reference node) in a cloud with this number of users. A node that reports more is faulty.
    fn max_terms(&self, users: usize, supply: &[N]) -> Vec<N>;

    /// Returns h_u (Eq. 3) from a user's sums over all nodes; `totals` are the sums over all users.
    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], totals: &[N]) -> N;

    /// Returns the conditions that can be violated with these parameters.
    fn violated_conditions(&self) -> Vec<MetricCondition>;

    /// Returns the largest increase of h_v for each unit of normalized load (norm times amount), which limits the gain of
    /// a controller. `None` if it is unbounded.
    fn max_slope(&self) -> Option<f64>;
}

/// The parameters of all metrics. Those that a metric does not have must be `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// `greediness`: k in [0, 1], which sets beta = 4 / (2 + k) and gamma = 2 / (2 + k). Default 1.
    pub k: Option<Rational>,
    /// `deviation`, `greediness`: the heaviness of each normalized unit used beyond the endowment.
    pub beta: Option<Rational>,
    /// `deviation`, `greediness`: the credit for each normalized unit of the endowment that is not used.
    pub gamma: Option<Rational>,
    /// `bottleneck`: the fraction of a resource in use from which on it is a bottleneck. Default 19/20.
    pub saturation: Option<Rational>,
}

impl Parameters {
    /// Returns an error if a parameter that is not among `known` is set.
    pub(crate) fn reject_unknown(&self, metric: &'static str, known: &[&str]) -> Result<(), MetricError> {
        let Parameters { k, beta, gamma, saturation } = self;
        let all = [("k", k), ("beta", beta), ("gamma", gamma), ("saturation", saturation)];
        match all.iter().find(|(name, value)| value.is_some() && !known.contains(name)) {
            Some((parameter, _)) => Err(MetricError::UnknownParameter { metric, parameter }),
            None => Ok(()),
        }
    }
}

/// Creates a metric from its parameters.
pub type MetricBuilder<N> = fn(&Parameters) -> Result<Box<dyn Metric<N>>, MetricError>;

/// A registered metric.
pub struct Registration {
    /// The name that users type.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// Creates the metric.
    pub build: MetricBuilder<f64>,
    /// Creates the metric with exact numbers. `None` if its values can be irrational.
    pub build_exact: Option<MetricBuilder<Rational>>,
}
