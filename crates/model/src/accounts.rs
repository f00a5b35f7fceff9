//! A tree of accounts with users as leaves, the entitlements that it gives, and priorities of associations.

use std::collections::HashMap;

use thiserror::Error;

use crate::{Rational, Weights};

/// One account (group, project).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// The index of the parent account; `None` for an account directly under the root.
    pub parent: Option<usize>,
    /// The shares among its siblings (the accounts and users of the same parent), greater than 0.
    pub shares: Rational,
}

/// An account as a site lists it: it may have no shares of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAccount {
    /// The name.
    pub name: String,
    /// The index of the parent account; `None` for an account directly under the root.
    pub parent: Option<usize>,
    /// The shares among its siblings, greater than 0; `None`: its accounts and users are children of its parent, as with
    /// Slurm's `Fairshare=parent`.
    pub shares: Option<Rational>,
}

impl ListedAccount {
    /// Returns the accounts that have shares, each after its parent, and for each listed one where its users are children:
    /// the nearest account upwards with shares, itself included, as an index of those returned (`None`: the root).
    ///
    /// ```
    /// use evenhand_model::{ListedAccount, Rational};
    /// let account = |name: &str, parent, shares| ListedAccount { name: name.into(), parent, shares };
    /// let listed = [account("physics", None, Some(Rational::ONE)), account("optics", Some(0), None)];
    /// let (accounts, places) = ListedAccount::with_shares(&listed);
    /// assert_eq!((accounts.len(), places), (1, vec![Some(0), Some(0)]));
    /// ```
    ///
    /// # Panics
    /// Panics if an account is listed before its parent.
    pub fn with_shares(listed: &[ListedAccount]) -> (Vec<Account>, Vec<Option<usize>>) {
        let mut accounts = Vec::new();
        let mut places: Vec<Option<usize>> = Vec::with_capacity(listed.len());
        for one in listed {
            let parent = one.parent.and_then(|parent| places[parent]);
            places.push(one.shares.as_ref().map_or(parent, |shares| {
                accounts.push(Account { name: one.name.clone(), parent, shares: shares.clone() });
                Some(accounts.len() - 1)
            }));
        }
        (accounts, places)
    }
}

/// Users of one account: how many, and their shares together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The number of users.
    pub users: u32,
    /// The sum of their shares among the children of the account.
    pub shares: Rational,
}

impl Members {
    /// No users.
    pub const NONE: Members = Members { users: 0, shares: Rational::ZERO };

    /// Adds users with these shares together.
    pub fn add(&mut self, users: u32, shares: &Rational) {
        self.users = self.users.saturating_add(users);
        self.shares += shares;
    }
}

/// A tree of accounts with users as leaves.
///
/// The entitlement of a child is its fraction of the shares of all children of its parent, times the entitlement of its
/// parent; the root is entitled to 1. An account without users, at any depth, is entitled to nothing, and its siblings
/// share as if it did not exist.
///
/// ```
/// use evenhand_model::{Account, AccountTree, Rational, to_f64};
/// let account = |name: &str, shares: u8| Account { name: name.into(), parent: None, shares: shares.into() };
/// let tree = AccountTree::new(
///     vec![account("physics", 3), account("biology", 1)],
///     vec![Some(0), Some(0), Some(1)],
///     vec![Rational::ONE; 3],
/// )
/// .unwrap();
/// let entitled: Vec<f64> = (0..3).map(|user| to_f64(tree.user_entitlement(user))).collect();
/// assert_eq!(entitled, [0.375, 0.375, 0.25]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountTree {
    accounts: Vec<Account>,
    homes: Vec<Option<usize>>,
    shares: Vec<Rational>,
    account_entitlement: Vec<Rational>,
    user_entitlement: Vec<Rational>,
    priorities: Priorities,
    /// Of the root, then of each account: the users of the site who are none of the tree. Empty: it has no others.
    others: Vec<Members>,
}

/// What associations add to the priorities of their jobs (`Priority` of Slurm's associations).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Priorities {
    of_users: Vec<u32>,
    highest: u32,
}

/// The priority of an association: of a user in an account, or of all users of an account that have no own one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationPriority {
    /// The account; `root` for users of no account.
    pub account: String,
    /// The user; `None`: every user of the account that is not listed.
    pub user: Option<String>,
    /// The only partition in which it is the user's association; its priority counts as one of all, but for no job.
    pub partition: Option<String>,
    /// The priority.
    pub priority: u32,
}

