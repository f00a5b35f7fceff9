//! Hierarchical stateful DRF: accounts have commitments for their overuse as users do.
//!
//! Sadok et al. (2021) has users only. Here every account is entitled to its share of the pool, and so is every user
//! within it; an account holds the sum of its users' holdings; and an account's commitments follow Eq. 6 with the
//! overuse of the account, max(o - entitlement, 0). From the root, each decision descends to the child (with a waiting
//! user) whose key max_r (o_r + c_r) / E is lowest, with E its entitlement as a share of the whole, until it reaches a
//! user. So the whole account bears the overuse of each of its users, and within an account users with less usage come
//! first. With one level it equals `sdrf`, if each user is entitled to its weight.
//!
//! **Ties** of siblings go to the one whose own choice of user had its first waiting task submitted
//! earlier in the log.
//!
//! The policy uses current holdings, and does not rescale the shares of accounts whose users are blocked on another
//! resource, unlike hierarchical DRF (Bhattacharya et al. 2013).

use std::cmp::Ordering;

use evenhand_model::{Amount, Rational, Time, UserId, to_f64};

use crate::commitment::{Branch, Commitment};
use crate::decay::{Clock, Decay};
use crate::extended_precision::ExtendedFloat;
use crate::sdrf::{Key, Sdrf};
use crate::{Job, Policy, PolicyContext, Registration, Standing, TieRule};

pub(crate) const REGISTRATION: Registration = Registration::new(
    "sdrf-tree",
    "sdrf level by level of the account tree: accounts have commitments, too",
    |context| match context.accounts {
        Some(_) => Ok(Box::new(SdrfTree::new(context))),
        None => Ok(Box::new(Sdrf::new(context, Key::default()))),
    },
)
.needing_decay();

/// A bound on the rounding error of a key, relative to its parts; closer keys are compared exactly.
const NEAR: f64 = 64.0 * f64::EPSILON;

/// Users are nodes 0 to n - 1, accounts follow, each after its parent.
struct SdrfTree {
    decay: Decay,
    clock: Clock,
    users: usize,
    width: usize,
    above: Vec<Option<usize>>,
    /// The children of the root (first) and of each account; accounts without users are left out.
    children: Vec<Vec<usize>>,
    /// E, and 1 / E, by node.
    entitlement: Vec<Rational>,
    inverse: Vec<f64>,
    /// Capacity in steps, and 1 over it, by resource.
    capacity: Vec<Rational>,
    per_step: Vec<f64>,
    /// Holdings in steps, now and at the last instant, by node and resource.
    held: Vec<u64>,
    settled: Vec<u64>,
    commitment: Vec<Commitment>,
    /// c = ō + slope s, by node and resource.
    slope: Vec<f64>,
    since: Vec<Time>,
    touched: Vec<usize>,
    ties: TieRule,
    /// The number of waiting users at or below each node.
    waiting: Vec<u32>,
    instant: Option<Time>,
    s: f64,
}

impl SdrfTree {
    fn new(context: &PolicyContext<'_>) -> SdrfTree {
        let tree = context.accounts.expect("built only where there are accounts");
        let decay = context.decay.expect("the registry checks that a decay is given");
        let (users, width) = (context.weights.len(), context.capacity.width());
        assert_eq!(tree.users(), users, "a tree of these users");
        let node = |account: Option<usize>| account.map(|a| users + a);
        let homes = (0..users).map(|u| node(tree.account_of(u)));
        let above: Vec<Option<usize>> = homes.chain(tree.accounts().iter().map(|a| node(a.parent))).collect();
        let of_users = (0..users).map(|u| tree.user_entitlement(u).clone());
        let of_accounts = (0..tree.accounts().len()).map(|a| tree.account_entitlement(a).clone());
        let entitlement: Vec<Rational> = of_users.chain(of_accounts).collect();
        let nodes = above.len();
        let mut children = vec![Vec::new(); nodes - users + 1];
        let mut inverse = vec![0.0; nodes];
        for n in (0..nodes).filter(|n| !entitlement[*n].is_zero()) {
            children[above[n].map_or(0, |a| a - users + 1)].push(n);
            inverse[n] = to_f64(&(Rational::ONE / &entitlement[n]));
        }
        SdrfTree {
            decay,
            clock: Clock::new(decay),
            users,
            width,
            above,
            children,
            entitlement,
            inverse,
            capacity: (0..width).map(|r| context.capacity.exact_steps(r).clone()).collect(),
            per_step: (0..width).map(|r| 1.0 / context.capacity.steps(r)).collect(),
            held: vec![0; nodes * width],
            settled: vec![0; nodes * width],
            commitment: vec![Commitment::default(); nodes * width],
            slope: vec![0.0; nodes * width],
            since: vec![Time::ZERO; nodes],
            touched: Vec::new(),
            ties: TieRule::new(users),
            waiting: vec![0; nodes],
            instant: None,
            s: 1.0,
        }
    }

    fn row(&self, node: usize) -> std::ops::Range<usize> {
        node * self.width..(node + 1) * self.width
    }

    /// Returns the overuse for these holdings, in steps and exactly.
    fn overuse(&self, node: usize, r: usize, held: u64) -> Rational {
        (Rational::from(held) - &self.entitlement[node] * &self.capacity[r]).max(Rational::ZERO)
    }

