//! Stateful dominant resource fairness (paper 001): past over-use is a commitment that decays.
//!
//! While nothing of a user starts or finishes, its commitment follows Eq. 6:
//! c(t) = ō + (c(t0) - ō) e^(-(t - t0)/tau), where ō = max(o - entitlement, 0) is its overuse. With
//! s = 2^(-half-lives since the epoch) that is a straight line, c = ō + B s, and so is every branch
//! of the key: (o + ō) + B s.
//!
//! **Digits.** The lines, in `f64`, say who may be least. Among users they cannot tell apart
//! [`Commitment`], which has 36 digits and no smallest number, decides: overuse of a
//! microsecond is a small part of B, and its order in time a small part of that.
//!
//! **Instants.** c is continuous, so during one instant it does not move however many tasks start
//! and finish. Lines therefore keep the overuse that was in force *until* the instant, and the new
//! one is settled when time moves on. Besides being what Eq. 6 says, this keeps ties exact: a user
//! that never exceeded its entitlement has B = 0 and ō = 0, and its key is its share to the bit.

use std::cmp::Ordering;

use evenhand_model::{Amount, Rational, Time, UserId};

use crate::commitment::{Branch, Commitment};
use crate::decay::{Clock, Decay};
use crate::holdings::{Holdings, RelativeWeights};
use crate::kinetic::LineOrder;
use crate::wide::Wide;
use crate::{Policy, Registration, Setting, Standing};

pub(crate) const REGISTRATION: Registration = Registration {
    name: "sdrf",
    summary: "least max over resources of share + commitment, over weight (paper 001, Algorithm 1)",
    needs_decay: true,
    build: |setting| Box::new(Sdrf::new(setting, Key::SumPerResource)),
};

pub(crate) const DOMINANT_REGISTRATION: Registration = Registration {
    name: "sdrf-dominant",
    summary: "least dominant share + dominant commitment, over weight (paper 001, Eq. 5)",
    needs_decay: true,
    build: |setting| Box::new(Sdrf::new(setting, Key::DominantPlusDominant)),
};

/// Algorithm 1 of the paper adds share and commitment resource by resource; its Eq. 5 and the
/// authors' code add the two maxima. They order users differently (docs/simulation.md).
#[derive(Clone, Copy, PartialEq)]
enum Key {
    /// max_r (o_r + c_r)
    SumPerResource,
    /// max_r o_r + max_r c_r
    DominantPlusDominant,
}

/// Rounding of a key, relative to its largest part: what is nearer is compared exactly.
const NEAR: f64 = 64.0 * f64::EPSILON;

/// An entitlement in steps: exactly, and as a whole number and a rest in [0, 1), so that overuse is
/// a whole difference less the rest.
struct Entitlement {
    exact: Rational,
    whole: u64,
    rest: Wide,
}

impl Entitlement {
    fn new(exact: Rational) -> Entitlement {
        let (whole, rest) = exact.clone().split_at_point();
        // More than u64 holds is never exceeded.
        let whole = u64::try_from(whole).unwrap_or(u64::MAX);
        Entitlement { exact, whole, rest: Wide::from_rational(&rest) }
    }

    #[inline]
    fn is_exceeded(&self, held: u64) -> bool {
        held > self.whole
    }

    /// max(held - entitlement, 0) in steps.
    #[inline]
    fn overuse(&self, held: u64) -> Wide {
        if self.is_exceeded(held) { self.overuse_difference(held, 0) } else { Wide::ZERO }
    }

    /// overuse(a) - overuse(b) to 36 digits: mostly a difference of whole numbers.
    #[inline]
    fn overuse_difference(&self, a: u64, b: u64) -> Wide {
        let (least, most) = (a.min(b), a.max(b));
        let difference = if self.is_exceeded(least) {
            Wide::from_whole(most - least)
        } else {
            Wide::from_whole(most - self.whole) - self.rest
        };
        if a > b { difference } else { -difference }
    }
}

struct Sdrf {
    key: Key,
    holdings: Holdings,
    weights: RelativeWeights,
    decay: Decay,
    clock: Clock,
    /// Entitlements in steps, by user and resource.
    entitled: Vec<Entitlement>,
    /// Held when time last moved on: what overuse is taken of.
    settled: Vec<u64>,
    /// c as of `since` and ō, from `settled`, by user and resource.
    commitment: Vec<Commitment>,
    /// When a user's overuse last changed.
    since: Vec<Time>,
    /// B, by user and resource.
    slope: Vec<f64>,
    /// 1 / capacity, by resource.
    per_step: Vec<Wide>,
    first: Vec<Time>,
    waiting: Vec<bool>,
    /// Users whose holdings changed at `instant` and are not yet settled.
    touched: Vec<UserId>,
    instant: Option<Time>,
    /// s at `instant`, once it is known.
    s: Option<f64>,
    order: Box<dyn LineOrder>,
    /// The largest 1 / w: a bound for the rounding of keys whose parts cancel.
    largest_inverse: f64,
    near: Vec<u32>,
    line: (Vec<f64>, Vec<f64>),
}

