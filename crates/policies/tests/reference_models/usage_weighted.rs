//! Decayed usage plus the entry penalty of Kueue, over weight.

use evenhand_model::Rational;

use super::parts::{Charge, Usage};
use super::{ModelJob, ReferenceModel, World};

/// Kueue's sampling interval.
const SAMPLING_S: u64 = 300;

struct UsageWeighted {
    usage: Usage,
    /// Charge a second of what started since the last sample.
    pending: Vec<Rational>,
    seconds: u64,
}

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    let pending = vec![Rational::ZERO; world.weights.len()];
    Box::new(UsageWeighted { usage: Usage::new(world, Charge::Sum), pending, seconds: 0 })
}

impl ReferenceModel for UsageWeighted {
    fn started(&mut self, job: &ModelJob) {
        self.usage.add(job);
        self.pending[job.user] += Charge::Sum.of(&self.usage.world, job);
    }

    fn finished(&mut self, job: &ModelJob) {
        self.usage.remove(job);
    }

    fn pass(&mut self, half_lives: u64) {
        self.usage.pass(half_lives);
        // Samples are counted from the first event.
        let samples = self.seconds / SAMPLING_S;
        self.seconds += self.usage.world.half_life_s * half_lives;
        if self.seconds / SAMPLING_S != samples {
            self.pending.fill(Rational::ZERO);
        }
    }

    fn key(&self, first: &ModelJob) -> Rational {
        // The part of a steady usage that is reached within an interval, as an `f64`.
        let penalty = 1.0 - 2f64.powf(-(SAMPLING_S as f64) / self.usage.world.half_life_s as f64);
        let penalty = &self.pending[first.user] * Rational::try_from(penalty).unwrap();
        self.usage.over_weight(first.user, &self.usage.usage[first.user] + penalty)
    }

    fn remembered(&self, user: usize) -> Rational {
        self.usage.remembered(user)
    }
}
