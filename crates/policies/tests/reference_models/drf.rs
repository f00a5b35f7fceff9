//! max_r o_r over weight.

use evenhand_model::Rational;

use super::parts::Held;
use super::{ModelJob, ReferenceModel, World};

struct Drf(Held);

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    Box::new(Drf(Held::new(world)))
}

impl ReferenceModel for Drf {
    fn started(&mut self, job: &ModelJob) {
        self.0.add(job);
    }

    fn finished(&mut self, job: &ModelJob) {
        self.0.remove(job);
    }

    fn pass(&mut self, _: u64) {}

    fn key(&self, first: &ModelJob) -> Rational {
        let [o, p] = self.0.shares(first.user);
        self.0.over_weight(first.user, o.max(p))
    }
}
