//! Heaviness by the geometric mean of what remains of all resources.

use crate::{Cloud, Metric, MetricCondition, MetricError, Parameters, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    about: "one minus the geometric mean of the unused fraction of each resource",
    build,
    build_exact: None,
};

const NAME: &str = "root-penalty";

/// h_v = users x (1 - (prod_r (1 - u_r / C_r))^(1/R)), independent of the endowment: s is that of e and d = s(u) - s(e). C
/// is the supply of the cloud and R the number of resources with a positive supply. Use beyond the supply counts as the
/// whole supply.
///
/// The penalty is that of the authors' code, and of the simulator Alea. The factor is ours: it
/// brings the penalty to the scale of the other metrics, since for small shares it is about their mean.
///
/// **Violates C2**: an idle workload has no heaviness. **Violates C3**: the endowment has no influence. **Violates C1 and
/// C5** at the boundary: a workload with all of one resource is as heavy as one with all of every resource. Its values
/// are irrational, so there is no exact version; its slope is unbounded near a supply, so no gain is low enough there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootPenalty;

fn build(parameters: &Parameters) -> Result<Box<dyn Metric<f64>>, MetricError> {
    parameters.reject_unknown(NAME, &[])?;
    Ok(Box::new(RootPenalty))
}

/// Sums logarithms of the unused fractions, so that tiny shares do not vanish against 1.
fn penalty(cloud: &Cloud<f64>, x: &[f64]) -> f64 {
    let (mut log, mut resources) = (0.0, 0_usize);
    for (x, supply) in x.iter().zip(cloud.supply()).filter(|(_, supply)| **supply > 0.0) {
        log += libm::log1p(-(x / supply).min(1.0));
        resources += 1;
    }
    if resources == 0 { 0.0 } else { -libm::expm1(log / resources as f64) * cloud.users() as f64 }
}

impl Metric<f64> for RootPenalty {
    fn static_heaviness(&self, cloud: &Cloud<f64>, endowment: &[f64]) -> f64 {
        penalty(cloud, endowment)
    }

    fn dynamic_heaviness(&self, cloud: &Cloud<f64>, _: &[f64], endowment: &[f64], load: &[f64]) -> f64 {
        penalty(cloud, load) - penalty(cloud, endowment)
    }

    fn workload_heaviness(&self, cloud: &Cloud<f64>, _: &[f64], _: &[f64], load: &[f64]) -> f64 {
        penalty(cloud, load)
    }

    fn terms(&self, _: usize) -> usize {
        1
    }

    fn add_terms(&self, cloud: &Cloud<f64>, _: &[f64], _: &[f64], load: &[f64], sums: &mut [f64]) {
        sums.iter_mut().for_each(|sum| *sum += penalty(cloud, load));
    }

    fn max_terms(&self, users: usize, supply: &[f64]) -> Vec<f64> {
        // A workload's penalty is at most its largest share of a resource, so at most the sum of its shares; and no node has
        // more than the cloud.
        vec![users as f64 * supply.len() as f64]
    }

    fn user_heaviness(&self, cloud: &Cloud<f64>, user: usize, sums: &[f64], _: &[f64]) -> f64 {
        sums.iter().sum::<f64>() - penalty(cloud, cloud.endowment(user))
    }

    fn violated_conditions(&self) -> Vec<MetricCondition> {
        use MetricCondition::{C1, C2, C3, C5};
        vec![C1, C2, C3, C5]
    }

    fn max_slope(&self) -> Option<f64> {
        None
    }
}
