//! The greediness metric of the authors.

use evenhand_model::Rational;

use super::deviation::deviation;
use crate::{Cloud, Metric, MetricCondition, MetricError, Node, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "the endowment, beta for each unit used beyond it, minus gamma for each unit that others use (Poullie et al. 2016)",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "greediness";

/// s(e) = sum_r n_r e_r and d = sum_r n_r (beta (u - e)+ - gamma lambda_r (e - u)+), where on each node
/// lambda_r = min(1, P_r / N_r), P_r = sum_v (u - e)+ is the use beyond endowments and N_r = sum_v (e - u)+ the unused
/// endowment; 0 if there is none. n is [`Cloud::norm`].
///
/// Poullie et al. (2016) define the metric in other papers; this is what their public code computes. k in [0, 1] sets
/// beta = 4 / (2 + k) and gamma = 2 / (2 + k). One of their implementations has beta = gamma = 1 instead
/// (`nova-fairness`, with BogoMIPS and loads smoothed over intervals).
///
/// **Violates C5**, on purpose: on a node where no workload exceeds its endowment, lambda is 0, and using less earns no
/// credit. **Violates C2 for gamma = 1** (k = 0): an idle workload whose whole endowment is used by others has h_v = 0, so
/// idle workloads cost nothing. **Violates C3 for beta = 1**: a workload that is too small is as heavy as one of the right
/// size. With 0 < k <= 1 all other conditions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Greediness<N> {
    over: N,
    released: N,
}

impl<N: Number> Greediness<N> {
    /// Creates the metric with this k.
    ///
    /// # Errors
    /// Returns an error unless k is between 0 and 1.
    pub fn new(k: &Rational) -> Result<Greediness<N>, MetricError> {
        if *k < Rational::ZERO || *k > Rational::ONE {
            return Err(MetricError::OutOfRange { metric: NAME, parameter: "k", expected: "between 0 and 1" });
        }
        let over = |n: u8| Rational::from(n) / (Rational::from(2u8) + k);
        Greediness::with_slopes(&over(4), &over(2))
    }

    /// Creates the metric with this beta and gamma.
    ///
    /// # Errors
    /// Returns an error unless beta is at least 1 and gamma between 0 and 1.
    pub fn with_slopes(beta: &Rational, gamma: &Rational) -> Result<Greediness<N>, MetricError> {
        let error = |parameter, expected| MetricError::OutOfRange { metric: NAME, parameter, expected };
        if *beta < Rational::ONE {
            return Err(error("beta", "at least 1"));
        }
        if *gamma < Rational::ZERO || *gamma > Rational::ONE {
            return Err(error("gamma", "between 0 and 1"));
        }
        Ok(Greediness { over: N::from_exact(beta), released: N::from_exact(gamma) })
    }
}

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.reject_unknown(NAME, &["k", "beta", "gamma"])?;
    let Parameters { k, beta, gamma, .. } = parameters;
    let metric = match (beta, gamma) {
        (None, None) => Greediness::<N>::new(k.as_ref().unwrap_or(&Rational::ONE))?,
        (Some(beta), Some(gamma)) if k.is_none() => Greediness::with_slopes(beta, gamma)?,
        _ => {
            let expected = "given together, and without k";
            return Err(MetricError::OutOfRange { metric: NAME, parameter: "beta and gamma", expected });
        }
    };
    Ok(Box::new(metric))
}

impl<N: Number> Metric<N> for Greediness<N> {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.normalized_sum(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N]) -> N {
        let mut sum = N::zero();
        for (((n, lambda), e), u) in cloud.norm().iter().zip(factors).zip(endowment).zip(load) {
            sum += &(deviation(&self.over, &(self.released.clone() * lambda), e, u) * n);
        }
        sum
    }

    /// Returns lambda.
    fn factors(&self, node: &Node<N>) -> Vec<N> {
        let mut over = vec![N::zero(); node.resources()];
        let mut released = over.clone();
        for (_, endowment, load) in node.rows() {
            for (((e, u), over), released) in endowment.iter().zip(load).zip(&mut over).zip(&mut released) {
                let beyond = u.clone() - e;
                if beyond.is_positive() {
                    *over += &beyond;
                } else {
                    *released -= &beyond;
                }
            }
        }
        let lambda = |(over, released): (&N, &N)| {
            if !released.is_positive() {
                N::zero()
            } else if over >= released {
                N::one()
            } else {
                over.clone() / released
            }
        };
        over.iter().zip(&released).map(lambda).collect()
    }

    fn add_terms(&self, _: &Cloud<N>, factors: &[N], endowment: &[N], load: &[N], sums: &mut [N]) {
        for (((sum, lambda), e), u) in sums.iter_mut().zip(factors).zip(endowment).zip(load) {
            *sum += &(deviation(&self.over, &(self.released.clone() * lambda), e, u) + e);
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
        let mut breaks = vec![];
        if self.released >= N::one() {
            breaks.push(MetricCondition::C2);
        }
        if self.over <= N::one() {
            breaks.push(MetricCondition::C3);
        }
        breaks.push(MetricCondition::C5);
        breaks
    }

    fn max_slope(&self) -> Option<f64> {
        Some(self.over.to_f64())
    }
}
