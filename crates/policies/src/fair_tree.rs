//! Fair Tree, as Slurm does it by default: siblings in the order of usage against shares, depth first.
//!
//! From its documentation (slurm.schedmd.com/fair_tree.html): the level fairshare of a user or account is
//! S / U, S its shares over those of all siblings, U its usage over that of its parent (infinite without
//! usage). Siblings are visited from the largest down, an account's children when it is its turn; each user
//! visited gets the next rank, and the factor is the rank over the number of users, so that all users of a
//! better account come before all of a worse one. **Ties**: sibling users who tie get the same rank; the
//! children of accounts that tie are merged into one list before they are sorted; a user who ties with an
//! account gets the rank of the best user in it.
//!
//! Accounts whose children are merged tie all the way up, V_A / E_A = V_B / E_B with V the decayed usage and
//! E the entitlement in the whole. So within any one list S / U is in the inverse order of V / E: one
//! straight line in s each (see `usage`), and nothing has to be sorted to find who is first.
//!
//! Slurm's own program looks for ties only among users, so accounts that tie are not merged there; this is
//! the documented rule. Slurm ranks every `PriorityCalcPeriod`; here ranks are those of the instant.

use std::cmp::Ordering;

use evenhand_model::{Rational, Time, UserId, to_f64};

use crate::account_usage::AccountUsage;
use crate::billing::{BILLING_OPTION, BillingRule, BillingSettings, JobBilling};
use crate::usage_order::UsageOrder;
use crate::{Job, Policy, PolicyContext, Registration, Standing};

const NAME: &str = "fair-tree";

pub(crate) const REGISTRATION: Registration = Registration::new(
    NAME,
    "accounts, then users, by decayed usage over share, level by level (Slurm's Fair Tree)",
    |context| {
        let settings: BillingSettings = context.read_settings(NAME)?;
        let billing: JobBilling = settings.or_shares(BillingRule::Largest).into();
        match context.accounts {
            Some(_) => Ok(Box::new(FairTree::new(context, &billing))),
            // One level: users in the order of usage over share.
            None => Ok(Box::new(UsageOrder::new(context, &billing, None))),
        }
    },
)
.needing_decay()
.with_settings::<BillingSettings>()
.with_options(&[&BILLING_OPTION]);

/// A bound on the rounding error of a key, relative to its parts; closer keys are compared exactly.
const NEAR: f64 = 64.0 * f64::EPSILON;

/// Users by rank, the best first.
#[derive(Default)]
pub(crate) struct Ranks {
    users: Vec<u32>,
    /// By rank: the place after its last user.
    ends: Vec<usize>,
}

impl Ranks {
    fn push(&mut self, users: &[u32]) {
        self.users.extend_from_slice(users);
        self.ends.push(self.users.len());
    }

    /// The users of each rank.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.users[begin..*end])
    }
}

/// A node with V / E, and a bound on the rounding error of that.
#[derive(Clone, Copy)]
struct Sibling {
    node: u32,
    value: f64,
    error: f64,
}

pub(crate) struct FairTree {
    tree: AccountUsage,
    /// 1 / E, by node.
    inverse: Vec<f64>,
    /// The children of the root (first) and of each account, in the order in which they were ranked last; accounts without
    /// users are left out.
    children: Vec<Vec<u32>>,
    /// The number of waiting users below each account.
    waiting_below: Vec<u32>,
    now: Time,
    s: f64,
}

impl FairTree {
    /// Creates the policy for the context's account tree, charged by `billing`.
    pub(crate) fn new(context: &PolicyContext<'_>, billing: &JobBilling) -> FairTree {
        let tree = AccountUsage::new(context, billing);
        let (users, nodes) = (tree.users(), tree.nodes());
        let mut children = vec![Vec::new(); (nodes - users) as usize + 1];
        let mut inverse = vec![0.0; nodes as usize];
        for node in (0..nodes).filter(|node| !tree.entitlement(*node).is_zero()) {
            children[tree.above(node).map_or(0, |a| (a - users) as usize + 1)].push(node);
            inverse[node as usize] = to_f64(&(Rational::ONE / tree.entitlement(node)));
        }
        FairTree { waiting_below: vec![0; (nodes - users) as usize], tree, inverse, children, now: Time::ZERO, s: 1.0 }
    }

    fn is_user(&self, node: u32) -> bool {
        node < self.tree.users()
    }

    fn has_waiting(&self, node: u32) -> bool {
        match node.checked_sub(self.tree.users()) {
            None => self.tree.is_waiting(node),
            Some(account) => self.waiting_below[account as usize] > 0,
        }
    }

    /// Returns the children of all accounts among `nodes`, as one list.
    fn children_of(&self, nodes: &[u32]) -> Vec<u32> {
        let accounts = nodes.iter().filter_map(|node| node.checked_sub(self.tree.users()));
        accounts.flat_map(|a| &self.children[a as usize + 1]).copied().collect()
    }

    #[inline]
    fn sibling(&self, node: u32) -> Sibling {
        let (value, size) = self.tree.usage.at(node, self.s);
        let inverse = self.inverse[node as usize];
        Sibling { node, value: value * inverse, error: size * inverse * NEAR }
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.compare_siblings(self.sibling(a), self.sibling(b))
    }

    fn compare_siblings(&self, a: Sibling, b: Sibling) -> Ordering {
        if (a.value - b.value).abs() > a.error + b.error {
            return a.value.total_cmp(&b.value);
        }
        let of = |node: u32| (node, self.tree.entitlement(node));
        self.tree.usage.compare_over(self.now, of(a.node), of(b.node))
    }

