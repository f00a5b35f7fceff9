//! Dominant resource fairness among users as a heaviness.

use evenhand_model::Rational;

use super::dominant::Dominant;
use crate::{Cloud, Condition, Metric, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "each user's largest share of a resource, beyond what is due",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "drf";

/// h_u = max_r n_r (U_r - eps_u,r), where U is what all guests of the user use; h_v as
/// [`Dominant`].
///
/// Paper 003 says that h_u can capture dominant resource fairness and leaves how to a report that
/// could not be read; this is our formulation. With equal quotas it orders users as DRF does (Ghodsi et al.,
/// NSDI'11): by their dominant shares. With unequal ones Eq. 3 subtracts the endowment where weighted DRF
/// divides by it, so the two agree about who has more than is due but can differ in who has most beyond it.
///
/// **Breaks C1 to C3, C5 and C6** as `dominant` does. C6 holds if the quota is larger of every resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DominantShare;

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.only(NAME, &[])?;
    Ok(Box::new(DominantShare))
}

impl<N: Number> Metric<N> for DominantShare {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        Dominant.static_heaviness(cloud, endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        Dominant.dynamic_heaviness(cloud, factors, endowment, load)
    }

    fn guest_heaviness(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N]) -> N {
        cloud.weigh_largest(load)
    }

    fn add_terms(&self, _: &Cloud<N>, _: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        sums.iter_mut().zip(load).for_each(|(sum, u)| *sum += u);
    }

    fn most_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        supply.to_vec()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        largest_excess(cloud, user, sums, |r| cloud.norm()[r].is_positive())
    }

    fn breaks(&self) -> Vec<Condition> {
        <Dominant as Metric<N>>::breaks(&Dominant)
    }

    fn steepest(&self) -> Option<f64> {
        Some(1.0)
    }
}

/// max_r n_r (sum_r - eps_u,r) over some resources; 0 over none.
pub(super) fn largest_excess<N: Number>(
    cloud: &Cloud<N>,
    user: usize,
    sums: &[N],
    counts: impl Fn(usize) -> bool,
) -> N {
    let rows = cloud.norm().iter().zip(cloud.endowment(user)).zip(sums).enumerate();
    let excess = rows.filter(|(r, _)| counts(*r)).map(|(_, ((n, e), sum))| (sum.clone() - e) * n);
    excess.reduce(N::larger).unwrap_or_else(N::zero)
}
