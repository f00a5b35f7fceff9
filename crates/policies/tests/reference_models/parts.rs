//! What several models have in common: holdings, commitments, usage.

use evenhand_model::{Rational, UBig};

use super::{ModelJob, World};

/// 2^-half_lives: what remains of 1.
pub(crate) fn kept(half_lives: u64) -> Rational {
    Rational::from_parts(1.into(), UBig::ONE << half_lives as usize)
}

/// What every user holds.
pub(crate) struct Held {
    pub(crate) world: World,
    pub(crate) held: Vec<[u64; 2]>,
}

impl Held {
    pub(crate) fn new(world: &World) -> Held {
        Held { world: world.clone(), held: vec![[0; 2]; world.weights.len()] }
    }

    pub(crate) fn add(&mut self, job: &ModelJob) {
        (0..2).for_each(|r| self.held[job.user][r] += job.amounts[r]);
    }

    pub(crate) fn remove(&mut self, job: &ModelJob) {
        (0..2).for_each(|r| self.held[job.user][r] -= job.amounts[r]);
    }

    pub(crate) fn shares(&self, user: usize) -> [Rational; 2] {
        [0, 1].map(|r| Rational::from(self.held[user][r]) / &self.world.capacity[r])
    }

    pub(crate) fn overuse(&self, user: usize) -> [Rational; 2] {
        self.shares(user).map(|share| (share - self.world.weights.entitlement(user)).max(Rational::ZERO))
    }

    pub(crate) fn over_weight(&self, user: usize, key: Rational) -> Rational {
        key / self.world.weights.exact_over_mean(user)
    }
}

/// Commitments by Eq. 6 of Sadok et al. (2021).
pub(crate) struct Commitments {
    pub(crate) held: Held,
    pub(crate) commitment: Vec<[Rational; 2]>,
}

impl Commitments {
    pub(crate) fn new(world: &World) -> Commitments {
        let none = || [Rational::ZERO, Rational::ZERO];
        Commitments { held: Held::new(world), commitment: (0..world.weights.len()).map(|_| none()).collect() }
    }

    pub(crate) fn pass(&mut self, half_lives: u64) {
        for user in 0..self.commitment.len() {
            for (c, overuse) in self.commitment[user].iter_mut().zip(self.held.overuse(user)) {
                *c = &overuse + (&*c - &overuse) * kept(half_lives);
            }
        }
    }

    pub(crate) fn remembered(&self, user: usize) -> Rational {
        let [c, d] = self.commitment[user].clone();
        self.held.over_weight(user, c.max(d))
    }
}

/// How a job is charged.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Charge {
    /// By its largest share of a resource.
    Largest,
    /// By the sum of its shares.
    Sum,
}

impl Charge {
    pub(crate) fn of(self, world: &World, job: &ModelJob) -> Rational {
        let [a, b] = [0, 1].map(|r| Rational::from(job.amounts[r]) / &world.capacity[r]);
        if self == Charge::Sum { a + b } else { a.max(b) }
    }
}

/// Decayed usage: the charge a second of what runs, and what it was.
pub(crate) struct Usage {
    pub(crate) world: World,
    charge: Charge,
    rate: Vec<Rational>,
    pub(crate) usage: Vec<Rational>,
}

impl Usage {
    pub(crate) fn new(world: &World, charge: Charge) -> Usage {
        let none = || vec![Rational::ZERO; world.weights.len()];
        Usage { world: world.clone(), charge, rate: none(), usage: none() }
    }

    pub(crate) fn add(&mut self, job: &ModelJob) {
        self.rate[job.user] += self.charge.of(&self.world, job);
    }

    pub(crate) fn remove(&mut self, job: &ModelJob) {
        self.rate[job.user] -= self.charge.of(&self.world, job);
    }

    pub(crate) fn pass(&mut self, half_lives: u64) {
        for (usage, rate) in self.usage.iter_mut().zip(&self.rate) {
            *usage = rate + (&*usage - rate) * kept(half_lives);
        }
    }

    pub(crate) fn over_weight(&self, user: usize, key: Rational) -> Rational {
        key / self.world.weights.exact_over_mean(user)
    }

    pub(crate) fn remembered(&self, user: usize) -> Rational {
        self.over_weight(user, (&self.usage[user]).max(&self.rate[user]).clone())
    }
}

/// Eq. 3 of Klusáček and Rudová (2013), job by job: what a job asked for while it runs, then what it used, forgotten since.
pub(crate) struct Penalties {
    world: World,
    price: fn(&World, &ModelJob) -> Rational,
    now: u64,
    /// Each job with its start and its end.
    jobs: Vec<(ModelJob, u64, Option<u64>)>,
}

impl Penalties {
    pub(crate) fn new(world: &World, price: fn(&World, &ModelJob) -> Rational) -> Penalties {
        Penalties { world: world.clone(), price, now: 0, jobs: Vec::new() }
    }
}

impl super::ReferenceModel for Penalties {
    fn started(&mut self, job: &ModelJob) {
        self.jobs.push((*job, self.now, None));
    }

    fn finished(&mut self, job: &ModelJob) {
        let found = self.jobs.iter_mut().find(|(known, _, end)| known.id == job.id && end.is_none());
        found.unwrap().2 = Some(self.now);
    }

    fn pass(&mut self, half_lives: u64) {
        self.now += half_lives;
    }

    fn key(&self, first: &ModelJob) -> Rational {
        let half_life_s = self.world.half_life_s;
        let charged = |(job, start, end): &(ModelJob, u64, Option<u64>)| {
            let seconds = match end {
                // A job that asks for nothing is taken to ask for what it runs, at least a nanosecond.
                None => {
                    let smallest = Rational::from_parts(1.into(), UBig::from(1_000_000_000u64));
                    Rational::from(job.requested * half_life_s).max(smallest)
                }
                Some(end) => {
                    let tau = Rational::try_from(half_life_s as f64 / std::f64::consts::LN_2).unwrap();
                    tau * (kept(self.now - end) - kept(self.now - start))
                }
            };
            (self.price)(&self.world, job) * seconds
        };
        let jobs = self.jobs.iter().filter(|(job, ..)| job.user == first.user);
        let sum = jobs.map(charged).fold(Rational::ZERO, |sum, x| sum + x);
        sum / self.world.weights.exact_over_mean(first.user)
    }

    /// Penalties are sums of `f64`.
    fn digits(&self) -> usize {
        40
    }
}
