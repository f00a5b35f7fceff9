//! Reference model of fair-tree, half-life and multifactor with accounts: the rules of Slurm's documents, step by step, in
//! exact rationals.

#![allow(dead_code, clippy::unwrap_used)]

use evenhand_model::{Account, AccountTree, Rational, to_f64};

pub(crate) const HALF_LIFE_S: u64 = 8;
pub(crate) const CAPACITY: u64 = 100_000;

/// Usage of users by hand, and the documents' arithmetic on it.
pub(crate) struct SlurmDocuments {
    pub(crate) tree: AccountTree,
    pub(crate) usage: Vec<Rational>,
}

/// A user or an account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Node {
    User(usize),
    Account(usize),
}

impl SlurmDocuments {
    pub(crate) fn parent(&self, node: Node) -> Option<usize> {
        match node {
            Node::User(u) => self.tree.account_of(u),
            Node::Account(a) => self.tree.accounts()[a].parent,
        }
    }

    pub(crate) fn raw_shares(&self, node: Node) -> &Rational {
        match node {
            Node::User(u) => self.tree.shares(u),
            Node::Account(a) => &self.tree.accounts()[a].shares,
        }
    }

    /// Children in which there are users.
    pub(crate) fn children(&self, parent: Option<usize>) -> Vec<Node> {
        let accounts = (0..self.tree.accounts().len()).map(Node::Account);
        let users = (0..self.tree.users()).map(Node::User);
        let all = users.chain(accounts).filter(|n| self.parent(*n) == parent);
        all.filter(|n| matches!(n, Node::User(_)) || !self.users_below(*n).is_empty()).collect()
    }

    pub(crate) fn users_below(&self, node: Node) -> Vec<usize> {
        match node {
            Node::User(u) => vec![u],
            Node::Account(a) => (0..self.tree.users())
                .filter(|u| {
                    let mut at = self.tree.account_of(*u);
                    while at.is_some_and(|here| here != a) {
                        at = self.tree.accounts()[at.unwrap()].parent;
                    }
                    at.is_some()
                })
                .collect(),
        }
    }

    pub(crate) fn usage(&self, node: Node) -> Rational {
        self.users_below(node).into_iter().fold(Rational::ZERO, |sum, u| sum + &self.usage[u])
    }

    pub(crate) fn total(&self) -> Rational {
        self.usage.iter().fold(Rational::ZERO, |sum, u| sum + u)
    }

    /// Shares over those of all siblings.
    pub(crate) fn part(&self, node: Node) -> Rational {
        let siblings = self.children(self.parent(node));
        let sum = siblings.iter().fold(Rational::ZERO, |sum, n| sum + self.raw_shares(*n));
        self.raw_shares(node) / sum
    }

    /// LF = S / U; `None`: infinite.
    pub(crate) fn level_fairshare(&self, node: Node) -> Option<Rational> {
        let of_parent = match self.parent(node) {
            Some(a) => self.usage(Node::Account(a)),
            None => self.total(),
        };
        let usage = self.usage(node);
        (!usage.is_zero()).then(|| self.part(node) * of_parent / usage)
    }

    /// Ranks as in the document, counted down from the number of users; the best first.
    pub(crate) fn ranks(&self) -> Vec<usize> {
        let mut rank = vec![0; self.tree.users()];
        let mut remaining = self.tree.users();
        self.visit(self.children(None), None, &mut remaining, &mut rank);
        rank
    }

    /// Sorts the children, takes those who tie, ranks its users, and descends into its accounts merged.
    /// `inherited`: the rank that users who tie with the account above have given to its best.
    pub(crate) fn visit(
        &self,
        mut list: Vec<Node>,
        mut inherited: Option<usize>,
        remaining: &mut usize,
        rank: &mut [usize],
    ) {
        while !list.is_empty() {
            // No usage comes first.
            let key = |n: &Node| self.level_fairshare(*n).map(|lf| Rational::ONE / lf).unwrap_or(Rational::ZERO);
            let best = list.iter().map(key).min().unwrap();
            let (tied, rest): (Vec<Node>, Vec<Node>) = list.into_iter().partition(|n| key(n) == best);
            list = rest;
            let this = inherited.take().unwrap_or(*remaining);
            let (mut users, mut below) = (0, Vec::new());
            for node in tied {
                match node {
                    Node::User(u) => {
                        rank[u] = this;
                        users += 1;
                    }
                    Node::Account(a) => below.extend(self.children(Some(a))),
                }
            }
            *remaining -= users;
            if !below.is_empty() {
                self.visit(below, Some(this), remaining, rank);
            }
        }
    }

    /// U_E as a part of all usage.
    pub(crate) fn effective_usage(&self, node: Node) -> Rational {
        let usage = self.usage(node) / self.total();
        match self.parent(node) {
            None => usage,
            Some(a) => &usage + (self.effective_usage(Node::Account(a)) - &usage) * self.part(node),
        }
    }

    /// r = U / S.
    pub(crate) fn usage_ratio(&self, node: Node) -> Rational {
        let mut share = self.part(node);
        let mut at = self.parent(node);
        while let Some(account) = at {
            share *= self.part(Node::Account(account));
            at = self.parent(Node::Account(account));
        }
        self.usage(node) / self.total() / share
    }

    /// R as the page on the depth-oblivious factor has it; F = 2^-that.
    pub(crate) fn depth_oblivious(&self, node: Node) -> f64 {
        if self.usage(node).is_zero() {
            return 0.0;
        }
        let Some(account) = self.parent(node) else { return to_f64(&self.usage_ratio(node)) };
        // All siblings: their usage over all, and their shares, which are the account's.
        let siblings = self.children(Some(account));
        let used = siblings.iter().fold(Rational::ZERO, |sum, n| sum + self.usage(*n)) / self.total();
        let entitled = self.tree.account_entitlement(account);
        let local = to_f64(&(self.usage_ratio(node) / (used / entitled)));
        let above = self.depth_oblivious(Node::Account(account));
        let k = if above.ln() * local.ln() >= 0.0 { 1.0 } else { 1.0 / (1.0 + (5.0 * above.ln()).powi(2)) };
        above * local.powf(k)
    }

    /// U_E / S; F = 2^-that.
    pub(crate) fn classic(&self, user: usize) -> Rational {
        if self.total().is_zero() {
            return Rational::ZERO;
        }
        self.effective_usage(Node::User(user)) / self.tree.user_entitlement(user)
    }
}

pub(crate) fn tree(accounts: &[(&str, Option<usize>, u64)], users: &[(Option<usize>, u64)]) -> AccountTree {
    let account = |(name, parent, shares): &(&str, Option<usize>, u64)| Account {
        name: name.to_string(),
        parent: *parent,
        shares: Rational::from(*shares),
    };
    let homes = users.iter().map(|(home, _)| *home).collect();
    let shares = users.iter().map(|(_, shares)| Rational::from(*shares)).collect();
    AccountTree::new(accounts.iter().map(account).collect(), homes, shares).unwrap()
}
