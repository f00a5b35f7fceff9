//! Heaviness by bottleneck-based fairness.

use evenhand_model::Rational;

use super::dominant_share::largest_excess;
use crate::{Cloud, Metric, MetricCondition, MetricError, Node, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "each user's largest share of a bottleneck, beyond the entitlement",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "bottleneck";

/// Counts only the use of bottlenecks. A resource of a node is a bottleneck if the node's workloads use at least the
/// fraction [`saturation`](Parameters::saturation) of it. h_v = max_r n_r u_r over the bottlenecks of the node, and
/// h_u = max_r n_r (B_r - eps_u,r) over the resources that are a bottleneck on any node, where B_r is the user's use of r
/// on the nodes where it is a bottleneck. Without bottlenecks all are 0.
///
/// Poullie et al. (2016) state that h_u can capture bottleneck-based fairness and refer to a technical report that was
/// not available; this is our formulation. On a single node with saturation 1 it equals the published property (Dolev et
/// al., ITCS 2012): a user who wants more has a justified complaint exactly if h_u < 0. Over several nodes it compares a
/// user's use of congested nodes with the endowment in the whole cloud, so a user on uncongested nodes counts as light.
///
/// It is discontinuous: h jumps when a resource becomes a bottleneck. **Violates C1 to C6**: s is that of `dominant`, and d
/// is the difference to h_v. C6 holds weakly: a larger quota never makes a user heavier.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck<N> {
    saturation: N,
}

impl<N: Number> Bottleneck<N> {
    /// Creates the metric with bottlenecks from this fraction in use on.
    ///
    /// # Errors
    /// Returns an error unless the fraction is above 0 and at most 1.
    pub fn new(saturation: &Rational) -> Result<Bottleneck<N>, MetricError> {
        let rounded = N::from_exact(saturation);
        if !rounded.is_positive() || *saturation > Rational::ONE {
            let expected = "greater than 0 and at most 1";
            return Err(MetricError::OutOfRange { metric: NAME, parameter: "saturation", expected });
        }
        Ok(Bottleneck { saturation: rounded })
    }
}

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.reject_unknown(NAME, &["saturation"])?;
    let saturation = parameters.saturation.clone();
    Ok(Box::new(Bottleneck::<N>::new(&saturation.unwrap_or_else(|| Rational::from_parts(19.into(), 20u8.into())))?))
}

impl<N: Number> Metric<N> for Bottleneck<N> {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.normalized_max(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        self.workload_heaviness(cloud, factors, endowment, load) - cloud.normalized_max(endowment)
    }

    fn workload_heaviness(&self, cloud: &Cloud<N>, factors: &[N], _: &[N], load: &[N]) -> N {
        let rows = cloud.norm().iter().zip(factors).zip(load).filter(|((_, is), _)| is.is_positive());
        rows.fold(N::zero(), |largest, ((n, _), u)| largest.larger(n.clone() * u))
    }

    /// Returns 1 for a bottleneck, 0 for other resources.
    fn factors(&self, node: &Node<N>) -> Vec<N> {
        let mut used = vec![N::zero(); node.resources()];
        for (_, _, load) in node.rows() {
            used.iter_mut().zip(load).for_each(|(used, u)| *used += u);
        }
        let is = |(used, supply): (&N, &N)| used.is_positive() && *used >= supply.clone() * &self.saturation;
        used.iter().zip(node.supply()).map(|row| if is(row) { N::one() } else { N::zero() }).collect()
    }

    fn add_terms(&self, _: &Cloud<N>, factors: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        for ((sum, _), u) in sums.iter_mut().zip(factors).zip(load).filter(|((_, is), _)| is.is_positive()) {
            *sum += u;
        }
    }

    fn max_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        supply.to_vec()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], totals: &[N]) -> N {
        largest_excess(cloud, user, sums, |r| totals[r].is_positive())
    }

    fn violated_conditions(&self) -> Vec<MetricCondition> {
        MetricCondition::ALL.to_vec()
    }

    fn max_slope(&self) -> Option<f64> {
        None
    }
}
