//! Users ordered by decayed usage over weight, without accounts.

use evenhand_model::{Rational, Span, Time, UserId};

use crate::billing::JobBilling;
use crate::commitment::Branch;
use crate::holdings::{Holdings, RelativeWeights};
use crate::kinetic::LineOrder;
use crate::usage::DecayedUsage;
use crate::{Job, Policy, PolicyContext, Standing, TieRule};

/// A bound on the rounding error of a key, relative to its largest part; closer keys are compared exactly.
const NEAR: f64 = 64.0 * f64::EPSILON;

/// The entry penalty: a charge at the start of a task, until the next sample.
///
/// The penalty is the charge for one sampling interval of run time. It is removed at the first whole interval (counted
/// from the first event) after the start; from then on the usage itself contains the task.
struct EntryPenalty {
    interval: Span,
    /// 1 - 2^(-interval / H).
    factor: f64,
    exact_factor: Rational,
    /// Charges per second of tasks started since the last sample, by user.
    pending: Vec<Rational>,
    penalised: Vec<UserId>,
    origin: Option<Time>,
    /// Whole intervals since the origin.
    samples: u64,
}

impl EntryPenalty {
    /// Whether a sample was taken since the last call.
    fn sampled(&mut self, now: Time) -> bool {
        let origin = *self.origin.get_or_insert(now);
        let samples = (now - origin).nanos() / self.interval.nanos();
        std::mem::replace(&mut self.samples, samples) != samples
    }
}

/// The policy whose key is (V + penalty) / w, V the decayed usage.
pub(crate) struct UsageOrder {
    usage: DecayedUsage,
    penalty: Option<EntryPenalty>,
    holdings: Holdings,
    weights: RelativeWeights,
    ties: TieRule,
    waiting: Vec<bool>,
    order: Box<dyn LineOrder>,
    /// A bound on the parts of all keys over weight, to which the rounding error is relative.
    largest_part: f64,
    near: Vec<u32>,
}

impl UsageOrder {
    /// Creates the policy, which charges by `billing`. With `sampling`, each start has an entry penalty of that run time.
    pub(crate) fn new(context: &PolicyContext<'_>, billing: &JobBilling, sampling: Option<Span>) -> UsageOrder {
        let users = context.weights.len();
        let decay = context.decay.expect("the registry checks that a decay is given");
        let penalty = sampling.map(|interval| {
            let factor = decay.over(interval).lost.to_f64();
            EntryPenalty {
                interval,
                factor,
                // A finite f64.
                exact_factor: Rational::try_from(factor).unwrap_or(Rational::ZERO),
                pending: vec![Rational::ZERO; users],
                penalised: Vec::new(),
                origin: None,
                samples: 0,
            }
        });
        UsageOrder {
            usage: DecayedUsage::new(billing, context.capacity, decay, vec![None; users]),
            penalty,
            holdings: Holdings::new(context.capacity, users),
            weights: RelativeWeights::new(context.weights),
            ties: TieRule::new(users),
            waiting: vec![false; users],
            order: context.order.structure(users, 1),
            largest_part: 0.0,
            near: Vec::new(),
        }
    }

    fn advance(&mut self, now: Time) {
        self.usage.advance(now);
        self.synchronise();
        if let Some(mut penalty) = self.penalty.take() {
            if penalty.sampled(now) {
                for user in penalty.penalised.drain(..) {
                    penalty.pending[user.index()] = Rational::ZERO;
                    self.set_line(user, 0.0);
                }
            }
            self.penalty = Some(penalty);
        }
    }

    /// Passes changes of usage on to the order.
    fn synchronise(&mut self) {
        if let Some(factor) = self.usage.take_rebased() {
            self.order.rebase(factor);
        }
        while let Some(user) = self.usage.take_changed() {
            let penalty = self.penalty_of(UserId(user));
            self.set_line(UserId(user), penalty);
        }
    }

    fn penalty_of(&self, user: UserId) -> f64 {
        let pending = |p: &EntryPenalty| match p.pending[user.index()].is_zero() {
            true => 0.0,
            false => evenhand_model::to_f64(&p.pending[user.index()]) * p.factor,
        };
        self.penalty.as_ref().map_or(0.0, pending)
    }

    fn set_line(&mut self, user: UserId, penalty: f64) {
        if self.waiting[user.index()] {
            let (a, b) = self.usage.line(user.0);
            let inverse = self.weights.inverse(user);
            let a = (a + penalty) * inverse;
            self.largest_part = self.largest_part.max(a);
            self.order.set(user.0, &[a], &[b * inverse]);
        }
    }

    fn exactly(&self, now: Time, user: UserId) -> Branch {
        let usage = self.usage.exactly(now, user.0);
        match &self.penalty {
            Some(p) if !p.pending[user.index()].is_zero() => {
                usage.plus(Branch::rational(&p.pending[user.index()] * &p.exact_factor))
            }
            _ => usage,
        }
    }

    fn before(&self, now: Time, a: UserId, b: UserId) -> bool {
        let penalised = |u: UserId| self.penalty.as_ref().is_some_and(|p| !p.pending[u.index()].is_zero());
        let nothing = |u: UserId| self.usage.is_nothing(u.0) && !penalised(u);
        let order = if nothing(a) && nothing(b) {
            std::cmp::Ordering::Equal
        } else if self.weights.equal(a, b) {
            self.exactly(now, a).compare(&self.exactly(now, b))
        } else {
            let (w, v) = (self.weights.exact_over_mean(a), self.weights.exact_over_mean(b));
            self.exactly(now, a).times(&v).compare(&self.exactly(now, b).times(&w))
        };
        order.then_with(|| self.ties.compare(a, b)).is_lt()
    }
}

impl Policy for UsageOrder {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.ties.set_first_pending(user, first);
        let was = std::mem::replace(&mut self.waiting[user.index()], first.is_some());
        match first {
            Some(_) if was => {}
            Some(_) => {
                let penalty = self.penalty_of(user);
                self.set_line(user, penalty);
            }
            None => self.order.remove(user.0),
        }
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.advance(now);
        self.usage.started(now, job);
        self.holdings.add(user, demand);
        if let Some(p) = &mut self.penalty {
            if p.pending[user.index()].is_zero() {
                p.penalised.push(user);
            }
            p.pending[user.index()] += self.usage.charge(job);
            let penalty = self.penalty_of(user);
            self.set_line(user, penalty);
        }
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.advance(now);
        self.usage.finished(now, job);
        self.holdings.remove(user, demand);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        self.advance(now);
        let s = self.usage.s();
        self.synchronise();
        let mut near = std::mem::take(&mut self.near);
        self.order.lowest(s, NEAR, NEAR * self.largest_part, &mut near);
        let lowest = near.iter().map(|&u| UserId(u)).reduce(|a, b| if self.before(now, b, a) { b } else { a });
        self.near = near;
        lowest
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.advance(now);
        let key = (self.usage.value(now, user.0) + self.penalty_of(user)) * self.weights.inverse(user);
        Standing { shares: self.holdings.shares(user), commitments: Vec::new(), key }
    }

    fn order_events(&self) -> u64 {
        self.order.order_events()
    }
}
