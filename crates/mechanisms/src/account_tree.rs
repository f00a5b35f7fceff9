//! Trees of accounts: the children of an account share what it gets.

use crate::Number;
use crate::problem::ProblemError;

/// Account in a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Account<N> {
    /// Index of the account that it is part of; `None` directly under the root.
    pub parent: Option<usize>,
    /// Weight among its siblings (accounts and users of the same parent), greater than 0.
    pub weight: N,
}

/// Tree of accounts, with the account that each user belongs to. A user's own weight counts among the users and
/// accounts of the same parent.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountTree<N> {
    accounts: Vec<Account<N>>,
    user_accounts: Vec<Option<usize>>,
}

impl<N: Number> AccountTree<N> {
    /// Creates a tree of `accounts`, each after its parent. `user_accounts` holds, for each user, the index of the
    /// account it belongs to; `None` places it directly under the root.
    ///
    /// # Errors
    /// Returns an error if an account precedes its parent (as one does in every cycle), if a weight is not a finite
    /// number above 0, or if a user belongs to an account that does not exist.
    pub fn new(accounts: Vec<Account<N>>, user_accounts: Vec<Option<usize>>) -> Result<AccountTree<N>, ProblemError> {
        if accounts.iter().enumerate().any(|(i, a)| a.parent.is_some_and(|p| p >= i)) {
            return Err(ProblemError::Accounts("an account precedes its parent"));
        }
        if !accounts.iter().all(|a| a.weight.is_positive() && (a.weight.clone() - &a.weight).is_zero()) {
            return Err(ProblemError::Accounts("an account's weight is not a finite number above 0"));
        }
        if user_accounts.iter().flatten().any(|account| *account >= accounts.len()) {
            return Err(ProblemError::Accounts("a user belongs to an account that does not exist"));
        }
        Ok(AccountTree { accounts, user_accounts })
    }

    /// Returns the number of users it places.
    pub fn users(&self) -> usize {
        self.user_accounts.len()
    }

    /// Returns the accounts, each after its parent.
    pub fn accounts(&self) -> &[Account<N>] {
        &self.accounts
    }

    /// Returns the account a user belongs to; `None` for a user directly under the root.
    ///
    /// # Panics
    /// Panics if there is no such user.
    pub fn account_of(&self, user: usize) -> Option<usize> {
        self.user_accounts[user]
    }

    /// Returns the entitlement per unit of weight among the children of the root (first) and of each account: the
    /// product of weight over the sum of sibling weights on the way down, over the sum of the children's weights. An
    /// account without users below it has no entitlement and does not count among its siblings. O(users + accounts).
    pub(crate) fn entitlements(&self, weights: &[N]) -> Vec<N> {
        let place = |account: Option<usize>| account.map_or(0, |a| a + 1);
        let mut sums = vec![N::zero(); self.accounts.len() + 1];
        for (home, weight) in self.user_accounts.iter().zip(weights) {
            sums[place(*home)] += weight;
        }
        for (a, account) in self.accounts.iter().enumerate().rev() {
            if !sums[a + 1].is_zero() {
                sums[place(account.parent)] += &account.weight;
            }
        }
        let mut units = sums;
        for place_of in 0..units.len() {
            if units[place_of].is_zero() {
                continue;
            }
            let share = match place_of.checked_sub(1).map(|a| &self.accounts[a]) {
                Some(account) => units[place(account.parent)].clone() * &account.weight,
                None => N::one(),
            };
            units[place_of] = share / &units[place_of];
        }
        units
    }

    /// Converts every weight; `None` if one cannot be converted.
    pub(crate) fn map<M: Number>(&self, f: impl Fn(&N) -> Option<M>) -> Option<AccountTree<M>> {
        let account = |a: &Account<N>| Some(Account { parent: a.parent, weight: f(&a.weight)? });
        Some(AccountTree {
            accounts: self.accounts.iter().map(account).collect::<Option<_>>()?,
            user_accounts: self.user_accounts.clone(),
        })
    }
}
