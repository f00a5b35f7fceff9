//! Who is entitled to a part: accounts or users, as leaves of a tree of shares.

use evenhand_model::{AccountTree, Rational, UBig};

use crate::PastError;

/// The parties of a past at one level: its users, or its accounts.
///
/// A party's part of the whole is, at each account on the way to it, its shares over those of all who have
/// a claim there. What one leaves who has none goes to its siblings in proportion to their shares, as in
/// [`AccountTree`].
#[derive(Clone, Debug)]
pub struct Parties {
    names: Vec<String>,
    of_user: Vec<u32>,
    tree: Tree,
}

/// Nodes with whole weights among their siblings. Node 0 is the root; parents come first.
#[derive(Clone, Debug)]
struct Tree {
    parent: Vec<usize>,
    weight: Vec<u64>,
    /// Each party's node.
    leaf: Vec<usize>,
}

impl Parties {
    /// Each user of `tree`, called as in `names`.
    ///
    /// # Errors
    /// If the shares cannot be written as whole numbers of a common size.
    ///
    /// # Panics
    /// If there is not one name a user.
    pub fn users(tree: &AccountTree, names: &[String]) -> Result<Parties, PastError> {
        assert_eq!(tree.users(), names.len(), "one name a user");
        let homes = (0..names.len()).map(|user| (tree.account_of(user), tree.shares(user).clone()));
        let of_user = (0..names.len() as u32).collect();
        Ok(Parties { names: names.to_vec(), of_user, tree: Tree::new(tree, homes.collect())? })
    }

    /// Each account that a user of `tree` belongs to, in the order of the tree, then each user directly under the
    /// root, who is a party of its own. An account that has both users and accounts below it is, as a party, its
    /// users, with the sum of their shares.
    ///
    /// # Errors
    /// If the shares cannot be written as whole numbers of a common size.
    ///
    /// # Panics
    /// If there is not one name a user.
    pub fn accounts(tree: &AccountTree, names: &[String]) -> Result<Parties, PastError> {
        assert_eq!(tree.users(), names.len(), "one name a user");
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

    /// The parties' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which party each user is of.
    pub fn of_user(&self) -> &[u32] {
        &self.of_user
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What each is entitled to of the whole if only those marked have a claim; 0 for the others.
    pub fn shares_among(&self, claims: &[bool]) -> Vec<Rational> {
        let mut now = Claims::new(self);
        let marked = || (0..self.len()).filter(|&party| claims[party]);
        marked().for_each(|party| {
            now.set(party, true);
        });
        let mut shares = vec![Rational::ZERO; self.len()];
        marked().for_each(|party| {
            let (over, under) = now.share(party);
            shares[party] = Rational::from_parts(over.into(), under.into());
        });
        shares
    }
}

impl Tree {
    /// The accounts of `tree` as nodes, and below them the parties: each one's account and its shares there.
    fn new(tree: &AccountTree, parties: Vec<(Option<usize>, Rational)>) -> Result<Tree, PastError> {
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
        // The largest product of sums on the way to a node: that of all its fractions' denominators.
        let mut bound = vec![1u128; parent.len()];
        for (node, children) in children.iter().enumerate() {
            let whole = whole(&children.iter().map(|&child| &shares[child]).collect::<Vec<_>>());
            let whole = whole.ok_or(PastError::Weights)?;
            let sum = whole.iter().try_fold(0u64, |sum, w| sum.checked_add(*w)).ok_or(PastError::Weights)?;
            let below = bound[node].checked_mul(u128::from(sum).max(1)).ok_or(PastError::Weights)?;
            for (&child, w) in children.iter().zip(whole) {
                (weight[child], bound[child]) = (w, below);
            }
        }
        Ok(Tree { parent, weight, leaf })
    }
}

/// Shares as whole numbers in the same proportion.
fn whole(shares: &[&Rational]) -> Option<Vec<u64>> {
    let mut common = Rational::ONE;
    for share in shares {
        // What is left of the denominator after multiplication is what the common one still lacks.
        let lacking = (*share * &common).into_parts().1;
        common *= Rational::from(lacking);
    }
    let whole = |share: &&Rational| u64::try_from(UBig::try_from((*share * &common).floor()).ok()?).ok();
    shares.iter().map(whole).collect()
}

/// Who has a claim now.
#[derive(Clone, Debug)]
pub(crate) struct Claims<'a> {
    tree: &'a Tree,
    /// How many parties with a claim there are in each node.
    claims: Vec<u32>,
    /// The sum of the weights of each node's children with a claim.
    sums: Vec<u64>,
}

impl<'a> Claims<'a> {
    pub(crate) fn new(parties: &'a Parties) -> Claims<'a> {
        let nodes = parties.tree.parent.len();
        Claims { tree: &parties.tree, claims: vec![0; nodes], sums: vec![0; nodes] }
    }

    pub(crate) fn has(&self, party: usize) -> bool {
        self.claims[self.tree.leaf[party]] > 0
    }

    /// Gives a party a claim or takes it; whether that changed anything.
    pub(crate) fn set(&mut self, party: usize, claims: bool) -> bool {
        if self.has(party) == claims {
            return false;
        }
        let mut node = self.tree.leaf[party];
        while node != 0 {
            let (parent, weight) = (self.tree.parent[node], self.tree.weight[node]);
            let count = &mut self.claims[node];
            if claims {
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

    /// The part of the whole a party with a claim is entitled to, as a fraction. Both are at most the product of
    /// the sums on the way, which was found to fit.
    pub(crate) fn share(&self, party: usize) -> (u128, u128) {
        let (mut over, mut under) = (1, 1);
        let mut node = self.tree.leaf[party];
        while node != 0 {
            let parent = self.tree.parent[node];
            // An only child has all, whatever its weight.
            if self.sums[parent] != self.tree.weight[node] {
                over *= u128::from(self.tree.weight[node]);
                under *= u128::from(self.sums[parent]);
            }
            node = parent;
        }
        (over, under)
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
    fn among_all_parts_are_those_of_the_tree() {
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
    fn what_one_leaves_goes_to_its_siblings() {
        let (tree, names) = tree();
        let users = Parties::users(&tree, &names).unwrap();
        // ann has all of physics, a third of science, whose 3 of 4 1/2 are left as 3 of 4.
        let shares = users.shares_among(&[true, false, false, true, true]);
        let exact = [(1, 4u8), (0, 1), (0, 1), (1, 2), (1, 4)].map(|(a, b)| Rational::from_parts(a.into(), b.into()));
        assert_eq!(shares, exact);
        assert_eq!(users.shares_among(&[false; 5]), vec![Rational::ZERO; 5]);
    }

    #[test]
    fn claims_come_and_go() {
        let (tree, names) = tree();
        let users = Parties::users(&tree, &names).unwrap();
        let mut claims = Claims::new(&users);
        for (party, there) in [(0, true), (1, true), (4, true), (1, false), (3, true), (3, false), (3, true)] {
            assert!(claims.set(party, there));
            assert!(!claims.set(party, there));
        }
        assert_eq!([0, 3, 4].map(|p| claims.share(p)).map(|(a, b)| a as f64 / b as f64), [0.25, 0.5, 0.25]);
    }

    #[test]
    fn shares_too_different_are_refused() {
        let shares = vec![Rational::from(1u128 << 70), Rational::ONE];
        let tree = AccountTree::new(vec![], vec![None; 2], shares).unwrap();
        let refused = Parties::users(&tree, &["a".into(), "b".into()]);
        assert!(matches!(refused, Err(PastError::Weights)));
    }
}
