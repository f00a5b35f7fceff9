//! Penalties whose price is the job's processors.

use evenhand_model::Rational;

use super::parts::Penalties;
use super::{ReferenceModel, World};

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    Box::new(Penalties::new(world, |_, job| Rational::from(job.amounts[0])))
}
