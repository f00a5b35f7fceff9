//! The parties to entitlements: accounts or users as leaves of a tree of shares.

use evenhand_model::{AccountTree, Rational, UBig};

use crate::AuditError;

/// The parties of a history at one level: all its users, or all its accounts.
///
/// A party's share of the capacity is the product, over the nodes on the path from the root to it, of the node's shares
/// divided by the shares of its active siblings and itself. So the share of an inactive party goes to its siblings in
/// proportion to their shares, as in [`AccountTree`].
#[derive(Clone, Debug)]
pub struct Parties {
    names: Vec<String>,
    of_user: Vec<u32>,
    tree: Tree,
}

/// A tree of nodes with integer weights relative to their siblings. Node 0 is the root; parents precede children.
#[derive(Clone, Debug)]
struct Tree {
    parent: Vec<usize>,
    weight: Vec<u64>,
    /// The node of each party.
    leaf: Vec<usize>,
}

impl Parties {
    /// Creates one party per user of `tree`, with the given names.
    ///
    /// # Errors
    /// Returns [`AuditError::Weights`] if the shares, written as integers, are too large.
    ///
    /// # Panics
    /// Panics if the number of names differs from the number of users.
    pub fn users(tree: &AccountTree, names: &[String]) -> Result<Parties, AuditError> {
        assert_eq!(tree.users(), names.len(), "one name per user");
        let homes = (0..names.len()).map(|user| (tree.account_of(user), tree.shares(user).clone()));
        let of_user = (0..names.len() as u32).collect();
        Ok(Parties { names: names.to_vec(), of_user, tree: Tree::new(tree, homes.collect())? })
    }

    /// Creates one party per account that has users, in the order of the tree, then one per user directly under the root.
    /// The party of an account with both users and sub-accounts consists of its users, with the sum of their shares.
    ///
    /// # Errors
    /// Returns [`AuditError::Weights`] if the shares, written as integers, are too large.
    ///
    /// # Panics
    /// Panics if the number of names differs from the number of users.
    pub fn accounts(tree: &AccountTree, names: &[String]) -> Result<Parties, AuditError> {
        assert_eq!(tree.users(), names.len(), "one name per user");
        let mut shares = vec![Rational::ZERO; tree.accounts().len()];
        for user in 0..names.len() {
            if let Some(home) = tree.account_of(user) {
                shares[home] += tree.shares(user);
            }
        }
        let mut party_of = vec![u32::MAX; tree.accounts().len()];
        let (mut parties, mut homes) = (Vec::new(), Vec::new());
        for (account, shares) in shares.into_iter().enumerate().filter(|(_, shares)| !shares.is_zero()) {
            party_of[account] = parties.len() as u32;
            parties.push(tree.accounts()[account].name.clone());
            homes.push((Some(account), shares));
        }
        let mut of_user = Vec::with_capacity(names.len());
        for (user, name) in names.iter().enumerate() {
            of_user.push(match tree.account_of(user) {
                Some(home) => party_of[home],
                None => {
                    parties.push(name.clone());
                    homes.push((None, tree.shares(user).clone()));
                    parties.len() as u32 - 1
                }
            });
        }
        Ok(Parties { names: parties, of_user, tree: Tree::new(tree, homes)? })
    }

    /// Returns the parties' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the party of each user.
    pub fn of_user(&self) -> &[u32] {
        &self.of_user
    }

    /// Returns the number of parties.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no parties.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns each party's share of the capacity if only the parties marked in `active` are active; 0 for the others.
    ///
    /// # Panics
    /// Panics if `active` has fewer entries than there are parties.
    pub fn shares_among(&self, active: &[bool]) -> Vec<Rational> {
        let mut now = ActiveShares::new(self);
        let marked = || (0..self.len()).filter(|&party| active[party]);
        marked().for_each(|party| {
            now.set_active(party, true);
        });
        let mut shares = vec![Rational::ZERO; self.len()];
        marked().for_each(|party| {
            let (numerator, denominator) = now.share(party);
            shares[party] = Rational::from_parts(numerator.into(), denominator.into());
        });
        shares
    }
}

