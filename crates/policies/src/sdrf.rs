//! Stateful dominant resource fairness (paper 001): past over-use is a commitment that decays.
//!
//! While nothing of a user starts or finishes, its commitment follows Eq. 6:
//! c(t) = ō + (c(t0) - ō) e^(-(t - t0)/tau), where ō = max(o - entitlement, 0) is its overuse. With
//! s = 2^(-half-lives since the epoch) that is a straight line, c = ō + B s, and so is every branch
//! of the key: (o + ō) + B s. When ō changes at an instant with s = s1, continuity of c gives
//! B += (ō_before - ō_after) / s1.
//!
//! **Instants.** c is continuous, so during one instant it does not move however many tasks start
//! and finish. Lines therefore keep the overuse that was in force *until* the instant, and the new
//! one is settled when time moves on. Besides being what Eq. 6 says, this keeps ties exact: a user
//! that never exceeded its entitlement has B = 0 and ō = 0, and its key is its share to the bit.

use std::cmp::Ordering;

use evenhand_model::{Amount, Rational, Time, UserId};

use crate::decay::Clock;
use crate::holdings::{Holdings, RelativeWeights};
use crate::kinetic::{LineOrder, Scan};
use crate::twofold::{TWOFOLD_NEAR, Twofold};
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
/// authors' code add the two maxima. They order users differently (reference/mechanisms.md 3.4).
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
    rest: Twofold,
}

impl Entitlement {
    fn new(exact: Rational) -> Entitlement {
        let (whole, rest) = exact.clone().split_at_point();
        // More than u64 holds is never exceeded.
        let whole = u64::try_from(whole).unwrap_or(u64::MAX);
        Entitlement { exact, whole, rest: Twofold::from_rational(&rest) }
    }

    #[inline]
    fn is_exceeded(&self, held: u64) -> bool {
        held > self.whole
    }

    /// max(held - entitlement, 0) in steps.
    #[inline]
    fn overuse(&self, held: u64) -> f64 {
        if held <= self.whole { 0.0 } else { (held - self.whole) as f64 - self.rest.high() }
    }

    /// (overuse(a) - overuse(b)) times `rate`, to thirty digits.
    #[inline]
    fn overuse_difference(&self, a: u64, b: u64, rate: Twofold) -> Twofold {
        let (least, most) = (a.min(b), a.max(b));
        // Mostly a difference of whole numbers, which an f64 holds.
        let difference = match self.is_exceeded(least) {
            true if most - least < 1 << 53 => rate * (most - least) as f64,
            true => rate * Twofold::from_whole(most - least),
            false => rate * (Twofold::from_whole(most - self.whole) - self.rest),
        };
        if a > b { difference } else { -difference }
    }
}

