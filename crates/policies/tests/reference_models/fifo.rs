//! The task submitted first.

use evenhand_model::Rational;

use super::{ModelJob, ReferenceModel, World};

struct Fifo;

pub(super) fn model(_: &World) -> Box<dyn ReferenceModel> {
    Box::new(Fifo)
}

impl ReferenceModel for Fifo {
    fn started(&mut self, _: &ModelJob) {}

    fn finished(&mut self, _: &ModelJob) {}

    fn pass(&mut self, _: u64) {}

    fn key(&self, first: &ModelJob) -> Rational {
        Rational::from(first.submit)
    }
}