impl Tree {
    /// Creates a node per account of `tree`, and below them a leaf per party, given by its account and its shares there.
    fn new(tree: &AccountTree, parties: Vec<(Option<usize>, Rational)>) -> Result<Tree, AuditError> {
        let place = |account: Option<usize>| account.map_or(0, |a| a + 1);
        let mut parent = vec![0];
        let mut shares = vec![Rational::ONE];
        for account in tree.accounts() {
            parent.push(place(account.parent));
            shares.push(account.shares.clone());
        }
        let mut leaf = Vec::new();
        for (home, share) in parties {
            leaf.push(parent.len());
            parent.push(place(home));
            shares.push(share);
        }
        let mut children = vec![Vec::new(); parent.len()];
        (1..parent.len()).for_each(|node| children[parent[node]].push(node));
        let mut weight = vec![1; parent.len()];
        // The product of the sums of weights on the path to a node, an upper bound of all denominators.
        let mut bound = vec![1u128; parent.len()];
        for (node, children) in children.iter().enumerate() {
            let whole = whole(&children.iter().map(|&child| &shares[child]).collect::<Vec<_>>());
            let whole = whole.ok_or(AuditError::Weights)?;
            let sum = whole.iter().try_fold(0u64, |sum, w| sum.checked_add(*w)).ok_or(AuditError::Weights)?;
            let below = bound[node].checked_mul(u128::from(sum).max(1)).ok_or(AuditError::Weights)?;
            for (&child, w) in children.iter().zip(whole) {
                (weight[child], bound[child]) = (w, below);
            }
        }
        Ok(Tree { parent, weight, leaf })
    }
}

/// Returns the shares as integers in the same proportion, or `None` if they do not fit u64.
fn whole(shares: &[&Rational]) -> Option<Vec<u64>> {
    let mut common = Rational::ONE;
    for share in shares {
        // The denominator that remains after multiplication is the factor that the common multiple still lacks.
        let lacking = (*share * &common).into_parts().1;
        common *= Rational::from(lacking);
    }
    let whole = |share: &&Rational| u64::try_from(UBig::try_from((*share * &common).floor()).ok()?).ok();
    shares.iter().map(whole).collect()
}

/// The active parties and their shares, updated as parties become active or inactive in time proportional to the depth of
/// the tree.
#[derive(Clone, Debug)]
pub(crate) struct ActiveShares<'a> {
    tree: &'a Tree,
    /// Number of active parties below each node.
    active: Vec<u32>,
    /// Sum of the weights of each node's active children.
    sums: Vec<u64>,
}

