//! Penalties whose price is the job's largest share of the pool.

use super::parts::{Charge, Penalties};
use super::{ReferenceModel, World};

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    Box::new(Penalties::new(world, |world, job| Charge::Largest.of(world, job)))
}
