//! Sdrf whose commitments are the mean overuse of the last two half-lives.

use evenhand_model::Rational;

use super::parts::Held;
use super::{ModelJob, ReferenceModel, World};

struct SdrfWindow {
    held: Held,
    /// Overuse in each of the last two half-lives, by user and resource.
    window: Vec<[[Rational; 2]; 2]>,
}

pub(super) fn model(world: &World) -> Box<dyn ReferenceModel> {
    let none = || [0, 1].map(|_| [Rational::ZERO, Rational::ZERO]);
    Box::new(SdrfWindow { held: Held::new(world), window: (0..world.weights.len()).map(|_| none()).collect() })
}

impl SdrfWindow {
    fn commitment(&self, user: usize) -> [Rational; 2] {
        [0, 1].map(|r| (&self.window[user][r][0] + &self.window[user][r][1]) / Rational::from(2u8))
    }
}

impl ReferenceModel for SdrfWindow {
    fn started(&mut self, job: &ModelJob) {
        self.held.add(job);
    }

    fn finished(&mut self, job: &ModelJob) {
        self.held.remove(job);
    }

    fn pass(&mut self, half_lives: u64) {
        for user in 0..self.window.len() {
            for (window, overuse) in self.window[user].iter_mut().zip(self.held.overuse(user)) {
                for _ in 0..half_lives.min(2) {
                    window.swap(0, 1);
                    window[1] = overuse.clone();
                }
            }
        }
    }

    fn key(&self, first: &ModelJob) -> Rational {
        let ([o, p], [c, d]) = (self.held.shares(first.user), self.commitment(first.user));
        self.held.over_weight(first.user, (o + c).max(p + d))
    }

    fn commitments(&self, user: usize) -> Option<[Rational; 2]> {
        Some(self.commitment(user))
    }

    fn remembered(&self, user: usize) -> Rational {
        let [c, d] = self.commitment(user);
        self.held.over_weight(user, c.max(d))
    }
}
