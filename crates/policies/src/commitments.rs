//! The commitments of all users, updated only when needed.

use evenhand_model::{Rational, Time, UserId};

use crate::PolicyContext;
use crate::commitment::{Memory, Overuse};
use crate::decay::{Clock, Decay, two_to_minus};
use crate::entitlement::{Entitlement, Excess, Step};
use crate::holdings::RelativeWeights;

/// An instant, and 1 / s there in the epoch of the user it belongs to.
#[derive(Clone, Copy, Default)]
struct Moment {
    time: Time,
    per_s: f64,
}

/// The state of a user that all its resources share.
#[derive(Clone, Copy, Default)]
struct Account {
    /// The start of the settled overuse; the commitments are as of this moment.
    settled: Moment,
    /// The last change of the holdings; the new holdings are not settled if `pending`.
    changed: Moment,
    pending: bool,
    /// Whether a commitment or an overuse of the user is not 0.
    remembers: bool,
    /// The class of its entitlements.
    class: u32,
    /// The clock's epoch of `per_s`.
    epoch: u64,
}

/// The commitments of all users and the slopes of their lines (docs/src/reference/simulation.md).
///
/// c is continuous, so it does not change within an instant, however many tasks start and finish; afterwards it tends
/// to the overuse at the end of the instant. A user's change is *pending* until its next change at a later instant, or
/// until a caller needs its commitments in full precision: then it is *settled*. Users without overuse, and users whose
/// commitments are not queried, cost nothing.
pub(crate) struct Commitments {
    width: usize,
    decay: Decay,
    clock: Clock,
    /// By resource.
    steps: Vec<Step>,
    /// By class of weight and resource.
    entitled: Vec<Entitlement>,
    accounts: Vec<Account>,
    /// The holdings at the last settlement, from which the settled overuse follows; by user and resource.
    settled: Vec<u64>,
    /// c as of the settled moment, and ō from `settled`.
    commitment: Vec<Memory>,
    instant: Option<Time>,
    /// s at `instant`, once it is computed.
    s: Option<f64>,
}

impl Commitments {
    pub(crate) fn new(context: &PolicyContext<'_>, weights: &RelativeWeights) -> Commitments {
        let width = context.capacity.width();
        let users = context.weights.len();
        let decay = context.decay.expect("the registry checks that a decay is given");
        let entitled = weights.first_of_class().iter().flat_map(|user| {
            let share = context.weights.entitlement(user.index());
            (0..width).map(move |r| Entitlement::new(&share * context.capacity.exact_steps(r)))
        });
        let account = |u: usize| Account { class: weights.class(UserId(u as u32)), ..Account::default() };
        Commitments {
            width,
            decay,
            clock: Clock::new(decay),
            steps: (0..width).map(|r| Step::new(Rational::ONE / context.capacity.exact_steps(r))).collect(),
            entitled: entitled.collect(),
            accounts: (0..users).map(account).collect(),
            settled: vec![0; users * width],
            commitment: vec![Memory::default(); users * width],
            instant: None,
            s: None,
        }
    }

