//! Bottleneck-based fairness as a heaviness.

use evenhand_model::Rational;

use super::dominant_share::largest_excess;
use crate::{Cloud, Condition, Metric, MetricError, Node, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "each user's largest share of a bottleneck, beyond what is due",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "bottleneck";

/// Only what is used of bottlenecks counts. A resource of a node is a bottleneck where its guests use the
/// part [`saturation`](Parameters::saturation) of it. h_v = max_r n_r u_r over the host's bottlenecks,
/// and h_u = max_r n_r (B_r - eps_u,r) over the resources that are a bottleneck anywhere, where B_r is what
/// the user's guests use of r on nodes where it is one. Without bottlenecks all are 0.
///
/// Paper 003 says that h_u can capture bottleneck-based fairness and leaves how to a report that could not
/// be read; this is our formulation. On a single node with saturation 1 it is the published
/// property (Dolev et al., ITCS'12): a user who wants more complains rightly exactly if h_u < 0. Over
/// several nodes it holds a user's use of congested nodes against the endowment in the whole cloud, so who
/// is on quiet nodes counts as light.
///
/// It is not continuous: h jumps when a resource becomes a bottleneck. **Breaks C1 to C6**: s is that of
/// `dominant`, d what makes h_v of it. C6 holds weakly: a larger quota never makes heavier.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck<N> {
    saturation: N,
}

impl<N: Number> Bottleneck<N> {
    /// With bottlenecks from this part in use on.
    ///
    /// # Errors
    /// If it is not above 0 and at most 1.
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
    parameters.only(NAME, &["saturation"])?;
    let saturation = parameters.saturation.clone();
    Ok(Box::new(Bottleneck::<N>::new(&saturation.unwrap_or_else(|| Rational::from_parts(19.into(), 20u8.into())))?))
}

impl<N: Number> Metric<N> for Bottleneck<N> {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.weigh_largest(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        self.guest_heaviness(cloud, factors, endowment, load) - cloud.weigh_largest(endowment)
    }

    fn guest_heaviness(&self, cloud: &Cloud<N>, factors: &[N], _: &[N], load: &[N]) -> N {
        let rows = cloud.norm().iter().zip(factors).zip(load).filter(|((_, is), _)| is.is_positive());
        rows.fold(N::zero(), |most, ((n, _), u)| most.larger(n.clone() * u))
    }

    /// 1 for a bottleneck, 0 for others.
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

    fn most_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        supply.to_vec()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], totals: &[N]) -> N {
        largest_excess(cloud, user, sums, |r| totals[r].is_positive())
    }

    fn breaks(&self) -> Vec<Condition> {
        Condition::ALL.to_vec()
    }

    fn steepest(&self) -> Option<f64> {
        None
    }
}
