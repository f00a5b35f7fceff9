//! Classic fairshare, as Slurm with `PriorityFlags=NO_FAIR_TREE`: decayed usage against shares.
//!
//! From its documentation (slurm.schedmd.com/classic_fair_share.html): the factor is
//! F = 2^(-(U_E / S) / d), with S the normalised share (the product of shares over siblings' shares on the
//! way down), d a dampening factor, and U_E the effective usage. For accounts and users directly under the
//! root U_E is the usage itself, as a part of all usage; below that
//!
//! U_E = U + (U_E of the parent - U) * shares / siblings' shares
//!
//! so that users who share an account with heavy users bear a part of their usage. Usage halves every
//! `PriorityDecayHalfLife`. Users with larger F come first. The key here is U_E / S, which does not depend on d. With
//! S = S_parent f it is a sum along the path from the root:
//!
//! U_E / S = U_top / S_top + sum over those below of U (1 - f) / S
//!
//! and every usage is a straight line in s (see `usage`), so every key is one.

use evenhand_model::{Rational, Time, UserId, to_f64};

use crate::account_usage::AccountUsage;
use crate::billing::{BILLING_OPTION, BillingRule, BillingSettings, JobBilling};
use crate::commitment::Branch;
use crate::usage_order::UsageOrder;
use crate::user_set::UserSet;
use crate::{Job, Policy, PolicyContext, Registration, Standing};

const NAME: &str = "half-life";

pub(crate) const REGISTRATION: Registration = Registration::new(
    NAME,
    "lowest decayed usage over share, with accounts' effective usage (Slurm's classic fairshare)",
    |context| {
        let settings: BillingSettings = context.read_settings(NAME)?;
        let billing: JobBilling = settings.or_shares(BillingRule::Largest).into();
        match context.accounts {
            Some(_) => Ok(Box::new(ClassicFairshare::new(context, &billing))),
            // Without accounts effective usage equals usage.
            None => Ok(Box::new(UsageOrder::new(context, &billing, None))),
        }
    },
)
.needing_decay()
.with_settings::<BillingSettings>()
.with_options(&[&BILLING_OPTION]);

/// A bound on the rounding error of a key, relative to its parts; closer keys are compared exactly.
const NEAR: f64 = 64.0 * f64::EPSILON;

pub(crate) struct ClassicFairshare {
    tree: AccountUsage,
    /// The factor of usage in the sum, by node.
    factor: Vec<f64>,
    exact_factor: Vec<Rational>,
    /// The users with pending jobs.
    present: UserSet,
    /// The sums along the path to each account, with the size of their parts.
    sums: Vec<(f64, f64)>,
    /// Lower bounds of the keys of `present`.
    bounds: Vec<f64>,
    /// s and the total usage at the instant of the last `ratios_at`.
    s: f64,
    all: f64,
}

impl ClassicFairshare {
    /// Creates the policy for the context's account tree, charged by `billing`.
    pub(crate) fn new(context: &PolicyContext<'_>, billing: &JobBilling) -> ClassicFairshare {
        let tree = AccountUsage::new(context, billing);
        let exact_factor: Vec<Rational> = (0..tree.nodes())
            .map(|node| {
                let entitled = tree.entitlement(node);
                match tree.above(node) {
                    // An account without users is never charged.
                    _ if entitled.is_zero() => Rational::ZERO,
                    None => Rational::ONE / entitled,
                    Some(parent) => (Rational::ONE - entitled / tree.entitlement(parent)) / entitled,
                }
            })
            .collect();
        let users = context.weights.len();
        ClassicFairshare {
            factor: exact_factor.iter().map(to_f64).collect(),
            exact_factor,
            present: UserSet::new(users),
            sums: vec![(0.0, 0.0); tree.nodes() as usize - users],
            bounds: Vec::new(),
            s: 1.0,
            all: 0.0,
            tree,
        }
    }

    /// Returns U_E / S of a user or account whose parent's sum is known, with the size of its parts.
    #[inline]
    fn sum(&self, node: u32, s: f64) -> (f64, f64) {
        let (value, size) = self.tree.usage.at(node, s);
        let factor = self.factor[node as usize];
        let (above, size_above) = match self.tree.above(node) {
            Some(account) => self.sums[account as usize - self.present.user_count()],
            None => (0.0, 0.0),
        };
        (above + value * factor, size_above + size * factor)
    }

    fn sum_accounts(&mut self, s: f64) {
        // Parents come before their children.
        for account in 0..self.sums.len() {
            self.sums[account] = self.sum((self.present.user_count() + account) as u32, s);
        }
    }

    /// Prepares [`ratio`](ClassicFairshare::ratio) for `now`.
    pub(crate) fn ratios_at(&mut self, now: Time) {
        self.s = self.tree.at(now);
        self.sum_accounts(self.s);
        self.all = self.tree.all_usage(self.s);
    }

    /// Returns U_E / S with usage as a fraction of total usage, as of the last `ratios_at`. The factor is 2^-(U_E / S).
    pub(crate) fn ratio(&self, user: UserId) -> f64 {
        if self.all > 0.0 { self.sum(user.0, self.s).0.max(0.0) / self.all } else { 0.0 }
    }

    /// Returns the usage, to charge starts and finishes.
    pub(crate) fn usage(&mut self) -> &mut AccountUsage {
        &mut self.tree
    }

    fn exactly(&self, now: Time, user: UserId) -> Branch {
        let mut sum = Branch::rational(Rational::ZERO);
        let mut at = Some(user.0);
        while let Some(node) = at {
            if !self.tree.usage.is_nothing(node) {
                sum = sum.plus(self.tree.usage.exactly(now, node).times(&self.exact_factor[node as usize]));
            }
            at = self.tree.above(node);
        }
        sum
    }

    fn before(&self, now: Time, a: UserId, b: UserId) -> bool {
        // A shortcut for the most frequent ties: new users of one account.
        let nothing = |u: UserId| self.tree.usage.is_nothing(u.0);
        let order = match nothing(a) && nothing(b) && self.tree.above(a.0) == self.tree.above(b.0) {
            true => std::cmp::Ordering::Equal,
            false => self.exactly(now, a).compare(&self.exactly(now, b)),
        };
        order.then_with(|| self.tree.ties.compare(a, b)).is_lt()
    }
}

impl Policy for ClassicFairshare {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.tree.waiting(user, first);
        self.present.set(user, first.is_some());
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.tree.started(now, job);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.tree.finished(now, job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        let s = self.tree.at(now);
        self.sum_accounts(s);
        let mut lowest = f64::INFINITY;
        let mut bounds = std::mem::take(&mut self.bounds);
        bounds.clear();
        bounds.extend(self.present.users().iter().map(|user| {
            let (value, size) = self.sum(user.0, s);
            lowest = lowest.min(value + size * NEAR);
            value - size * NEAR
        }));
        let near =
            self.present.users().iter().zip(&bounds).filter(|(_, bound)| **bound <= lowest).map(|(user, _)| *user);
        let first = near.reduce(|a, b| if self.before(now, b, a) { b } else { a });
        self.bounds = bounds;
        first
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    /// The key is U_E / S with usage as a fraction of total usage; the factor is 2^-key.
    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.ratios_at(now);
        Standing { shares: self.tree.holdings.shares(user), commitments: Vec::new(), key: self.ratio(user) }
    }
}
