//! Slurm's priority with Fair Tree of one level, in fractions down to the whole number.

use evenhand_model::Rational;
use evenhand_policies::multifactor::Settings;

use super::parts::{Charge, Usage};
use super::{ModelJob, ReferenceModel, World};

struct Multifactor {
    usage: Usage,
    /// Half-lives from 0, as submissions.
    now: u64,
}

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    Box::new(Multifactor { usage: Usage::new(world, Charge::Largest), now: 0 })
}

impl Multifactor {
    fn over_shares(&self, user: usize) -> Rational {
        &self.usage.usage[user] / self.usage.world.weights.exact(user)
    }

    fn priority(&self, job: &ModelJob) -> u32 {
        let World { settings, capacity, half_life_s, .. } = &self.usage.world;
        let Settings { weights, max_age, .. } = settings;
        let whole = |n: u32| Rational::from(n);
        let waited = Rational::from((self.now - job.submit) * half_life_s * 1_000_000_000);
        let age = (waited / Rational::from(max_age.nanos())).min(Rational::ONE);
        let users = self.usage.usage.len();
        let better = (0..users).filter(|u| self.over_shares(*u) < self.over_shares(job.user)).count();
        let fairshare = Rational::ONE - Rational::from(better) / Rational::from(users);
        let share = |r: usize| Rational::from(job.amounts[r]) / &capacity[r];
        let mut size = share(0);
        if settings.small_relative_to_time {
            size /= Rational::from((job.requested * half_life_s).div_ceil(60).max(1));
        }
        if settings.favor_small {
            size = Rational::ONE - size;
        }
        let tres = weights.tres.iter().enumerate().map(|(r, weight)| weight * share(r));
        let sum = whole(weights.age) * age + whole(weights.fairshare) * fairshare + whole(weights.job_size) * size;
        let sum = tres.fold(sum + whole(weights.partition), |sum, x| sum + x);
        u32::try_from(sum.floor().max(1.into())).unwrap()
    }
}

impl ReferenceModel for Multifactor {
    fn started(&mut self, job: &ModelJob) {
        self.usage.add(job);
    }

    fn finished(&mut self, job: &ModelJob) {
        self.usage.remove(job);
    }

    fn pass(&mut self, half_lives: u64) {
        self.usage.pass(half_lives);
        self.now += half_lives;
    }

    fn key(&self, first: &ModelJob) -> Rational {
        -Rational::from(self.priority(first))
    }

    /// Ranks go by the usage of all users; all else is exact.
    fn compared(&self, _: &[ModelJob]) -> Vec<Rational> {
        (0..self.usage.usage.len()).map(|user| self.over_shares(user)).collect()
    }
}