    /// Advances the time. Commitments do not change within an instant, so the changes of the last one are settled
    /// first.
    fn advance(&mut self, now: Time) {
        if Some(now) <= self.instant {
            return;
        }
        let mut touched = std::mem::take(&mut self.touched);
        for node in touched.drain(..) {
            self.settle(node);
        }
        self.touched = touched;
        self.instant = Some(now);
        let SdrfTree { clock, slope, .. } = self;
        self.s = clock.s(now, |factor| slope.iter_mut().for_each(|b| *b *= factor));
    }

    fn settle(&mut self, node: usize) {
        let Some(instant) = self.instant else { return };
        let row = self.row(node);
        if self.held[row.clone()] == self.settled[row.clone()] {
            return;
        }
        let kept = self.decay.over(instant - self.since[node]);
        self.since[node] = instant;
        for at in row.clone() {
            let r = at - row.start;
            let mut c = self.commitment[at].after(&kept);
            let (held, before) = (self.held[at], self.settled[at]);
            if held != before {
                let (new, old) = (self.overuse(node, r, held), self.overuse(node, r, before));
                let wide = |steps: Rational| ExtendedFloat::from_rational(&(steps / &self.capacity[r]));
                c = c.toward(wide(new.clone()), || wide(old - new));
            }
            self.commitment[at] = c;
            self.slope[at] = c.gap() / self.s;
        }
        let SdrfTree { settled, held, .. } = self;
        settled[row.clone()].copy_from_slice(&held[row]);
    }

    fn change(&mut self, now: Time, user: UserId, demand: &[Amount], with: impl Fn(u64, u64) -> u64) {
        self.advance(now);
        let mut at = Some(user.index());
        while let Some(node) = at {
            let row = self.row(node);
            self.held[row].iter_mut().zip(demand).for_each(|(held, d)| *held = with(*held, d.0));
            self.touched.push(node);
            at = self.above[node];
        }
    }

    /// Returns max_r (o_r + c_r) / E, and a bound on its rounding error.
    fn key(&self, node: usize) -> (f64, f64) {
        let (mut key, mut size) = (0.0, 0.0);
        for at in self.row(node) {
            let (share, overuse) =
                (self.held[at] as f64 * self.per_step[at - node * self.width], self.commitment[at].overuse());
            let part = self.slope[at] * self.s;
            key = f64::max(key, share + overuse + part);
            size = f64::max(size, share + overuse + part.abs());
        }
        (key * self.inverse[node], size * self.inverse[node] * NEAR)
    }

    fn is_nothing(&self, node: usize) -> bool {
        self.row(node).all(|at| self.held[at] == 0 && self.commitment[at].is_nothing())
    }

    fn exactly(&self, now: Time, node: usize) -> Branch {
        let kept = self.decay.over(now - self.since[node]);
        let branches = self.row(node).map(|at| {
            let r = at - node * self.width;
            let share = Rational::from(self.held[at]) / &self.capacity[r];
            let overuse = || self.overuse(node, r, self.settled[at]) / &self.capacity[r];
            Branch::new(share, &self.commitment[at].after(&kept), overuse)
        });
        branches.max_by(Branch::compare).unwrap_or_else(|| Branch::rational(Rational::ZERO))
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let ((x, x_error), (y, y_error)) = (self.key(a), self.key(b));
        if (x - y).abs() > x_error + y_error {
            return x.total_cmp(&y);
        }
        if self.is_nothing(a) && self.is_nothing(b) {
            return Ordering::Equal;
        }
        let now = self.instant.unwrap_or_default();
        let key = |node: usize, other: usize| self.exactly(now, node).times(&self.entitlement[other]);
        key(a, b).compare(&key(b, a))
    }

    /// Returns the first user among a list of siblings.
    fn choice(&self, siblings: &[usize]) -> Option<usize> {
        let waits = |n: &usize| self.waiting[*n] > 0;
        let less = |a: usize, b: usize| if self.compare(b, a).is_lt() { b } else { a };
        let lowest = siblings.iter().copied().filter(waits).reduce(less)?;
        let tied = siblings.iter().copied().filter(waits).filter(|n| *n == lowest || self.compare(*n, lowest).is_eq());
        let choices = tied.filter_map(|n| match n.checked_sub(self.users) {
            None => Some(n),
            Some(account) => self.choice(&self.children[account + 1]),
        });
        choices.min_by(|a, b| self.ties.compare(UserId(*a as u32), UserId(*b as u32)))
    }
}

impl Policy for SdrfTree {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.ties.set_first_pending(user, first);
        let was = self.waiting[user.index()] > 0;
        if was == first.is_some() {
            return;
        }
        let mut at = Some(user.index());
        while let Some(node) = at {
            self.waiting[node] = if was { self.waiting[node] - 1 } else { self.waiting[node] + 1 };
            at = self.above[node];
        }
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.change(now, user, demand, |held, d| held + d);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        let Job { user, demand, .. } = *job;
        self.change(now, user, demand, |held, d| held - d);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        self.advance(now);
        self.choice(&self.children[0]).map(|u| UserId(u as u32))
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    /// The key is the user's own, among its siblings.
    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.advance(now);
        let kept = self.decay.over(now - self.since[user.index()]);
        let row = self.row(user.index());
        Standing {
            shares: self.held[row.clone()].iter().zip(&self.per_step).map(|(h, k)| *h as f64 * k).collect(),
            commitments: self.commitment[row].iter().map(|c| c.after(&kept).value()).collect(),
            key: self.key(user.index()).0,
        }
    }
}
