//! Heaviness by the dominant resource of each workload.

use evenhand_model::Rational;

use crate::{Cloud, Metric, MetricCondition, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "each workload's largest share of any resource",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "dominant";

/// h_v = max_r n_r u_r, independent of the endowment: s(e) = max_r n_r e_r and d = s(u) - s(e).
///
/// As in the authors' code, the maximum is taken for each workload, and a user's are added. Two workloads with different
/// dominant resources are heavier than one that does the work of both; `drf` takes the maximum for each user instead.
///
/// **Violates C1, C5 and C6**: more (or less) of a resource that is not dominant makes no difference. **Violates C2**: an
/// idle workload has no heaviness. **Violates C3**: the endowment has no influence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dominant;

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.reject_unknown(NAME, &[])?;
    Ok(Box::new(Dominant))
}

impl<N: Number> Metric<N> for Dominant {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.normalized_max(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        cloud.normalized_max(load) - cloud.normalized_max(endowment)
    }

    fn workload_heaviness(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N]) -> N {
        cloud.normalized_max(load)
    }

    fn terms(&self, _: usize) -> usize {
        1
    }

    fn add_terms(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        sums.iter_mut().for_each(|sum| *sum += &cloud.normalized_max(load));
    }

    fn max_terms(&self, users: usize, _: &[N]) -> Vec<N> {
        // A workload's largest share is at most the sum of its shares, and no node has more than the cloud.
        vec![N::from_count(users)]
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        let sum = sums.iter().fold(N::zero(), |all, sum| all + sum);
        sum - cloud.normalized_max(cloud.endowment(user))
    }

    fn violated_conditions(&self) -> Vec<MetricCondition> {
        use MetricCondition::{C1, C2, C3, C5, C6};
        vec![C1, C2, C3, C5, C6]
    }

    fn max_slope(&self) -> Option<f64> {
        Some(1.0)
    }
}
