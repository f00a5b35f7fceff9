//! Users of accounts by number, and their entitlements.

use std::collections::HashMap;

use evenhand_model::{Account, AccountTree, AssociationPriority, Members, Rational, UserId, Weights, to_f64};

use super::PlanError;
use crate::associations::Accounts;

/// Users of accounts by number.
pub(super) struct Parties<'a> {
    accounts: Option<&'a Accounts>,
    pub(super) names: Vec<(String, Option<String>)>,
    numbers: HashMap<(String, Option<String>), u32>,
}

/// Entitlements of the users of the plan.
pub(super) struct Entitled {
    pub(super) tree: Option<AccountTree>,
    pub(super) weights: Weights,
}

impl Entitled {
    pub(super) fn entitled(&self) -> Vec<f64> {
        (0..self.weights.len())
            .map(|u| match &self.tree {
                Some(tree) => to_f64(tree.user_entitlement(u)),
                None => to_f64(&self.weights.entitlement(u)),
            })
            .collect()
    }
}

impl<'a> Parties<'a> {
    pub(super) fn new(accounts: Option<&'a Accounts>) -> Parties<'a> {
        Parties { accounts, names: Vec::new(), numbers: HashMap::new() }
    }

    /// Returns the number of a user of an account; a new one gets the next number.
    pub(super) fn of(&mut self, user: &str, account: Option<&str>) -> UserId {
        let account = account.filter(|_| self.accounts.is_some());
        let key = (user.to_string(), account.map(String::from));
        let number = *self.numbers.entry(key.clone()).or_insert(self.names.len() as u32);
        if number as usize == self.names.len() {
            self.names.push(key);
        }
        UserId(number)
    }

    /// Returns the tree of the users of the plan; equal shares without accounts.
    pub(super) fn tree(&self) -> Result<Entitled, PlanError> {
        let users = self.names.len().max(1);
        let Some(accounts) = self.accounts.filter(|_| !self.names.is_empty()) else {
            return Ok(Entitled { tree: None, weights: Weights::equal(users) });
        };
        let leaves = accounts.association_tree()?;
        let known: HashMap<(&str, &str), usize> =
            leaves.users.iter().enumerate().map(|(at, (u, a))| ((u.as_str(), a.as_str()), at)).collect();
        let all: Vec<Account> = leaves.tree.accounts().to_vec();
        let mut homes = Vec::new();
        let mut shares = Vec::new();
        for (user, account) in &self.names {
            let account = account.as_deref().unwrap_or("root");
            match known.get(&(user.as_str(), account)) {
                Some(&leaf) => {
                    homes.push(leaves.tree.account_of(leaf));
                    shares.push(leaves.tree.shares(leaf).clone());
                }
                // Deleted since, or hidden: counts as one of the account's users.
                None => {
                    homes.push(leaves.homes.get(account).copied().flatten());
                    shares.push(Rational::ONE);
                }
            }
        }
        let others = leaves.users.iter().enumerate().filter(|(_, (user, account))| {
            let is_here = |account: Option<&String>| self.numbers.contains_key(&(user.clone(), account.cloned()));
            // Who has an association with the root is there without an account.
            !(is_here(Some(account)) || account == "root" && is_here(None))
        });
        let others = others.map(|(leaf, _)| {
            let members = Members { users: 1, shares: leaves.tree.shares(leaf).clone() };
            (leaves.tree.account_of(leaf), members)
        });
        let names = self.names.iter().map(|(user, account)| (user.as_str(), account.as_deref()));
        let (priorities, highest) = AssociationPriority::of_users(&accounts.priorities(), names);
        let tree = AccountTree::new(all, homes, shares)?.with_priorities(priorities, highest).with_other_users(others);
        Ok(Entitled { weights: tree.weights(), tree: Some(tree) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_who_are_not_in_the_plan_count_in_their_accounts() {
        let text = "Account|ParentName|User|Share\nroot|||1\nroot||root|1\ndept|root||10\ndept||ann|1\ndept||bob|4\n\
            lab|dept||parent\nlab||bob|2\nlab||ann|1\nnobody|root||1\n";
        let accounts = Accounts::parse(text).unwrap();
        let mut parties = Parties::new(Some(&accounts));
        for (user, account) in [("ann", "dept"), ("bob", "lab"), ("gone", "dept")] {
            parties.of(user, Some(account));
        }
        let counts = |parties: &Parties<'_>| {
            let (all, counts) = parties.tree().unwrap().tree.unwrap().of_all_users();
            let homes = (0..all.users()).map(|user| all.account_of(user));
            let shares = (0..all.users()).map(|user| all.shares(user).to_string());
            homes
                .zip(shares)
                .zip(counts)
                .map(|((home, shares), n)| (home, shares, n))
                .skip(parties.names.len())
                .collect()
        };
        // root; bob of dept and ann of lab, whose users are children of dept; and an account without users.
        let expected = |root: Vec<(Option<usize>, String, u32)>| {
            [root, vec![(Some(0), "5".into(), 2), (Some(1), "1".into(), 0)]].concat()
        };
        let found: Vec<_> = counts(&parties);
        assert_eq!(found, expected(vec![(None, "1".into(), 1)]));
        parties.of("root", None);
        let found: Vec<_> = counts(&parties);
        assert_eq!(found, expected(vec![]));
    }
}