    /// Returns the nodes of `list` that tie for the lowest V / E among those that `may_lead`.
    fn leaders(&self, list: &[u32], may_lead: impl Fn(u32) -> bool) -> Vec<u32> {
        let lowest = |a: u32, b: u32| if self.compare(b, a).is_lt() { b } else { a };
        let Some(first) = list.iter().copied().filter(|n| may_lead(*n)).reduce(lowest) else { return Vec::new() };
        list.iter().copied().filter(|n| *n == first || self.compare(*n, first).is_eq()).collect()
    }

    /// Returns the users of the best rank in a list of siblings.
    fn best(&self, list: Vec<u32>) -> Vec<u32> {
        let mut list = list;
        let mut best = Vec::new();
        while !list.is_empty() {
            let leaders = self.leaders(&list, |_| true);
            best.extend(leaders.iter().copied().filter(|n| self.is_user(*n)));
            list = self.children_of(&leaders);
        }
        best
    }

    /// Returns the waiting users of the best rank.
    fn first_waiting(&self) -> Vec<u32> {
        let mut list = self.children[0].clone();
        loop {
            // Other users matter only if a waiting user ties with their account.
            let leaders = self.leaders(&list, |n| self.has_waiting(n));
            if leaders.is_empty() {
                return leaders;
            }
            let waiting = |n: &u32| self.is_user(*n) && self.tree.is_waiting(*n);
            let mut first: Vec<u32> = leaders.iter().copied().filter(waiting).collect();
            list = self.children_of(&leaders);
            if !first.is_empty() {
                first.extend(self.best(list).into_iter().filter(waiting));
                return first;
            }
        }
    }

    /// Returns all users by rank.
    fn ranks(&mut self) -> Ranks {
        let mut ranks = Ranks::default();
        self.rank(self.children[0].clone(), Some(0), Vec::new(), &mut ranks);
        ranks
    }

    /// Ranks a list of siblings: all children of the account at place `of`, or those of several accounts that tie. `tied` are users
    /// who tie with these accounts.
    fn rank(&mut self, list: Vec<u32>, of: Option<usize>, mut tied: Vec<u32>, ranks: &mut Ranks) {
        let list = self.sorted(list);
        if let Some(of) = of {
            self.children[of].clear();
            self.children[of].extend(list.iter().map(|sibling| sibling.node));
        }
        let mut rest = list.as_slice();
        while let Some((first, others)) = rest.split_first() {
            let ties = others.iter().take_while(|n| self.compare_siblings(**n, *first).is_eq()).count();
            let (leaders, after) = rest.split_at(1 + ties);
            rest = after;
            tied.extend(leaders.iter().map(|n| n.node).filter(|n| self.is_user(*n)));
            let accounts = leaders.iter().filter_map(|n| n.node.checked_sub(self.tree.users()));
            let mut accounts = accounts.map(|account| account as usize + 1);
            let (below, of) = match (accounts.next(), accounts.next()) {
                (None, _) => (Vec::new(), None),
                (Some(one), None) => (self.children[one].clone(), Some(one)),
                _ => (self.children_of(&leaders.iter().map(|n| n.node).collect::<Vec<u32>>()), None),
            };
            if below.is_empty() {
                ranks.push(&tied);
                tied.clear();
            } else {
                self.rank(below, of, std::mem::take(&mut tied), ranks);
            }
        }
    }

    /// Sorts by V / E: in `f64`, and then neighbours exactly. Little has changed since siblings were sorted last.
    fn sorted(&self, list: Vec<u32>) -> Vec<Sibling> {
        let mut list: Vec<Sibling> = list.into_iter().map(|node| self.sibling(node)).collect();
        list.sort_by(|a, b| a.value.total_cmp(&b.value));
        for end in 1..list.len() {
            let mut at = end;
            while at > 0 && self.compare_siblings(list[at], list[at - 1]).is_lt() {
                list.swap(at, at - 1);
                at -= 1;
            }
        }
        list
    }

    /// Returns all users by rank at `now`.
    pub(crate) fn ranks_at(&mut self, now: Time) -> Ranks {
        self.at(now);
        self.ranks()
    }

    /// Usage, to charge starts and finishes to.
    pub(crate) fn usage(&mut self) -> &mut AccountUsage {
        &mut self.tree
    }

    fn at(&mut self, now: Time) {
        self.s = self.tree.at(now);
        self.now = now;
    }
}

impl Policy for FairTree {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        let was = self.tree.waiting(user, first);
        if was == first.is_some() {
            return;
        }
        let mut at = self.tree.above(user.0);
        while let Some(account) = at {
            let below = &mut self.waiting_below[(account - self.tree.users()) as usize];
            *below = if was { *below - 1 } else { *below + 1 };
            at = self.tree.above(account);
        }
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.tree.started(now, job);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.tree.finished(now, job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        self.at(now);
        let first = self.first_waiting().into_iter().map(UserId);
        first.min_by(|a, b| self.tree.ties.compare(*a, *b))
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    /// The key is 1 - the Fair Tree factor (rank over the number of users).
    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.at(now);
        let ranks = self.ranks();
        let better: usize = ranks.iter().take_while(|rank| !rank.contains(&user.0)).map(<[u32]>::len).sum();
        let key = better as f64 / f64::from(self.tree.users());
        Standing { shares: self.tree.holdings.shares(user), commitments: Vec::new(), key }
    }
}
