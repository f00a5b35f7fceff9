//! (max_r o_r + max_r c_r) over weight: Sadok et al. (2021), Eq. 5.

use evenhand_model::Rational;

use super::parts::Commitments;
use super::{ModelJob, ReferenceModel, World};

struct SdrfDominant(Commitments);

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    Box::new(SdrfDominant(Commitments::new(world)))
}

impl ReferenceModel for SdrfDominant {
    fn started(&mut self, job: &ModelJob) {
        self.0.held.add(job);
    }

    fn finished(&mut self, job: &ModelJob) {
        self.0.held.remove(job);
    }

    fn pass(&mut self, half_lives: u64) {
        self.0.pass(half_lives);
    }

    fn key(&self, first: &ModelJob) -> Rational {
        let ([o, p], [c, d]) = (self.0.held.shares(first.user), self.0.commitment[first.user].clone());
        self.0.held.over_weight(first.user, o.max(p) + c.max(d))
    }

    fn commitments(&self, user: usize) -> Option<[Rational; 2]> {
        Some(self.0.commitment[user].clone())
    }

    fn remembered(&self, user: usize) -> Rational {
        self.0.remembered(user)
    }
}
