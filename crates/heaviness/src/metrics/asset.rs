//! Heaviness by asset fairness.

use evenhand_model::Rational;

use crate::{Cloud, Metric, MetricCondition, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "the sum of the shares of all resources that are used",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "asset";

/// h_v = sum_r n_r u_r, independent of the endowment: s(e) = sum_r n_r e_r and d = s(u) - s(e).
///
/// **Violates C2**: an idle workload has no heaviness. **Violates C3**: the endowment has no influence. Users therefore
/// have no incentive to size their workloads, nor to stop idle ones. The authors' code has this metric for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asset;

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.reject_unknown(NAME, &[])?;
    Ok(Box::new(Asset))
}

impl<N: Number> Metric<N> for Asset {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.normalized_sum(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        cloud.normalized_sum(load) - cloud.normalized_sum(endowment)
    }

    fn workload_heaviness(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N]) -> N {
        cloud.normalized_sum(load)
    }

    fn add_terms(&self, _: &Cloud<N>, _: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        sums.iter_mut().zip(load).for_each(|(sum, u)| *sum += u);
    }

    fn max_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        supply.to_vec()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        cloud.normalized_sum(sums) - cloud.normalized_sum(cloud.endowment(user))
    }

    fn violated_conditions(&self) -> Vec<MetricCondition> {
        vec![MetricCondition::C2, MetricCondition::C3]
    }

    fn max_slope(&self) -> Option<f64> {
        Some(1.0)
    }
}