struct Sdrf {
    key: Key,
    holdings: Holdings,
    weights: RelativeWeights,
    clock: Clock,
    /// Entitlements in steps, by user and resource.
    entitled: Vec<Entitlement>,
    /// Held when time last moved on: what overuse is taken of.
    settled: Vec<u64>,
    /// ō, from `settled`.
    overuse: Vec<f64>,
    /// B, by user and resource.
    slope: Vec<Twofold>,
    /// 1 / capacity, by resource.
    per_step: Vec<Twofold>,
    /// 1 / (capacity s), by resource, while an instant is being settled.
    rates: Vec<Twofold>,
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
            clock: Clock::new(decay),
            entitled,
            settled: vec![0; users * width],
            overuse: vec![0.0; users * width],
            slope: vec![Twofold::ZERO; users * width],
            per_step: (0..width)
                .map(|r| Twofold::from_rational(&(Rational::ONE / setting.capacity.exact_steps(r))))
                .collect(),
            rates: Vec::new(),
            first: vec![Time::ZERO; users],
            waiting: vec![false; users],
            touched: Vec::new(),
            instant: None,
            s: None,
            order: Box::new(Scan::new(users, width)),
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
            slope.iter_mut().for_each(|b| *b = b.scaled(factor));
            order.rebase(factor);
        });
        self.s = Some(s);
        s
    }

    fn settle(&mut self) {
        let width = self.holdings.width();
        let mut rates_known = false;
        while let Some(user) = self.touched.pop() {
            let mut changed = false;
            for r in 0..width {
                let at = user.index() * width + r;
                let (held, before) = (self.holdings.row(user)[r], self.settled[at]);
                self.settled[at] = held;
                // Untouched where overuse is the same: equal histories then keep equal bits.
                if held == before || !self.entitled[at].is_exceeded(held.max(before)) {
                    continue;
                }
                changed = true;
                if !std::mem::replace(&mut rates_known, true) {
                    let inverse_s = Twofold::inverse(self.s());
                    self.rates.clear();
                    self.rates.extend(self.per_step.iter().map(|per_step| *per_step * inverse_s));
                }
                let entitled = &self.entitled[at];
                self.overuse[at] = self.per_step[r].high() * entitled.overuse(held);
                self.slope[at] = self.slope[at] + entitled.overuse_difference(before, held, self.rates[r]);
            }
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
            self.line.0[r] = (share + self.overuse[at]) * inverse;
            self.line.1[r] = self.slope[at].high() * inverse;
        }
        self.order.set(user.0, &self.line.0, &self.line.1);
    }

    fn changed(&mut self, user: UserId) {
        self.touched.push(user);
        self.set_lines(user);
    }

    /// The rational part of each branch of a user's key, before weight: share + settled overuse.
    fn exact_branches(&self, user: UserId) -> Vec<Rational> {
        let width = self.holdings.width();
        let held = self.holdings.row(user);
        let share = |r: usize| self.holdings.exact_share(r, held[r]);
        let dominant = (0..width).map(share).max().unwrap_or(Rational::ZERO);
        (0..width)
            .map(|r| {
                let at = user.index() * width + r;
                let over = Rational::from(self.settled[at]) - &self.entitled[at].exact;
                let base = if self.key == Key::SumPerResource { share(r) } else { dominant.clone() };
                if over > Rational::ZERO { base + over * self.holdings.exact_share(r, 1) } else { base }
            })
            .collect()
    }

    /// Exact comparison of two users' keys, for those that rounding cannot tell apart.
    ///
    /// Both keys are a rational plus B s. Where the rationals are equal the B decide, however small
    /// they are beside them: at delta = 0.9 two users' keys may agree to 30 digits and still differ.
    fn compare_exactly(&self, s: f64, a: UserId, b: UserId) -> Ordering {
        let width = self.holdings.width();
        let range = |u: UserId| u.index() * width..(u.index() + 1) * width;
        let equal_weights = self.weights.equal(a, b);
        let slopes = |u: UserId| &self.slope[range(u)];
        let (held_a, held_b) = (self.holdings.row(a), self.holdings.row(b));
        // By far the most common ties: the same state, or nothing held and nothing remembered.
        if slopes(a) == slopes(b) && held_a == held_b && self.settled[range(a)] == self.settled[range(b)] {
            let nothing = held_a.iter().chain(&self.settled[range(a)]).all(|&h| h == 0);
            if equal_weights || (nothing && slopes(a).iter().all(|b| b.is_zero())) {
                return Ordering::Equal;
            }
        }
        let largest = |u: UserId| {
            let inverse = if equal_weights { Rational::ONE } else { Rational::ONE / self.weights.exact_over_mean(u) };
            let factor = Twofold::from_rational(&inverse) * Twofold::sum(s, 0.0);
            let parts = self.exact_branches(u).into_iter().zip(slopes(u));
            parts.map(|(q, &b)| (q * &inverse, b * factor)).max_by(compare_parts).expect("at least one resource")
        };
        compare_parts(&largest(a), &largest(b))
    }
}

/// Compares rational + B s sums.
///
/// The rationals are exact, so all rounding is that of the B, and a difference within it is a tie:
/// users whose commitments are in proportion to their weights tie exactly.
fn compare_parts(x: &(Rational, Twofold), y: &(Rational, Twofold)) -> Ordering {
    let exact = if x.0 == y.0 { Twofold::ZERO } else { Twofold::from_rational(&(&x.0 - &y.0)) };
    let difference = exact + (x.1 - y.1);
    if difference.abs() <= TWOFOLD_NEAR * (x.1.abs() + y.1.abs()) {
        return Ordering::Equal;
    }
    difference.high().partial_cmp(&0.0).unwrap_or(Ordering::Equal)
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
            self.compare_exactly(s, a, b)
                .then_with(|| (self.first[a.index()], a).cmp(&(self.first[b.index()], b)))
                .is_lt()
        };
        let least = near.iter().map(|&u| UserId(u)).reduce(|a, b| if before(b, a) { b } else { a });
        self.near = near;
        least
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.advance(now);
        let s = self.s();
        let width = self.holdings.width();
        let shares = self.holdings.shares(user);
        let commitments: Vec<f64> = (0..width)
            .map(|r| user.index() * width + r)
            .map(|at| self.overuse[at] + self.slope[at].high() * s)
            .collect();
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