impl AssociationPriority {
    /// Returns the priorities of users, each in an account (`None`: the root), and the highest of all.
    pub fn of_users<'a>(
        all: &[AssociationPriority],
        users: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> (Vec<u32>, u32) {
        let of_jobs = all.iter().filter(|one| one.partition.is_none());
        let known: HashMap<(&str, Option<&str>), u32> =
            of_jobs.map(|one| ((one.account.as_str(), one.user.as_deref()), one.priority)).collect();
        let of_user = |(user, account): (&'a str, Option<&'a str>)| {
            let account = account.unwrap_or("root");
            let found = known.get(&(account, Some(user))).or_else(|| known.get(&(account, None)));
            found.copied().unwrap_or(0)
        };
        let highest = all.iter().map(|one| one.priority).max().unwrap_or(0);
        (users.into_iter().map(of_user).collect(), highest)
    }
}

/// An error in the definition of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccountsError {
    /// An account is listed before its parent, as in every cycle.
    #[error("account {name:?} is listed before its parent account")]
    BeforeParent {
        /// The account.
        name: String,
    },
    /// Shares are 0 or less, which would divide by zero.
    #[error("the shares of {name:?} are 0; they must be greater than 0")]
    ZeroShares {
        /// The account, or the index of the user.
        name: String,
    },
    /// A user belongs to an account that is not in the list.
    #[error("user {user} belongs to an account that does not exist")]
    UnknownAccount {
        /// The user's index.
        user: usize,
    },
}

impl AccountTree {
    /// Creates a tree of `accounts`, each listed after its parent. `homes` and `shares` have one entry per user: the
    /// account the user belongs to (`None`: directly under the root), and the user's shares among the children of that
    /// account.
    ///
    /// Takes time proportional to the number of accounts and users.
    ///
    /// # Errors
    /// Returns an error if an account is listed before its parent, if shares are not greater than 0, or if the account
    /// of a user does not exist.
    ///
    /// # Panics
    /// Panics if `homes` and `shares` differ in length.
    pub fn new(
        accounts: Vec<Account>,
        homes: Vec<Option<usize>>,
        shares: Vec<Rational>,
    ) -> Result<AccountTree, AccountsError> {
        assert_eq!(homes.len(), shares.len(), "one account and one number of shares per user");
        if let Some((_, a)) = accounts.iter().enumerate().find(|(i, a)| a.parent.is_some_and(|p| p >= *i)) {
            return Err(AccountsError::BeforeParent { name: a.name.clone() });
        }
        let named = accounts.iter().map(|a| (&a.shares, a.name.clone()));
        let numbered = shares.iter().enumerate().map(|(u, s)| (s, u.to_string()));
        if let Some((_, name)) = named.chain(numbered).find(|(s, _)| **s <= Rational::ZERO) {
            return Err(AccountsError::ZeroShares { name });
        }
        if let Some(user) = homes.iter().position(|h| h.is_some_and(|h| h >= accounts.len())) {
            return Err(AccountsError::UnknownAccount { user });
        }
        let mut tree = AccountTree {
            accounts,
            homes,
            shares,
            account_entitlement: Vec::new(),
            user_entitlement: Vec::new(),
            priorities: Priorities::default(),
            others: Vec::new(),
        };
        tree.entitle();
        Ok(tree)
    }

    /// Adds users whom the site has beside those of the tree, each time some directly in an account, or (`None`) under the root.
    /// They have no jobs, so no entitlement changes. But Slurm's fair-share factors depend on how many there are, and on
    /// their shares.
    ///
    /// # Panics
    /// Panics if an account does not exist.
    #[must_use]
    pub fn with_other_users(mut self, others: impl IntoIterator<Item = (Option<usize>, Members)>) -> AccountTree {
        for (account, members) in others.into_iter().filter(|(_, members)| members.users > 0) {
            self.others.resize(self.accounts.len() + 1, Members::NONE);
            self.others[place(account)].add(members.users, &members.shares);
        }
        self
    }

