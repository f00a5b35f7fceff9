//! Heaviness by dominant resource fairness among users.

use evenhand_model::Rational;

use super::dominant::Dominant;
use crate::{Cloud, Metric, MetricCondition, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "each user's dominant share, beyond the entitlement",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "drf";

/// h_u = max_r n_r (U_r - eps_u,r), where U is the total load of the user's workloads; h_v is that of [`Dominant`].
///
/// Poullie et al. (2016) state that h_u can capture dominant resource fairness and refer to a technical report that was
/// not available; this is our formulation. With equal quotas it orders users as DRF does (Ghodsi et al., NSDI 2011), by
/// their dominant shares. With unequal quotas Eq. 3 subtracts the endowment where weighted DRF divides by it. The two then
/// agree on which users exceed their entitlement, but may order those users differently.
///
/// **Violates C1 to C3, C5 and C6** as `dominant` does. C6 holds if the quotas of all resources are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DominantShare;

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.reject_unknown(NAME, &[])?;
    Ok(Box::new(DominantShare))
}

impl<N: Number> Metric<N> for DominantShare {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        Dominant.static_heaviness(cloud, endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        Dominant.dynamic_heaviness(cloud, factors, endowment, load)
    }

    fn workload_heaviness(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N]) -> N {
        cloud.normalized_max(load)
    }

    fn add_terms(&self, _: &Cloud<N>, _: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        sums.iter_mut().zip(load).for_each(|(sum, u)| *sum += u);
    }

    fn max_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        supply.to_vec()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        largest_excess(cloud, user, sums, |r| cloud.norm()[r].is_positive())
    }

    fn violated_conditions(&self) -> Vec<MetricCondition> {
        <Dominant as Metric<N>>::violated_conditions(&Dominant)
    }

    fn max_slope(&self) -> Option<f64> {
        Some(1.0)
    }
}

/// Returns max_r n_r (sum_r - eps_u,r) over the resources that `counts` accepts; 0 if it accepts none.
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
