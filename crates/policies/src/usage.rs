//! Usage that decays: what users and accounts have been charged, halved every half-life.
//!
//! A running task is charged all the time it runs, and charges are forgotten with one half-life H, so
//! usage follows U' = rate - U ln 2 / H. Kept here is V = U ln 2 / H, usage in units in which holding a
//! share of the pool for ever settles at that share. V' = (rate - V) ln 2 / H is Eq. 6 of Sadok et al. (2021) with
//! the rate in place of the overuse, so [`Commitment`] keeps V to the same digits, and in s = 2^(-t / H)
//! every V is a straight line.
//!
//! **Continuous.** Slurm adds up usage every PriorityCalcPeriod (5 minutes unless set), Kueue every
//! usageSamplingInterval. Here it is exact at every instant, which is what both tend to as their periods
//! shrink. Within one instant V does not move, however many tasks start.

use std::cmp::Ordering;

use evenhand_model::{Amount, Capacity, Rational, Time, UserId};

use crate::billing::{Billing, Charges};
use crate::commitment::{Branch, Commitment};
use crate::decay::{Clock, Decay};
use crate::wide::Wide;

/// The decayed usage of users, numbered from 0, and of the accounts above them, numbered after them.
pub(crate) struct DecayedUsage {
    charges: Charges,
    /// The charge for one step, by resource.
    per_step: Vec<Wide>,
    decay: Decay,
    clock: Clock,
    /// The account above each user and account.
    above: Vec<Option<u32>>,
    /// Charged steps now, and when time last moved on, by node and resource.
    charged: Vec<u64>,
    settled: Vec<u64>,
    /// V as of `since`, whose overuse is the rate, by node.
    usage: Vec<Commitment>,
    since: Vec<Time>,
    /// V = rate + slope * s, by node.
    rate: Vec<f64>,
    slope: Vec<f64>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    instant: Option<Time>,
    /// s at `instant`, once it is known.
    s: Option<f64>,
    /// Nodes whose lines are new, and by what all slopes were multiplied since that was last asked.
    changed: Vec<u32>,
    rebased: f64,
}

impl DecayedUsage {
    /// `above` has one entry a node: the number of the account above it.
    pub(crate) fn new(billing: &Billing, capacity: &Capacity, decay: Decay, above: Vec<Option<u32>>) -> DecayedUsage {
        let (nodes, width) = (above.len(), capacity.width());
        let charges = Charges::new(billing, capacity);
        DecayedUsage {
            per_step: charges.per_step().iter().map(Wide::from_rational).collect(),
            charges,
            decay,
            clock: Clock::new(decay),
            above,
            charged: vec![0; nodes * width],
            settled: vec![0; nodes * width],
            usage: vec![Commitment::default(); nodes],
            since: vec![Time::ZERO; nodes],
            rate: vec![0.0; nodes],
            slope: vec![0.0; nodes],
            touched: Vec::new(),
            is_touched: vec![false; nodes],
            instant: None,
            s: None,
            changed: Vec::new(),
            rebased: 1.0,
        }
    }

    pub(crate) fn started(&mut self, now: Time, user: UserId, demand: &[Amount]) {
        self.change(now, user, demand, |charged, steps| charged + steps);
    }

    pub(crate) fn finished(&mut self, now: Time, user: UserId, demand: &[Amount]) {
        self.change(now, user, demand, |charged, steps| charged - steps);
    }

    fn change(&mut self, now: Time, user: UserId, demand: &[Amount], with: impl Fn(u64, u64) -> u64) {
        self.advance(now);
        let width = self.per_step.len();
        let mut at = Some(user.0);
        while let Some(node) = at {
            let row = &mut self.charged[node as usize * width..][..width];
            self.charges.charged(demand, |r, steps| row[r] = with(row[r], steps));
            if !std::mem::replace(&mut self.is_touched[node as usize], true) {
                self.touched.push(node);
            }
            at = self.above[node as usize];
        }
    }