    /// Returns the tree of all users of the site, with one more user in each place where there are others, who stands for them
    /// with their shares together; and how many users each user of that tree is. The tree's own users keep their numbers.
    ///
    /// Where there are others, an account without any user gets one who counts as none: in Slurm its shares count.
    ///
    /// ```
    /// # use evenhand_model::{AccountTree, Members, Rational, to_f64};
    /// let tree = AccountTree::new(vec![], vec![None; 2], vec![Rational::ONE; 2]).unwrap();
    /// let others = Members { users: 3, shares: 6u8.into() };
    /// let (all, users) = tree.with_other_users([(None, others)]).of_all_users();
    /// assert_eq!((to_f64(all.user_entitlement(0)), users), (0.125, vec![1, 1, 3]));
    /// ```
    pub fn of_all_users(&self) -> (AccountTree, Vec<u32>) {
        let (mut all, mut counts) = (self.clone(), vec![1; self.users()]);
        if self.others.is_empty() {
            return (all, counts);
        }
        let mut is_used = vec![false; self.accounts.len() + 1];
        self.homes.iter().for_each(|home| is_used[place(*home)] = true);
        for (at, account) in self.accounts.iter().enumerate().rev() {
            is_used[at + 1] |= self.others[at + 1].users > 0;
            is_used[place(account.parent)] |= is_used[at + 1];
        }
        for (at, others) in self.others.iter().enumerate().filter(|(at, others)| others.users > 0 || !is_used[*at]) {
            all.homes.push(at.checked_sub(1));
            all.shares.push(if others.shares > Rational::ZERO { others.shares.clone() } else { Rational::ONE });
            counts.push(others.users);
        }
        all.others.clear();
        all.entitle();
        (all, counts)
    }

    /// Sets the priority of each user's association, and the highest of all associations, which may be that of an account
    /// or of somebody who is no user of the tree. Without it all are 0.
    ///
    /// # Panics
    /// Panics if there is not one priority per user.
    #[must_use]
    pub fn with_priorities(self, of_users: Vec<u32>, highest: u32) -> AccountTree {
        assert_eq!(of_users.len(), self.users(), "one priority per user");
        let highest = of_users.iter().copied().fold(highest, u32::max);
        AccountTree { priorities: Priorities { of_users, highest }, ..self }
    }

    fn entitle(&mut self) {
        let mut sums = vec![Rational::ZERO; self.accounts.len() + 1];
        for (home, shares) in self.homes.iter().zip(&self.shares) {
            sums[place(*home)] += shares;
        }
        for (a, account) in self.accounts.iter().enumerate().rev() {
            if !sums[a + 1].is_zero() {
                sums[place(account.parent)] += &account.shares;
            }
        }
        let mut entitled = vec![Rational::ONE];
        for (a, account) in self.accounts.iter().enumerate() {
            let parent = place(account.parent);
            let part = if sums[a + 1].is_zero() { Rational::ZERO } else { &account.shares / &sums[parent] };
            entitled.push(part * &entitled[parent]);
        }
        let of_user = |(home, shares): (&Option<usize>, &Rational)| {
            let home = place(*home);
            shares / &sums[home] * &entitled[home]
        };
        self.user_entitlement = self.homes.iter().zip(&self.shares).map(of_user).collect();
        self.account_entitlement = entitled.split_off(1);
    }

    /// Returns the accounts, each after its parent.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Returns the number of users.
    pub fn users(&self) -> usize {
        self.homes.len()
    }

    /// Returns the account a user belongs to; `None`: directly under the root.
    ///
    /// # Panics
    /// Panics if the user does not exist, as do all methods that take a user.
    pub fn account_of(&self, user: usize) -> Option<usize> {
        self.homes[user]
    }

    /// Returns a user's shares among the children of its account.
    pub fn shares(&self, user: usize) -> &Rational {
        &self.shares[user]
    }

    /// Returns the priority of a user's association.
    pub fn priority(&self, user: usize) -> u32 {
        assert!(user < self.users(), "user {user} does not exist");
        self.priorities.of_users.get(user).copied().unwrap_or(0)
    }

    /// Returns the highest priority of any association.
    pub fn highest_priority(&self) -> u32 {
        self.priorities.highest
    }

    /// Returns a user's fraction of the whole. The entitlements of all users sum to 1.
    pub fn user_entitlement(&self, user: usize) -> &Rational {
        &self.user_entitlement[user]
    }

    /// Returns an account's fraction of the whole: the sum of the entitlements of the users below it.
    pub fn account_entitlement(&self, account: usize) -> &Rational {
        &self.account_entitlement[account]
    }

    /// Returns the users' entitlements as weights, for code that knows no tree.
    ///
    /// ```
    /// # use evenhand_model::{AccountTree, Rational};
    /// let tree = AccountTree::new(vec![], vec![None; 2], vec![1u8.into(), 3u8.into()]).unwrap();
    /// assert_eq!(tree.weights().entitlement(1), *tree.user_entitlement(1));
    /// ```
    pub fn weights(&self) -> Weights {
        Weights::of_positive(self.user_entitlement.clone())
    }
}