impl Sdrf {
    fn new(setting: &Setting<'_>, key: Key) -> Sdrf {
        let users = setting.weights.len();
        let width = setting.capacity.width();
        let decay = setting.decay.expect("the registration says that a decay is needed");
        let weights = RelativeWeights::new(setting.weights);
        let entitled = (0..users)
            .flat_map(|u| {
                let share = setting.weights.entitlement(u);
                (0..width).map(move |r| Entitlement::new(&share * setting.capacity.exact_steps(r))).collect::<Vec<_>>()
            })
            .collect();
        Sdrf {
            key,
            holdings: Holdings::new(setting.capacity, users),
            largest_inverse: (0..users as u32).map(|u| weights.inverse(UserId(u))).fold(1.0, f64::max),
            weights,
            decay,
            clock: Clock::new(decay),
            entitled,
            settled: vec![0; users * width],
            commitment: vec![Commitment::default(); users * width],
            since: vec![Time::ZERO; users],
            slope: vec![0.0; users * width],
            per_step: (0..width)
                .map(|r| Wide::from_rational(&(Rational::ONE / setting.capacity.exact_steps(r))))
                .collect(),
            first: vec![Time::ZERO; users],
            waiting: vec![false; users],
            touched: Vec::new(),
            instant: None,
            s: None,
            order: setting.order.structure(users, width),
            near: Vec::new(),
            line: (vec![0.0; width], vec![0.0; width]),
        }
    }

    /// Moves time on to `now`: what changed at the last instant is settled first.
    #[inline]
    fn advance(&mut self, now: Time) {
        if Some(now) > self.instant {
            self.settle();
            self.instant = Some(now);
            self.s = None;
        }
    }

    /// s at the present instant: computed only where something depends on it.
    #[inline]
    fn s(&mut self) -> f64 {
        if let Some(s) = self.s {
            return s;
        }
        let Sdrf { clock, slope, order, .. } = self;
        let s = clock.s(self.instant.unwrap_or_default(), |factor| {
            slope.iter_mut().for_each(|b| *b *= factor);
            order.rebase(factor);
        });
        self.s = Some(s);
        s
    }

    fn settle(&mut self) {
        let Some(instant) = self.instant else { return };
        let width = self.holdings.width();
        while let Some(user) = self.touched.pop() {
            let row = user.index() * width..(user.index() + 1) * width;
            // Untouched where overuse is the same: equal histories then keep equal bits.
            let changed = row.clone().zip(self.holdings.row(user)).any(|(at, &held)| {
                held != self.settled[at] && self.entitled[at].is_exceeded(held.max(self.settled[at]))
            });
            if changed {
                let kept = self.decay.over(instant - self.since[user.index()]);
                self.since[user.index()] = instant;
                let per_s = 1.0 / self.s();
                for (r, at) in row.clone().enumerate() {
                    let (held, before) = (self.holdings.row(user)[r], self.settled[at]);
                    let (entitled, step) = (&self.entitled[at], self.per_step[r]);
                    let mut c = self.commitment[at].after(&kept);
                    if held != before && entitled.is_exceeded(held.max(before)) {
                        c = c
                            .toward(entitled.overuse(held) * step, || entitled.overuse_difference(before, held) * step);
                    }
                    self.commitment[at] = c;
                    self.slope[at] = c.gap() * per_s;
                }
            }
            self.settled[row].copy_from_slice(self.holdings.row(user));
            if changed {
                self.set_lines(user);
            }
        }
    }

    fn set_lines(&mut self, user: UserId) {
        if !self.waiting[user.index()] {
            return;
        }
        let inverse = self.weights.inverse(user);
        let held = self.holdings.row(user);
        let dominant = match self.key {
            Key::SumPerResource => 0.0,
            Key::DominantPlusDominant => {
                held.iter().enumerate().map(|(r, &h)| self.holdings.share(r, h)).fold(0.0, f64::max)
            }
        };
        for (r, &steps) in held.iter().enumerate() {
            let at = user.index() * held.len() + r;
            let share = match self.key {
                Key::SumPerResource => self.holdings.share(r, steps),
                Key::DominantPlusDominant => dominant,
            };
            self.line.0[r] = (share + self.commitment[at].overuse()) * inverse;
            self.line.1[r] = self.slope[at] * inverse;
        }
        self.order.set(user.0, &self.line.0, &self.line.1);
    }

