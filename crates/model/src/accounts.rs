//! Accounts within accounts, and which of them a user belongs to.

use thiserror::Error;

use crate::{Rational, Weights};

/// One account (group, project).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// What it is called.
    pub name: String,
    /// The account it is part of, by its place in the list; `None` for one directly under the root.
    pub parent: Option<usize>,
    /// Its shares among its siblings (the accounts and users of the same parent), greater than 0.
    pub shares: Rational,
}

/// A tree of accounts with users as leaves: what a child is entitled to is its part of the shares of
/// all children of its parent, times what its parent is entitled to.
///
/// An account in which there is no user, however deep, has no claim: its siblings share as if it were
/// not there.
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
}

/// Why accounts are refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccountsError {
    /// An account is listed before the one it is part of, as in every circle.
    #[error("account {name:?} comes before the account it is part of")]
    Order {
        /// The account.
        name: String,
    },
    /// Shares of zero would divide by zero.
    #[error("the shares of {name:?} are 0; they must be greater than 0")]
    Shares {
        /// The account, or the number of the user.
        name: String,
    },
    /// A user belongs to an account that is not in the list.
    #[error("user {user} belongs to an account that is not there")]
    Home {
        /// The user's number.
        user: usize,
    },
}

impl AccountTree {
    /// A tree of `accounts`, each after its parent; for each user the account it belongs to (`None`:
    /// directly under the root) and its shares among that account's children.
    ///
    /// # Errors
    /// If an account comes before its parent, shares are not above 0, or a user's account is not there.
    ///
    /// # Panics
    /// If there is not one home and one number of shares a user.
    pub fn new(
        accounts: Vec<Account>,
        homes: Vec<Option<usize>>,
        shares: Vec<Rational>,
    ) -> Result<AccountTree, AccountsError> {
        assert_eq!(homes.len(), shares.len(), "one home and one number of shares a user");
        if let Some((_, a)) = accounts.iter().enumerate().find(|(i, a)| a.parent.is_some_and(|p| p >= *i)) {
            return Err(AccountsError::Order { name: a.name.clone() });
        }
        let named = accounts.iter().map(|a| (&a.shares, a.name.clone()));
        let numbered = shares.iter().enumerate().map(|(u, s)| (s, u.to_string()));
        if let Some((_, name)) = named.chain(numbered).find(|(s, _)| **s <= Rational::ZERO) {
            return Err(AccountsError::Shares { name });
        }
        if let Some(user) = homes.iter().position(|h| h.is_some_and(|h| h >= accounts.len())) {
            return Err(AccountsError::Home { user });
        }
        let mut tree =
            AccountTree { accounts, homes, shares, account_entitlement: Vec::new(), user_entitlement: Vec::new() };
        tree.entitle();
        Ok(tree)
    }

    fn entitle(&mut self) {
        // Place 0 is the root, account a has place a + 1.
        let place = |account: Option<usize>| account.map_or(0, |a| a + 1);
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

    /// The accounts, each after its parent.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// How many users it places.
    pub fn users(&self) -> usize {
        self.homes.len()
    }

    /// The account a user belongs to; `None`: directly under the root.
    pub fn home(&self, user: usize) -> Option<usize> {
        self.homes[user]
    }

    /// A user's shares among the children of its account.
    pub fn shares(&self, user: usize) -> &Rational {
        &self.shares[user]
    }

    /// What a user is entitled to of the whole; over all users these sum to 1.
    pub fn user_entitlement(&self, user: usize) -> &Rational {
        &self.user_entitlement[user]
    }

    /// What an account is entitled to of the whole: the sum of its users' entitlements.
    pub fn account_entitlement(&self, account: usize) -> &Rational {
        &self.account_entitlement[account]
    }

    /// The users' entitlements as weights, for what knows no tree.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(parent: Option<usize>, shares: u8) -> Account {
        Account { name: format!("{parent:?}/{shares}"), parent, shares: shares.into() }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let tree = |accounts, homes: Vec<Option<usize>>, shares: u8| {
            let n = homes.len();
            AccountTree::new(accounts, homes, vec![shares.into(); n])
        };
        assert!(matches!(tree(vec![account(Some(0), 1)], vec![], 1), Err(AccountsError::Order { .. })));
        assert!(matches!(tree(vec![account(None, 0)], vec![], 1), Err(AccountsError::Shares { .. })));
        assert!(matches!(tree(vec![], vec![None], 0), Err(AccountsError::Shares { .. })));
        assert!(matches!(tree(vec![account(None, 1)], vec![Some(1)], 1), Err(AccountsError::Home { user: 0 })));
    }

    /// By definition, from the user up: shares over the shares of all siblings that have users.
    fn by_definition(tree: &AccountTree, user: usize) -> Rational {
        let has_user = |a: usize| {
            (0..tree.users()).any(|u| {
                let mut at = tree.home(u);
                while let Some(here) = at.filter(|h| *h != a) {
                    at = tree.accounts()[here].parent;
                }
                at.is_some()
            })
        };
        let siblings = |parent: Option<usize>| {
            let accounts = tree.accounts().iter().enumerate().filter(|(a, x)| x.parent == parent && has_user(*a));
            let users = (0..tree.users()).filter(|u| tree.home(*u) == parent).map(|u| tree.shares(u));
            accounts.map(|(_, x)| &x.shares).chain(users).fold(Rational::ZERO, |sum, s| sum + s)
        };
        let mut at = tree.home(user);
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
        fn entitlements_are_those_of_the_definition(
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
