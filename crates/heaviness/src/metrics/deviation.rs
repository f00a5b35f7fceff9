//! Deviation from the endowment, the default metric.

use evenhand_model::Rational;

use crate::{Cloud, Metric, MetricCondition, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "the endowment, beta for each unit used beyond it, minus gamma for each unit not used (the default)",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "deviation";

/// s(e) = sum_r n_r e_r and d = sum_r n_r (beta (u - e)+ - gamma (e - u)+), with beta > 1 and
/// 0 < gamma < 1; n is [`Cloud::norm`].
///
/// All conditions hold. C2: (e - u)+ is at most e, so d is at least -gamma s. C3: with the load x + y, h_v for the
/// endowment x exceeds that for x + y by (beta - 1) sum n_r y_r. For a fixed load h_v is smallest where the endowment
/// equals the load, with slopes 1 - beta below it and 1 - gamma above it: the best size of a workload is its use. h_v is
/// convex and positively homogeneous in (e, u), so splitting a workload into proportional parts changes nothing, and no
/// way of splitting makes its owner lighter.
///
/// It depends on the workload only, unlike [`Greediness`](crate::Greediness), which credits unused endowment only as far
/// as other workloads of the node use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation<N> {
    over: N,
    unused: N,
}

impl<N: Number> Deviation<N> {
    /// Creates the metric with this beta and gamma.
    ///
    /// # Errors
    /// Returns an error unless beta is above 1 and gamma between 0 and 1, both exclusive.
    pub fn new(beta: &Rational, gamma: &Rational) -> Result<Deviation<N>, MetricError> {
        let error = |parameter, expected| MetricError::OutOfRange { metric: NAME, parameter, expected };
        let metric = Deviation { over: N::from_exact(beta), unused: N::from_exact(gamma) };
        // Also after rounding.
        if *beta <= Rational::ONE || metric.over <= N::one() {
            return Err(error("beta", "greater than 1"));
        }
        if *gamma <= Rational::ZERO || !metric.unused.is_positive() || metric.unused >= N::one() {
            return Err(error("gamma", "greater than 0 and less than 1"));
        }
        Ok(metric)
    }
}

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.reject_unknown(NAME, &["beta", "gamma"])?;
    let third = |n: u8| Rational::from_parts(n.into(), 3u8.into());
    let beta = parameters.beta.clone().unwrap_or_else(|| third(4));
    let gamma = parameters.gamma.clone().unwrap_or_else(|| third(2));
    Ok(Box::new(Deviation::<N>::new(&beta, &gamma)?))
}

impl<N: Number> Metric<N> for Deviation<N> {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.normalized_sum(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        let mut sum = N::zero();
        for ((n, e), u) in cloud.norm().iter().zip(endowment).zip(load) {
            sum += &(deviation(&self.over, &self.unused, e, u) * n);
        }
        sum
    }

    fn workload_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        let mut sum = N::zero();
        for ((n, e), u) in cloud.norm().iter().zip(endowment).zip(load) {
            sum += &((deviation(&self.over, &self.unused, e, u) + e) * n);
        }
        sum
    }

    fn add_terms(&self, _: &Cloud<N>, _: &[N], endowment: &[N], load: &[N], sums: &mut [N]) {
        for ((sum, e), u) in sums.iter_mut().zip(endowment).zip(load) {
            *sum += &(deviation(&self.over, &self.unused, e, u) + e);
        }
    }

    fn max_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        // The extreme: one workload uses everything without an endowment, another has the whole endowment and is idle.
        supply.iter().map(|s| s.clone() * &(self.over.clone() + &N::one())).collect()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        cloud.normalized_sum(sums) - cloud.normalized_sum(cloud.endowment(user))
    }

    fn violated_conditions(&self) -> Vec<MetricCondition> {
        Vec::new()
    }

    fn max_slope(&self) -> Option<f64> {
        Some(self.over.to_f64())
    }
}

/// Returns over (u - e)+ - unused (e - u)+.
#[inline]
pub(super) fn deviation<N: Number>(over: &N, unused: &N, endowment: &N, load: &N) -> N {
    let beyond = load.clone() - endowment;
    if beyond.is_positive() { beyond * over } else { beyond * unused }
}