    fn changed(&mut self, user: UserId) {
        self.touched.push(user);
        self.set_lines(user);
    }

    /// c now, by resource.
    fn commitments(&self, now: Time, user: UserId) -> impl Iterator<Item = Commitment> {
        let width = self.holdings.width();
        let then = &self.commitment[user.index() * width..][..width];
        let remembers = then.iter().any(|c| !c.is_nothing());
        let kept = remembers.then(|| self.decay.over(now - self.since[user.index()]));
        then.iter().map(move |c| kept.map_or(*c, |kept| c.after(&kept)))
    }

    /// A user's key, before weight: its largest branch.
    fn largest_branch(&self, now: Time, user: UserId) -> Branch {
        let width = self.holdings.width();
        let held = self.holdings.row(user);
        let share = |r: usize| self.holdings.exact_share(r, held[r]);
        let dominant = match self.key {
            Key::SumPerResource => None,
            Key::DominantPlusDominant => (0..width).map(share).max(),
        };
        let branches = self.commitments(now, user).enumerate().map(|(r, c)| {
            let at = user.index() * width + r;
            let over = || Rational::from(self.settled[at]) - &self.entitled[at].exact;
            let base = dominant.clone().unwrap_or_else(|| share(r));
            Branch::new(base, &c, || over() * self.holdings.exact_share(r, 1))
        });
        branches.max_by(Branch::compare).expect("at least one resource")
    }

    /// Exact comparison of two users' keys, for those that rounding cannot tell apart.
    fn compare_exactly(&self, now: Time, a: UserId, b: UserId) -> Ordering {
        let width = self.holdings.width();
        let range = |u: UserId| u.index() * width..(u.index() + 1) * width;
        let equal_weights = self.weights.equal(a, b);
        let commitments = |u: UserId| &self.commitment[range(u)];
        let nothing = |u: UserId| {
            self.holdings.row(u).iter().all(|&h| h == 0) && commitments(u).iter().all(Commitment::is_nothing)
        };
        // By far the most common ties: the same state, or nothing held and nothing remembered.
        if nothing(a) && nothing(b) {
            return Ordering::Equal;
        }
        if equal_weights
            && self.since[a.index()] == self.since[b.index()]
            && self.holdings.row(a) == self.holdings.row(b)
            && commitments(a) == commitments(b)
        {
            return Ordering::Equal;
        }
        let key = |u: UserId| {
            let branch = self.largest_branch(now, u);
            if equal_weights { branch } else { branch.times(&(Rational::ONE / self.weights.exact_over_mean(u))) }
        };
        key(a).compare(&key(b))
    }
}

impl Policy for Sdrf {
    fn waiting(&mut self, user: UserId, first: Option<Time>) {
        let was = std::mem::replace(&mut self.waiting[user.index()], first.is_some());
        match first {
            Some(submitted) => {
                self.first[user.index()] = submitted;
                if !was {
                    self.set_lines(user);
                }
            }
            None => self.order.remove(user.0),
        }
    }

    fn started(&mut self, now: Time, user: UserId, demand: &[Amount]) {
        self.advance(now);
        self.holdings.add(user, demand);
        self.changed(user);
    }

    fn finished(&mut self, now: Time, user: UserId, demand: &[Amount]) {
        self.advance(now);
        self.holdings.remove(user, demand);
        self.changed(user);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        self.advance(now);
        let s = self.s();
        // A key's parts are at most 2 / w and may cancel, hence the absolute part.
        let absolute = NEAR * self.largest_inverse;
        let mut near = std::mem::take(&mut self.near);
        self.order.least(s, NEAR, absolute, &mut near);
        let before = |a: UserId, b: UserId| {
            self.compare_exactly(now, a, b)
                .then_with(|| (self.first[a.index()], a).cmp(&(self.first[b.index()], b)))
                .is_lt()
        };
        let least = near.iter().map(|&u| UserId(u)).reduce(|a, b| if before(b, a) { b } else { a });
        self.near = near;
        least
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.advance(now);
        let shares = self.holdings.shares(user);
        let commitments: Vec<f64> = self.commitments(now, user).map(|c| c.value()).collect();
        let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0, f64::max);
        let key = match self.key {
            Key::SumPerResource => largest(&mut shares.iter().zip(&commitments).map(|(o, c)| o + c)),
            Key::DominantPlusDominant => {
                largest(&mut shares.iter().copied()) + largest(&mut commitments.iter().copied())
            }
        };
        Standing { key: key * self.weights.inverse(user), shares, commitments }
    }

    fn order_events(&self) -> u64 {
        self.order.order_events()
    }
}