    /// Moves time on to `now`: what changed at the last instant is settled first.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if Some(now) > self.instant {
            self.settle();
            self.instant = Some(now);
            self.s = None;
        }
    }

    /// s at the present instant.
    #[inline]
    pub(crate) fn s(&mut self) -> f64 {
        if let Some(s) = self.s {
            return s;
        }
        let DecayedUsage { clock, slope, rebased, .. } = self;
        let s = clock.s(self.instant.unwrap_or_default(), |factor| {
            slope.iter_mut().for_each(|b| *b *= factor);
            *rebased *= factor;
        });
        self.s = Some(s);
        s
    }

    fn settle(&mut self) {
        let Some(instant) = self.instant else { return };
        let width = self.per_step.len();
        let mut touched = std::mem::take(&mut self.touched);
        for node in touched.drain(..) {
            let n = node as usize;
            self.is_touched[n] = false;
            let row = n * width..(n + 1) * width;
            // Untouched where the rate is the same: equal histories then keep equal bits.
            if self.charged[row.clone()] == self.settled[row.clone()] {
                continue;
            }
            let kept = self.decay.over(instant - self.since[n]);
            self.since[n] = instant;
            let (new, old) = (&self.charged[row.clone()], &self.settled[row.clone()]);
            let rate = (0..width).fold(Wide::ZERO, |sum, r| sum + Wide::from_whole(new[r]) * self.per_step[r]);
            self.usage[n] = self.usage[n].after(&kept).toward(rate, || self.rate_difference(old, new));
            self.settled[row.clone()].copy_from_slice(&self.charged[row]);
            self.rate[n] = self.usage[n].overuse();
            let s = self.s();
            self.slope[n] = self.usage[n].gap() / s;
            self.changed.push(node);
        }
        self.touched = touched;
    }

    /// The rate of `old` less that of `new`, right to its own last digits.
    fn rate_difference(&self, old: &[u64], new: &[u64]) -> Wide {
        let pairs = || old.iter().zip(new);
        let sum = |a: &[u64], b: &[u64]| {
            (0..a.len()).fold(Wide::ZERO, |sum, r| sum + Wide::from_whole(a[r].saturating_sub(b[r])) * self.per_step[r])
        };
        match (pairs().any(|(o, n)| o > n), pairs().any(|(o, n)| o < n)) {
            (_, false) => sum(old, new),
            (false, _) => -sum(new, old),
            // More of one resource and less of another: digits would cancel.
            (true, true) => Wide::from_rational(&(self.exact_rate(old) - self.exact_rate(new))),
        }
    }

    fn exact_rate(&self, steps: &[u64]) -> Rational {
        let products = steps.iter().zip(self.charges.per_step()).map(|(&steps, k)| Rational::from(steps) * k);
        products.fold(Rational::ZERO, |sum, p| sum + p)
    }

    /// What every slope was multiplied by since this was last asked, if by anything.
    pub(crate) fn take_rebased(&mut self) -> Option<f64> {
        let factor = std::mem::replace(&mut self.rebased, 1.0);
        (factor != 1.0).then_some(factor)
    }

    /// A node whose line is new since this was last asked.
    pub(crate) fn take_changed(&mut self) -> Option<u32> {
        self.changed.pop()
    }

    /// V = a + b s.
    #[inline]
    pub(crate) fn line(&self, node: u32) -> (f64, f64) {
        (self.rate[node as usize], self.slope[node as usize])
    }

    /// V at s, and the size of the parts it is the sum of, which bounds its rounding.
    #[inline]
    pub(crate) fn at(&self, node: u32, s: f64) -> (f64, f64) {
        let (a, b) = self.line(node);
        let part = b * s;
        (a + part, a + part.abs())
    }

    /// Whether V is 0 and has always been.
    #[inline]
    pub(crate) fn is_nothing(&self, node: u32) -> bool {
        self.usage[node as usize].is_nothing()
    }

    /// V at `now`, which is the present instant, for exact comparisons.
    pub(crate) fn exactly(&self, now: Time, node: u32) -> Branch {
        let (n, width) = (node as usize, self.per_step.len());
        let usage = match self.is_nothing(node) {
            true => self.usage[n],
            false => self.usage[n].after(&self.decay.over(now - self.since[n])),
        };
        Branch::new(Rational::ZERO, &usage, || self.exact_rate(&self.settled[n * width..][..width]))
    }

    /// V now.
    pub(crate) fn value(&self, now: Time, node: u32) -> f64 {
        let n = node as usize;
        self.usage[n].after(&self.decay.over(now - self.since[n])).value()
    }

    /// The charge a second of one task, exactly.
    pub(crate) fn charge(&self, demand: &[Amount]) -> Rational {
        let mut sum = Rational::ZERO;
        self.charges.charged(demand, |r, steps| sum += Rational::from(steps) * &self.charges.per_step()[r]);
        sum
    }

    /// Exact comparison of V / e of two nodes.
    pub(crate) fn compare_over(&self, now: Time, (a, of_a): (u32, &Rational), (b, of_b): (u32, &Rational)) -> Ordering {
        if self.is_nothing(a) && self.is_nothing(b) {
            return Ordering::Equal;
        }
        if of_a == of_b {
            return self.exactly(now, a).compare(&self.exactly(now, b));
        }
        self.exactly(now, a).times(of_b).compare(&self.exactly(now, b).times(of_a))
    }
}
