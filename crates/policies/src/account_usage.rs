//! The decayed usage of a tree of accounts, which the policies for sites with accounts share.

use evenhand_model::{Rational, Time, UserId};

use crate::billing::JobBilling;
use crate::holdings::Holdings;
use crate::usage::DecayedUsage;
use crate::{Job, PolicyContext, TieRule};

/// Users (nodes 0 to n - 1) and the accounts above them (from n on, each after its parent).
pub(crate) struct AccountUsage {
    pub(crate) usage: DecayedUsage,
    pub(crate) holdings: Holdings,
    above: Vec<Option<u32>>,
    entitlement: Vec<Rational>,
    pub(crate) ties: TieRule,
    waiting: Vec<bool>,
}

impl AccountUsage {
    /// Creates the usage of the context's account tree, charged by `billing`.
    ///
    /// # Panics
    /// Panics if the context has no tree, or a tree of other users.
    pub(crate) fn new(context: &PolicyContext<'_>, billing: &JobBilling) -> AccountUsage {
        let tree = context.accounts.expect("built only where there are accounts");
        let users = context.weights.len();
        assert_eq!(tree.users(), users, "a tree of these users");
        let decay = context.decay.expect("the registry checks that a decay is given");
        let node = |account: Option<usize>| account.map(|a| (users + a) as u32);
        let homes = (0..users).map(|u| node(tree.account_of(u)));
        let above: Vec<Option<u32>> = homes.chain(tree.accounts().iter().map(|a| node(a.parent))).collect();
        let of_users = (0..users).map(|u| tree.user_entitlement(u));
        let of_accounts = (0..tree.accounts().len()).map(|a| tree.account_entitlement(a));
        AccountUsage {
            usage: DecayedUsage::new(billing, context.capacity, decay, above.clone()),
            holdings: Holdings::new(context.capacity, users),
            entitlement: of_users.chain(of_accounts).cloned().collect(),
            above,
            ties: TieRule::new(users),
            waiting: vec![false; users],
        }
    }

    /// Returns the number of users and accounts.
    pub(crate) fn nodes(&self) -> u32 {
        self.above.len() as u32
    }

    /// Returns the number of users.
    pub(crate) fn users(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Returns the parent account.
    #[inline]
    pub(crate) fn above(&self, node: u32) -> Option<u32> {
        self.above[node as usize]
    }

    /// Returns the entitlement of a user or an account, as a share of the whole.
    pub(crate) fn entitlement(&self, node: u32) -> &Rational {
        &self.entitlement[node as usize]
    }

    /// Returns whether a user has pending tasks.
    #[inline]
    pub(crate) fn is_waiting(&self, user: u32) -> bool {
        self.waiting[user as usize]
    }

    /// Returns whether the user waited before.
    pub(crate) fn waiting(&mut self, user: UserId, first: Option<&Job<'_>>) -> bool {
        self.ties.set_first_pending(user, first);
        std::mem::replace(&mut self.waiting[user.index()], first.is_some())
    }

    pub(crate) fn started(&mut self, now: Time, job: &Job<'_>) {
        self.usage.started(now, job);
        self.holdings.add(job.user, job.demand);
    }

    pub(crate) fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.usage.finished(now, job);
        self.holdings.remove(job.user, job.demand);
    }

    /// Advances the time and returns s.
    pub(crate) fn at(&mut self, now: Time) -> f64 {
        self.usage.advance(now);
        // Lines are evaluated at each decision, so no structure has to be notified of changes.
        while self.usage.take_changed().is_some() {}
        self.usage.s()
    }

    /// Returns the total usage at s.
    pub(crate) fn all_usage(&self, s: f64) -> f64 {
        let top = (0..self.nodes()).filter(|node| self.above(*node).is_none());
        top.map(|node| self.usage.at(node, s).0).sum()
    }
}