impl<'a> ActiveShares<'a> {
    /// Creates a state in which no party is active.
    pub(crate) fn new(parties: &'a Parties) -> ActiveShares<'a> {
        let nodes = parties.tree.parent.len();
        ActiveShares { tree: &parties.tree, active: vec![0; nodes], sums: vec![0; nodes] }
    }

    /// Returns whether a party is active.
    pub(crate) fn is_active(&self, party: usize) -> bool {
        self.active[self.tree.leaf[party]] > 0
    }

    /// Sets whether a party is active. Returns whether that changed.
    pub(crate) fn set_active(&mut self, party: usize, active: bool) -> bool {
        if self.is_active(party) == active {
            return false;
        }
        let mut node = self.tree.leaf[party];
        while node != 0 {
            let (parent, weight) = (self.tree.parent[node], self.tree.weight[node]);
            let count = &mut self.active[node];
            if active {
                *count += 1;
                self.sums[parent] += if *count == 1 { weight } else { 0 };
            } else {
                *count -= 1;
                self.sums[parent] -= if *count == 0 { weight } else { 0 };
            }
            node = parent;
        }
        true
    }

    /// Returns the share of an active party as (numerator, denominator). Neither overflows: both are at most the product
    /// of the sums on the path, which [`Tree::new`] has checked.
    pub(crate) fn share(&self, party: usize) -> (u128, u128) {
        let (mut numerator, mut denominator) = (1, 1);
        let mut node = self.tree.leaf[party];
        while node != 0 {
            let parent = self.tree.parent[node];
            // A node without active siblings has the whole share of its parent.
            if self.sums[parent] != self.tree.weight[node] {
                numerator *= u128::from(self.tree.weight[node]);
                denominator *= u128::from(self.sums[parent]);
            }
            node = parent;
        }
        (numerator, denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::Account;

    fn tree() -> (AccountTree, Vec<String>) {
        let account = |name: &str, parent, shares: u8| Account { name: name.into(), parent, shares: shares.into() };
        // Root: science 3, art 1, cid 1/2; science: physics 1, dan 2; physics: ann 1, bob 3.
        let accounts = vec![account("science", None, 3), account("physics", Some(0), 1), account("art", None, 1)];
        let homes = vec![Some(1), Some(1), None, Some(0), Some(2)];
        let shares = [(1, 1u8), (3, 1), (1, 2), (2, 1), (1, 1)];
        let shares = shares.map(|(a, b)| Rational::from_parts(a.into(), b.into()));
        let names = ["ann", "bob", "cid", "dan", "eve"].map(String::from);
        (AccountTree::new(accounts, homes, shares.to_vec()).unwrap(), names.to_vec())
    }

    #[test]
    fn with_all_parties_active_shares_are_those_of_the_tree() {
        let (tree, names) = tree();
        let users = Parties::users(&tree, &names).unwrap();
        let shares = users.shares_among(&[true; 5]);
        (0..5).for_each(|user| assert_eq!(&shares[user], tree.user_entitlement(user), "{user}"));
        let accounts = Parties::accounts(&tree, &names).unwrap();
        assert_eq!(accounts.names(), ["science", "physics", "art", "cid"]);
        assert_eq!(accounts.of_user(), [1, 1, 3, 0, 2]);
        let shares = accounts.shares_among(&[true; 4]);
        for (party, share) in shares.iter().enumerate() {
            let own = (0..5).filter(|&u| accounts.of_user()[u] as usize == party);
            let sum = own.fold(Rational::ZERO, |sum, u| sum + tree.user_entitlement(u));
            assert_eq!(share, &sum, "{party}");
        }
    }

    #[test]
    fn the_share_of_an_inactive_party_goes_to_its_siblings() {
        let (tree, names) = tree();
        let users = Parties::users(&tree, &names).unwrap();
        // ann has all of physics, which has a third of science. science has 3 of 4 shares, as cid (1/2) is inactive.
        let shares = users.shares_among(&[true, false, false, true, true]);
        let exact = [(1, 4u8), (0, 1), (0, 1), (1, 2), (1, 4)].map(|(a, b)| Rational::from_parts(a.into(), b.into()));
        assert_eq!(shares, exact);
        assert_eq!(users.shares_among(&[false; 5]), vec![Rational::ZERO; 5]);
    }

    #[test]
    fn shares_follow_as_parties_become_active_and_inactive() {
        let (tree, names) = tree();
        let users = Parties::users(&tree, &names).unwrap();
        let mut shares = ActiveShares::new(&users);
        for (party, active) in [(0, true), (1, true), (4, true), (1, false), (3, true), (3, false), (3, true)] {
            assert!(shares.set_active(party, active));
            assert!(!shares.set_active(party, active));
        }
        assert_eq!([0, 3, 4].map(|p| shares.share(p)).map(|(a, b)| a as f64 / b as f64), [0.25, 0.5, 0.25]);
    }

    #[test]
    fn shares_of_too_different_sizes_are_an_error() {
        let shares = vec![Rational::from(1u128 << 70), Rational::ONE];
        let tree = AccountTree::new(vec![], vec![None; 2], shares).unwrap();
        let result = Parties::users(&tree, &["a".into(), "b".into()]);
        assert!(matches!(result, Err(AuditError::Weights)));
    }
}
