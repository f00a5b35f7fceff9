//! Accounts within accounts: a child shares what its parent gets.

use crate::problem::ProblemError;
use crate::{Number, Problem};

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
pub struct Tree<N> {
    accounts: Vec<Account<N>>,
    homes: Vec<Option<usize>>,
}

impl<N: Number> Tree<N> {
    /// A tree of `accounts`, each after its parent, and for each user the account it belongs to
    /// (`None`: directly under the root).
    ///
    /// # Errors
    /// If an account comes before its parent (as in every circle), a weight is not above 0, or a user
    /// belongs to an account that is not there.
    pub fn new(accounts: Vec<Account<N>>, homes: Vec<Option<usize>>) -> Result<Tree<N>, ProblemError> {
        if accounts.iter().enumerate().any(|(i, a)| a.parent.is_some_and(|p| p >= i)) {
            return Err(ProblemError::Tree("an account comes before its parent"));
        }
        if !accounts.iter().all(|a| a.weight.is_positive() && (a.weight.clone() - &a.weight).is_zero()) {
            return Err(ProblemError::Tree("an account's weight is not a finite number above 0"));
        }
        if homes.iter().flatten().any(|h| *h >= accounts.len()) {
            return Err(ProblemError::Tree("a user belongs to an account that is not there"));
        }
        Ok(Tree { accounts, homes })
    }

    /// How many users it places.
    pub fn users(&self) -> usize {
        self.homes.len()
    }

    /// The accounts, each after its parent.
    pub fn accounts(&self) -> &[Account<N>] {
        &self.accounts
    }

    /// The account a user belongs to.
    pub fn home(&self, user: usize) -> Option<usize> {
        self.homes[user]
    }

    /// The sum of the weights of all children of an account (or of the root).
    pub(crate) fn sibling_weights(&self, problem: &Problem<N>, parent: Option<usize>) -> N {
        let mut sum = N::zero();
        for account in self.accounts.iter().filter(|a| a.parent == parent) {
            sum += &account.weight;
        }
        for user in (0..self.homes.len()).filter(|u| self.homes[*u] == parent) {
            sum += problem.weight(user);
        }
        sum
    }

    pub(crate) fn entitlement(&self, problem: &Problem<N>, user: usize) -> N {
        let mut parent = self.homes[user];
        let mut share = problem.weight(user).clone() / self.sibling_weights(problem, parent);
        while let Some(account) = parent {
            parent = self.accounts[account].parent;
            share = share * &self.accounts[account].weight / self.sibling_weights(problem, parent);
        }
        share
    }

    pub(crate) fn map<M: Number>(&self, f: impl Fn(&N) -> Option<M>) -> Option<Tree<M>> {
        let account = |a: &Account<N>| Some(Account { parent: a.parent, weight: f(&a.weight)? });
        Some(Tree { accounts: self.accounts.iter().map(account).collect::<Option<_>>()?, homes: self.homes.clone() })
    }
}
