//! The dominant resource of each guest as its heaviness.

use evenhand_model::Rational;

use crate::{Cloud, Condition, Metric, MetricError, Number, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "each guest's largest share of a resource that it uses",
    build: build::<f64>,
    build_exact: Some(build::<Rational>),
};

const NAME: &str = "dominant";

/// h_v = max_r n_r u_r, whatever the guest is endowed with: s(e) = max_r n_r e_r and d = s(u) - s(e).
///
/// As in the authors' code, it is taken guest by guest and added up. Two guests with different dominant
/// resources weigh more than one that does the work of both; `drf` takes it user by user.
///
/// **Breaks C1, C5 and C6**: more (or less) of what is not dominant makes no difference. **Breaks C2**: an idle
/// guest weighs nothing. **Breaks C3**: the endowment makes no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dominant;

fn build<N: Number>(parameters: &Parameters) -> Result<Box<dyn Metric<N>>, MetricError> {
    parameters.only(NAME, &[])?;
    Ok(Box::new(Dominant))
}

impl<N: Number> Metric<N> for Dominant {
    fn static_heaviness(&self, cloud: &Cloud<N>, endowment: &[N]) -> N {
        cloud.weigh_largest(endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<N>, _: &[N], endowment: &[N], load: &[N]) -> N {
        cloud.weigh_largest(load) - cloud.weigh_largest(endowment)
    }

    fn guest_heaviness(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N]) -> N {
        cloud.weigh_largest(load)
    }

    fn terms(&self, _: usize) -> usize {
        1
    }

    fn add_terms(&self, cloud: &Cloud<N>, _: &[N], _: &[N], load: &[N], sums: &mut [N]) {
        sums.iter_mut().for_each(|sum| *sum += &cloud.weigh_largest(load));
    }

    fn most_terms(&self, users: usize, _: &[N]) -> Vec<N> {
        // A guest's largest share is at most the sum of its shares, and no node has more than the cloud.
        vec![N::from_count(users)]
    }

    fn user_heaviness(&self, cloud: &Cloud<N>, user: usize, sums: &[N], _: &[N]) -> N {
        let sum = sums.iter().fold(N::zero(), |all, sum| all + sum);
        sum - cloud.weigh_largest(cloud.endowment(user))
    }

    fn breaks(&self) -> Vec<Condition> {
        use Condition::{C1, C2, C3, C5, C6};
        vec![C1, C2, C3, C5, C6]
    }

    fn steepest(&self) -> Option<f64> {
        Some(1.0)
    }
}
