//! Accounts within accounts: a child shares what its parent gets.

use crate::Number;
use crate::problem::ProblemError;

/// One account.
#[derive(Clone, Debug, PartialEq)]
pub struct Account<N> {
    /// The account it is part of; `None` for one directly under the root.
    pub parent: Option<usize>,
    /// Weight among its siblings (accounts and users of the same parent), greater than 0.
    pub weight: N,
}

/// Which account each user and each account belongs to. A user's own weight counts among the users and
/// accounts of the same parent.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountTree<N> {
    accounts: Vec<Account<N>>,
    user_accounts: Vec<Option<usize>>,
}

impl<N: Number> AccountTree<N> {
    /// A tree of `accounts`, each after its parent, and for each user the account it belongs to
    /// (`None`: directly under the root).
    ///
    /// # Errors
    /// If an account comes before its parent (as in every circle), a weight is not above 0, or a user
    /// belongs to an account that is not there.
    pub fn new(accounts: Vec<Account<N>>, user_accounts: Vec<Option<usize>>) -> Result<AccountTree<N>, ProblemError> {
        if accounts.iter().enumerate().any(|(i, a)| a.parent.is_some_and(|p| p >= i)) {
            return Err(ProblemError::Accounts("an account comes before its parent"));
        }
        if !accounts.iter().all(|a| a.weight.is_positive() && (a.weight.clone() - &a.weight).is_zero()) {
            return Err(ProblemError::Accounts("an account's weight is not a finite number above 0"));
        }
        if user_accounts.iter().flatten().any(|h| *h >= accounts.len()) {
            return Err(ProblemError::Accounts("a user belongs to an account that is not there"));
        }
        Ok(AccountTree { accounts, user_accounts })
    }

    /// How many users it places.
    pub fn users(&self) -> usize {
        self.user_accounts.len()
    }

    /// The accounts, each after its parent.
    pub fn accounts(&self) -> &[Account<N>] {
        &self.accounts
    }

    /// The account a user belongs to.
    pub fn account_of(&self, user: usize) -> Option<usize> {
        self.user_accounts[user]
    }

    /// What each unit of weight is entitled to among the children of the root (first) and of each account:
    /// the product of weight over the weights of all siblings on the way down, over the weights of the
    /// children. Accounts that hold no user, however deep, are entitled to nothing.
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

    pub(crate) fn map<M: Number>(&self, f: impl Fn(&N) -> Option<M>) -> Option<AccountTree<M>> {
        let account = |a: &Account<N>| Some(Account { parent: a.parent, weight: f(&a.weight)? });
        Some(AccountTree {
            accounts: self.accounts.iter().map(account).collect::<Option<_>>()?,
            user_accounts: self.user_accounts.clone(),
        })
    }
}
