//! Deviation from endowment, the default.

use evenhand_model::Rational;

use crate::{Cloud, Condition, Metric, MetricError, Number, Parameters, Registration};

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
/// All conditions hold. C2: (e - u)+ is at most e, so d is at least -gamma s. C3: h_v of x + y used with x
/// endowed exceeds that with x + y endowed by (beta - 1) sum n_r y_r. For a fixed load h_v is least where the
/// endowment is the load, and falls and rises on the two sides with slopes 1 - beta and 1 - gamma: a guest is
/// best sized for what it uses. It is convex and positively homogeneous in (e, u), so dividing a guest into
/// proportional ones changes nothing, and no way of dividing one makes its owner lighter.
///
/// It needs nothing but the guest itself, unlike [`Greediness`](crate::Greediness), which credits only what
/// others on the node take.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation<N> {
    over: N,
    unused: N,
}

impl<N: Number> Deviation<N> {
    /// With this beta and gamma.
    ///
    /// # Errors
    /// If beta is not above 1, or gamma not between 0 and 1, both excluded.
    pub fn new(beta: &Rational, gamma: &Rational) -> Result<Deviation<N>, MetricError> {
        let wrong = |parameter, expected| MetricError::OutOfRange { metric: NAME, parameter, expected };
        let metric = Deviation { over: N::from_exact(beta), unused: N::from_exact(gamma) };
        // After rounding, too.
        if *beta <= Rational::ONE || metric.over <= N::one() {
            return Err(wrong("beta", "greater than 1"));
        }
        if *gamma <= Rational::ZERO || !metric.unused.is_positive() || metric.unused >= N::one() {
            return Err(wrong("gamma", "greater than 0 and less than 1"));
        }
        Ok(metric)
    }
}

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.only(NAME, &["beta", "gamma"])?;
    let third = |n: u8| Rational::from_parts(n.into(), 3u8.into());
    let beta = parameters.beta.clone().unwrap_or_else(|| third(4));
    let gamma = parameters.gamma.clone().unwrap_or_else(|| third(2));
    Ok(Box::new(Deviation::<N>::new(&beta, &gamma)?))
}

impl<N: Number> Metric<N> for Deviation<N> {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.weigh(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        let mut sum = N::zero();
        for ((n, e), u) in cloud.norm().iter().zip(endowment).zip(load) {
            sum += &(deviation(&self.over, &self.unused, e, u) * n);
        }
        sum
    }

    fn guest_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
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

    fn most_terms(&self, _: usize, supply: &[N]) -> Vec<N> {
        // One guest that uses everything and is endowed with nothing, another the other way round.
        supply.iter().map(|s| s.clone() * &(self.over.clone() + &N::one())).collect()
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        cloud.weigh(sums) - cloud.weigh(cloud.endowment(user))
    }

    fn breaks(&self) -> Vec<Condition> {
        Vec::new()
    }

    fn steepest(&self) -> Option<f64> {
        Some(self.over.to_f64())
    }
}

/// over (u - e)+ - unused (e - u)+
#[inline]
pub(super) fn deviation<N: Number>(over: &N, unused: &N, endowment: &N, load: &N) -> N {
    let beyond = load.clone() - endowment;
    if beyond.is_positive() { beyond * over } else { beyond * unused }
}
