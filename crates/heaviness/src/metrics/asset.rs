//! Asset fairness as a heaviness.

use evenhand_model::Rational;

use crate::{Cloud, Condition, Metric, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "the sum of the shares of all resources that are used",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "asset";

/// h_v = sum_r n_r u_r, whatever the guest is endowed with: s(e) = sum_r n_r e_r and d = s(u) - s(e).
///
/// **Breaks C2**: an idle guest weighs nothing. **Breaks C3**: the endowment makes no difference. So there is
/// no incentive to size guests, nor to stop idle ones; the authors' code has it for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asset;

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.only(NAME, &[])?;
    Ok(Box::new(Asset))
}

impl<N: Number> Metric<N> for Asset {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.weigh(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        cloud.weigh(load) - cloud.weigh(endowment)
    }

    fn guest_heaviness(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N]) -> N {
        cloud.weigh(load)
    }

    fn add_terms(&self, _: &Cloud<N>, _: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        sums.iter_mut().zip(load).for_each(|(sum, u)| *sum += u);
    }

    fn most_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        supply.to_vec()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        cloud.weigh(sums) - cloud.weigh(cloud.endowment(user))
    }

    fn breaks(&self) -> Vec<Condition> {
        vec![Condition::C2, Condition::C3]
    }

    fn steepest(&self) -> Option<f64> {
        Some(1.0)
    }
}
