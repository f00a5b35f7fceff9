//! Decayed usage over weight; with accounts the model is in `slurm_documents.rs`.

use evenhand_model::Rational;

use super::parts::{Charge, Usage};
use super::{ModelJob, ReferenceModel, World};

struct HalfLife(Usage);

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    Box::new(HalfLife(Usage::new(world, Charge::Largest)))
}

impl ReferenceModel for HalfLife {
    fn started(&mut self, job: &ModelJob) {
        self.0.add(job);
    }

    fn finished(&mut self, job: &ModelJob) {
        self.0.remove(job);
    }

    fn pass(&mut self, half_lives: u64) {
        self.0.pass(half_lives);
    }

    fn key(&self, first: &ModelJob) -> Rational {
        self.0.over_weight(first.user, self.0.usage[first.user].clone())
    }

    fn remembered(&self, user: usize) -> Rational {
        self.0.remembered(user)
    }
}
