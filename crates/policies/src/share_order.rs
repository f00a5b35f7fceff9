//! Users ordered by a function of their current holdings: drf and asset differ in one line.

use std::cmp::Ordering;

use evenhand_model::{Rational, Time, UserId, to_f64};

use crate::holdings::{Holdings, RelativeWeights};
use crate::kinetic::WinnerTree;
use crate::{Job, Policy, PolicyContext, Standing, TieRule};

/// Two keys closer than this (relative to the larger) are compared exactly. A key needs a few correctly rounded
/// operations, each with a relative error of at most 2^-53.
const NEAR: f64 = 32.0 * f64::EPSILON;

/// A key made of a user's current shares, before weight: the lowest goes first. Both methods compute the same function.
///
/// `shares` has one entry per resource, each at least 0.
pub trait ShareKey: Send {
    /// Returns the key with a relative error of at most 16 roundings.
    fn approximate(&self, shares: impl Iterator<Item = f64>) -> f64;

    /// Returns the key exactly; called where keys are closer than rounding.
    fn exact(&self, shares: impl Iterator<Item = Rational>) -> Rational;
}

/// The policy whose key is `K` over weight. `next` takes constant time, a start or a finish O(log users).
pub struct ShareOrder<K> {
    rule: K,
    holdings: Holdings,
    weights: RelativeWeights,
    key: Vec<f64>,
    ties: TieRule,
    waiting: Vec<bool>,
    order: WinnerTree,
}

impl<K: ShareKey> ShareOrder<K> {
    /// Builds the policy for the users and the pool of `context`.
    pub fn new(context: &PolicyContext<'_>, rule: K) -> ShareOrder<K> {
        let users = context.weights.len();
        ShareOrder {
            rule,
            holdings: Holdings::new(context.capacity, users),
            weights: RelativeWeights::new(context.weights),
            key: vec![0.0; users],
            ties: TieRule::new(users),
            waiting: vec![false; users],
            order: WinnerTree::new(users),
        }
    }

    fn update(&mut self, user: UserId) {
        let shares = self.holdings.row(user).iter().enumerate().map(|(r, &h)| self.holdings.share(r, h));
        self.key[user.index()] = self.rule.approximate(shares) * self.weights.inverse(user);
        if self.waiting[user.index()] {
            self.touch(user, true);
        }
    }

    fn touch(&mut self, user: UserId, present: bool) {
        let ShareOrder { rule, holdings, weights, key, ties, order, .. } = self;
        order.touch(user.0, present, |a, b| {
            let (x, y) = (key[a as usize], key[b as usize]);
            if (x - y).abs() > NEAR * x.max(y) {
                return x < y;
            }
            let (a, b) = (UserId(a), UserId(b));
            compare_exactly(rule, holdings, weights, a, b).then_with(|| ties.compare(a, b)).is_lt()
        });
    }
}

/// Compares two users' keys exactly, if they are equal up to rounding.
fn compare_exactly<K: ShareKey>(
    rule: &K,
    holdings: &Holdings,
    weights: &RelativeWeights,
    a: UserId,
    b: UserId,
) -> Ordering {
    let (x, y) = (holdings.row(a), holdings.row(b));
    let equal_weights = weights.equal(a, b);
    // A shortcut for the most frequent ties: both hold nothing, or the same amounts.
    if x.iter().chain(y).all(|&h| h == 0) || (equal_weights && x == y) {
        return Ordering::Equal;
    }
    // With one resource the amounts decide without fractions.
    if equal_weights && x.len() == 1 {
        return x[0].cmp(&y[0]);
    }
    let key = |u: UserId, held: &[u64]| {
        let key = rule.exact(held.iter().enumerate().map(|(r, &h)| holdings.exact_share(r, h)));
        if equal_weights { key } else { key / weights.exact_over_mean(u) }
    };
    key(a, x).cmp(&key(b, y))
}

impl<K: ShareKey> Policy for ShareOrder<K> {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.waiting[user.index()] = first.is_some();
        self.ties.set_first_pending(user, first);
        self.touch(user, first.is_some());
    }

    fn started(&mut self, _now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.holdings.add(user, demand);
        self.update(user);
    }

    fn finished(&mut self, _now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.holdings.remove(user, demand);
        self.update(user);
    }

    fn next(&mut self, _now: Time) -> Option<UserId> {
        self.order.winner().map(UserId)
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    fn standing(&mut self, _now: Time, user: UserId) -> Standing {
        let exact =
            self.rule.exact(self.holdings.row(user).iter().enumerate().map(|(r, &h)| self.holdings.exact_share(r, h)));
        Standing {
            shares: self.holdings.shares(user),
            commitments: Vec::new(),
            key: to_f64(&(exact / self.weights.exact_over_mean(user))),
        }
    }
}