/// A place among the root, at 0, and the accounts behind it.
fn place(account: Option<usize>) -> usize {
    account.map_or(0, |a| a + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(parent: Option<usize>, shares: u8) -> Account {
        Account { name: format!("{parent:?}/{shares}"), parent, shares: shares.into() }
    }

    #[test]
    fn invalid_trees_are_rejected() {
        let tree = |accounts, homes: Vec<Option<usize>>, shares: u8| {
            let n = homes.len();
            AccountTree::new(accounts, homes, vec![shares.into(); n])
        };
        assert!(matches!(tree(vec![account(Some(0), 1)], vec![], 1), Err(AccountsError::BeforeParent { .. })));
        assert!(matches!(tree(vec![account(None, 0)], vec![], 1), Err(AccountsError::ZeroShares { .. })));
        assert!(matches!(tree(vec![], vec![None], 0), Err(AccountsError::ZeroShares { .. })));
        assert!(matches!(
            tree(vec![account(None, 1)], vec![Some(1)], 1),
            Err(AccountsError::UnknownAccount { user: 0 })
        ));
    }

    #[test]
    fn the_highest_priority_is_of_all_associations() {
        let tree = AccountTree::new(vec![], vec![None; 2], vec![Rational::ONE; 2]).unwrap();
        assert_eq!((tree.priority(1), tree.highest_priority()), (0, 0));
        let tree = tree.with_priorities(vec![0, 7], 3);
        assert_eq!((tree.priority(0), tree.priority(1), tree.highest_priority()), (0, 7, 7));
        assert_eq!(tree.with_priorities(vec![0, 7], 70).highest_priority(), 70);
    }

    #[test]
    fn a_user_has_the_priority_of_its_account_where_it_has_no_own() {
        let one = |account: &str, user: Option<&str>, partition: Option<&str>, priority| AssociationPriority {
            account: account.into(),
            user: user.map(String::from),
            partition: partition.map(String::from),
            priority,
        };
        let all = [
            one("art", None, None, 5),
            one("art", Some("ann"), None, 0),
            one("lab", Some("ann"), None, 7),
            one("lab", Some("ann"), Some("gpu"), 90),
            one("root", Some("zoe"), None, 3),
        ];
        let users =
            [("ann", Some("art")), ("bob", Some("art")), ("ann", Some("lab")), ("bob", Some("lab")), ("zoe", None)];
        assert_eq!(AssociationPriority::of_users(&all, users), (vec![0, 5, 7, 0, 3], 90));
    }

    /// The definition, from the user up: shares over the shares of all siblings that have users.
    fn by_definition(tree: &AccountTree, user: usize) -> Rational {
        let has_user = |a: usize| {
            (0..tree.users()).any(|u| {
                let mut at = tree.account_of(u);
                while let Some(here) = at.filter(|h| *h != a) {
                    at = tree.accounts()[here].parent;
                }
                at.is_some()
            })
        };
        let siblings = |parent: Option<usize>| {
            let accounts = tree.accounts().iter().enumerate().filter(|(a, x)| x.parent == parent && has_user(*a));
            let users = (0..tree.users()).filter(|u| tree.account_of(*u) == parent).map(|u| tree.shares(u));
            accounts.map(|(_, x)| &x.shares).chain(users).fold(Rational::ZERO, |sum, s| sum + s)
        };
        let mut at = tree.account_of(user);
        let mut entitled = tree.shares(user) / siblings(at);
        while let Some(a) = at {
            let parent = tree.accounts()[a].parent;
            entitled *= &tree.accounts()[a].shares / siblings(parent);
            at = parent;
        }
        entitled
    }

    proptest! {
        #[test]
        fn entitlements_match_the_definition(
            parents in prop::collection::vec((0usize..4, 1u8..5), 0..6),
            users in prop::collection::vec((0usize..7, 1u8..5), 1..7),
        ) {
            let above = |i: usize, p: usize| (p > 0 && i > 0).then(|| (p - 1) % i);
            let accounts: Vec<Account> = parents.iter().enumerate().map(|(i, (p, s))| account(above(i, *p), *s)).collect();
            let homes = users.iter().map(|(h, _)| above(accounts.len(), *h)).collect();
            let tree = AccountTree::new(accounts, homes, users.iter().map(|(_, s)| (*s).into()).collect()).unwrap();
            let mut sum = Rational::ZERO;
            for user in 0..users.len() {
                prop_assert_eq!(tree.user_entitlement(user), &by_definition(&tree, user));
                sum += tree.user_entitlement(user);
            }
            prop_assert_eq!(sum, Rational::ONE);
        }
    }
}