    /// Advances the time to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if Some(now) > self.instant {
            self.instant = Some(now);
            self.s = None;
        }
    }

    /// Returns s at the current instant, computed only on demand. If the epoch changes, `rebase` is called with the
    /// power of two by which all slopes shrink; the slopes stored here follow at their next use.
    #[inline]
    pub(crate) fn s(&mut self, rebase: impl FnMut(f64)) -> f64 {
        if let Some(s) = self.s {
            return s;
        }
        let s = self.clock.s(self.instant.unwrap_or_default(), rebase);
        self.s = Some(s);
        s
    }

    #[inline]
    fn row(&self, user: UserId) -> std::ops::Range<usize> {
        user.index() * self.width..(user.index() + 1) * self.width
    }

    #[inline]
    fn entitled(&self, user: UserId) -> &[Entitlement] {
        &self.entitled[self.accounts[user.index()].class as usize * self.width..][..self.width]
    }

    /// Notes that the holdings of `user` changed to `held`. Changes before the current instant must be settled.
    #[inline]
    pub(crate) fn changed(&mut self, user: UserId, held: &[u64], rebase: impl FnMut(f64)) {
        let now = self.instant.unwrap_or_default();
        let row = self.row(user);
        let differs = held.iter().zip(&self.settled[row]).any(|(h, s)| h != s);
        let exceeds = self.entitled(user).iter().zip(held).any(|(e, &h)| !e.overuse(h).is_zero());
        let account = &mut self.accounts[user.index()];
        account.pending = differs;
        account.changed.time = now;
        if exceeds || account.remembers {
            let s = self.s(rebase);
            self.renew_epoch(user);
            let account = &mut self.accounts[user.index()];
            account.remembers = true;
            account.changed.per_s = 1.0 / s;
        }
    }

    /// Converts a user's slopes to the current epoch by a power of two, and so exactly.
    #[inline]
    fn renew_epoch(&mut self, user: UserId) {
        let (account, epoch) = (&mut self.accounts[user.index()], self.clock.epoch());
        if account.epoch != epoch {
            let factor = two_to_minus(epoch - account.epoch);
            account.settled.per_s *= factor;
            account.changed.per_s *= factor;
            account.epoch = epoch;
        }
    }

    /// Settles a change before the current instant.
    #[inline]
    pub(crate) fn settle(&mut self, user: UserId, held: &[u64]) {
        let account = &self.accounts[user.index()];
        if account.pending && Some(account.changed.time) < self.instant {
            self.settle_change(user, held);
        }
    }

    fn settle_change(&mut self, user: UserId, held: &[u64]) {
        let row = self.row(user);
        let account = &mut self.accounts[user.index()];
        account.pending = false;
        let entitled = &self.entitled[account.class as usize * self.width..][..self.width];
        let (settled, commitment) = (&mut self.settled[row.clone()], &mut self.commitment[row]);
        let overuse =
            || entitled.iter().zip(held.iter().zip(&*settled)).map(|(e, (&h, &s))| (e.overuse(s), e.overuse(h)));
        // Unchanged if the overuse is the same, so that equal histories have equal bits.
        if overuse().any(|(before, now)| now.differs(before)) {
            let kept = self.decay.over(account.changed.time - account.settled.time);
            account.settled = account.changed;
            account.remembers = false;
            for (c, (before, now)) in commitment.iter_mut().zip(overuse()) {
                *c = c.after(&kept, before);
                if now.differs(before) {
                    *c = c.toward(before, now, || before.less(now));
                }
                account.remembers |= !(c.is_zero() && now.is_zero());
            }
        }
        settled.iter_mut().zip(held).for_each(|(settled, held)| *settled = *held);
    }

    /// Passes a user's line ō + B s by resource, as ō and B, for the holdings `held`. Its precision is that of its
    /// parts at the last change in `f64`.
    #[inline]
    pub(crate) fn lines(&mut self, user: UserId, held: &[u64], mut line: impl FnMut(usize, f64, f64)) {
        if !self.accounts[user.index()].remembers {
            (0..self.width).for_each(|r| line(r, 0.0, 0.0));
            return;
        }
        self.renew_epoch(user);
        let account = &self.accounts[user.index()];
        let row = self.row(user);
        let (settled, commitment) = (&self.settled[row.clone()], &self.commitment[row]);
        for (r, (e, step)) in self.entitled(user).iter().zip(&self.steps).enumerate() {
            let (before, now) = (e.overuse(settled[r]), e.overuse(held[r]));
            let mut slope = commitment[r].gap(before) * account.settled.per_s;
            if account.pending {
                slope += (before.to_f64() - now.to_f64()) * account.changed.per_s;
            }
            line(r, now.to_f64() * step.near, slope * step.near);
        }
    }

    /// Returns c at `now` and the overuse, by resource; call [`settle`](Commitments::settle) first.
    pub(crate) fn now(&self, now: Time, user: UserId) -> impl Iterator<Item = (Memory, Excess<'_>)> {
        let row = self.row(user);
        let overuse = self.entitled(user).iter().zip(&self.settled[row.clone()]).map(|(e, &held)| e.overuse(held));
        let account = &self.accounts[user.index()];
        let kept = account.remembers.then(|| self.decay.over(now - account.settled.time));
        let then = self.commitment[row].iter().zip(overuse);
        then.map(move |(c, overuse)| (kept.map_or(*c, |kept| c.after(&kept, overuse)), overuse))
    }

    /// Returns one step of a resource divided by its capacity.
    pub(crate) fn step(&self, r: usize) -> &Step {
        &self.steps[r]
    }

    /// Returns whether a user's commitments are 0 and stay 0; call [`settle`](Commitments::settle) first.
    pub(crate) fn is_nothing(&self, user: UserId) -> bool {
        let row = self.row(user);
        let mut overuse = self.entitled(user).iter().zip(&self.settled[row.clone()]).map(|(e, &held)| e.overuse(held));
        self.commitment[row].iter().all(Memory::is_zero) && overuse.all(Overuse::is_zero)
    }

    /// Returns whether the commitments of two users of equal weight have the same history.
    pub(crate) fn are_alike(&self, a: UserId, b: UserId) -> bool {
        let past = |u: UserId| {
            (self.accounts[u.index()].settled.time, &self.settled[self.row(u)], &self.commitment[self.row(u)])
        };
        past(a) == past(b)
    }
}
