//! Decayed usage: the charges of users and accounts, halved every half-life.
//!
//! A task is charged continuously while it runs, and charges decay with the half-life H, so usage follows U' = rate - U
//! ln 2 / H. Stored is V = U ln 2 / H, in units in which a share of the pool that is held forever converges to that
//! share. V' = (rate - V) ln 2 / H is Eq. 6 of Sadok et al. (2021) with the rate instead of the overuse, so
//! [`Commitment`] represents V with the same precision, and in s = 2^(-t / H) every V is a straight line.
//!
//! **Continuous.** Slurm updates usage every PriorityCalcPeriod (5 minutes by default), Kueue every
//! usageSamplingInterval. Here usage is exact at every instant: the limit of both for short periods. V does not change
//! within one instant, however many tasks start.

use std::cmp::Ordering;

use evenhand_model::{Capacity, Rational, Time};

use crate::Job;
use crate::billing::{Charges, JobBilling};
use crate::commitment::{Branch, Commitment};
use crate::decay::{Clock, Decay};
use crate::extended_precision::ExtendedFloat;

/// The decayed usage of users, numbered from 0, and of the accounts above them, numbered after them.
pub(crate) struct DecayedUsage {
    charges: Charges,
    /// The charge for one step, by column of `charges`.
    per_step: Vec<ExtendedFloat>,
    decay: Decay,
    clock: Clock,
    /// The account above each user and account.
    above: Vec<Option<u32>>,
    /// Charged steps, now and at the last instant, by node and column of `charges`.
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
    /// s at `instant`, once it is computed.
    s: Option<f64>,
    /// Nodes whose lines have changed, and the factor of all slopes since the last query.
    changed: Vec<u32>,
    rebased: f64,
}

impl DecayedUsage {
    /// Creates the usage of nodes without charges. `above` has the number of the parent account of each node.
    pub(crate) fn new(
        billing: &JobBilling,
        capacity: &Capacity,
        decay: Decay,
        above: Vec<Option<u32>>,
    ) -> DecayedUsage {
        let charges = Charges::new(billing, capacity);
        let (nodes, width) = (above.len(), charges.per_step().len());
        DecayedUsage {
            per_step: charges.per_step().iter().map(ExtendedFloat::from_rational).collect(),
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

    pub(crate) fn started(&mut self, now: Time, job: &Job<'_>) {
        self.change(now, job, |charged, steps| charged + steps);
    }

    pub(crate) fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.change(now, job, |charged, steps| charged - steps);
    }

    fn change(&mut self, now: Time, job: &Job<'_>, with: impl Fn(u64, u64) -> u64) {
        self.advance(now);
        let width = self.per_step.len();
        let mut at = Some(job.user.0);
        while let Some(node) = at {
            let row = &mut self.charged[node as usize * width..][..width];
            self.charges.charged(job, |column, steps| row[column] = with(row[column], steps));
            if !std::mem::replace(&mut self.is_touched[node as usize], true) {
                self.touched.push(node);
            }
            at = self.above[node as usize];
        }
    }

    /// Advances the time to `now`. Settles the changes of the last instant first.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if Some(now) > self.instant {
            self.settle();
            self.instant = Some(now);
            self.s = None;
        }
    }

    /// Returns s at the current instant.
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
            // Unchanged if the rate is the same, so that equal histories have equal bits.
            if self.charged[row.clone()] == self.settled[row.clone()] {
                continue;
            }
            let kept = self.decay.over(instant - self.since[n]);
            self.since[n] = instant;
            let (new, old) = (&self.charged[row.clone()], &self.settled[row.clone()]);
            let rate = (0..width)
                .fold(ExtendedFloat::ZERO, |sum, r| sum + ExtendedFloat::from_whole(new[r]) * self.per_step[r]);
            self.usage[n] = self.usage[n].after(&kept).toward(rate, || self.rate_difference(old, new));
            self.settled[row.clone()].copy_from_slice(&self.charged[row]);
            self.rate[n] = self.usage[n].overuse();
            let s = self.s();
            self.slope[n] = self.usage[n].gap() / s;
            self.changed.push(node);
        }
        self.touched = touched;
    }

    /// Returns the rate of `old` less that of `new`, to full precision.
    fn rate_difference(&self, old: &[u64], new: &[u64]) -> ExtendedFloat {
        let pairs = || old.iter().zip(new);
        let sum = |a: &[u64], b: &[u64]| {
            (0..a.len()).fold(ExtendedFloat::ZERO, |sum, r| {
                sum + ExtendedFloat::from_whole(a[r].saturating_sub(b[r])) * self.per_step[r]
            })
        };
        match (pairs().any(|(o, n)| o > n), pairs().any(|(o, n)| o < n)) {
            (_, false) => sum(old, new),
            (false, _) => -sum(new, old),
            // More of one resource and less of another: digits would cancel.
            (true, true) => ExtendedFloat::from_rational(&(self.exact_rate(old) - self.exact_rate(new))),
        }
    }

    fn exact_rate(&self, steps: &[u64]) -> Rational {
        let products = steps.iter().zip(self.charges.per_step()).map(|(&steps, k)| Rational::from(steps) * k);
        products.fold(Rational::ZERO, |sum, p| sum + p)
    }

    /// Returns the factor of all slopes since the last call, if they changed.
    pub(crate) fn take_rebased(&mut self) -> Option<f64> {
        let factor = std::mem::replace(&mut self.rebased, 1.0);
        (factor != 1.0).then_some(factor)
    }

    /// Returns a node whose line has changed since it was last returned.
    pub(crate) fn take_changed(&mut self) -> Option<u32> {
        self.changed.pop()
    }

    /// Returns a and b of V = a + b s.
    #[inline]
    pub(crate) fn line(&self, node: u32) -> (f64, f64) {
        (self.rate[node as usize], self.slope[node as usize])
    }

    /// Returns V at s, and the sum of its parts' absolute values, which bounds its rounding error.
    #[inline]
    pub(crate) fn at(&self, node: u32, s: f64) -> (f64, f64) {
        let (a, b) = self.line(node);
        let part = b * s;
        (a + part, a + part.abs())
    }

    /// Returns whether V is 0 and has always been 0.
    #[inline]
    pub(crate) fn is_nothing(&self, node: u32) -> bool {
        self.usage[node as usize].is_nothing()
    }

    /// Returns V at `now`, the current instant, for exact comparisons.
    pub(crate) fn exactly(&self, now: Time, node: u32) -> Branch {
        let (n, width) = (node as usize, self.per_step.len());
        let usage = match self.is_nothing(node) {
            true => self.usage[n],
            false => self.usage[n].after(&self.decay.over(now - self.since[n])),
        };
        Branch::new(Rational::ZERO, &usage, || self.exact_rate(&self.settled[n * width..][..width]))
    }

    /// Returns V now.
    pub(crate) fn value(&self, now: Time, node: u32) -> f64 {
        let n = node as usize;
        self.usage[n].after(&self.decay.over(now - self.since[n])).value()
    }

    /// Returns the charge of one task per second, exactly.
    pub(crate) fn charge(&self, job: &Job<'_>) -> Rational {
        self.charges.charge(job)
    }

    /// Compares V / e of two nodes exactly.
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
