//! Who belongs to which account with how many shares: `sacctmgr show assoc`.

use std::collections::{HashMap, HashSet};

use evenhand_model::{Account, AccountTree, AccountsError, Rational};

use crate::commands::{Call, Commands};
use crate::error::{ReadError, TextError};
use crate::table::Table;
use crate::value::number;

const COLUMNS: &str = "format=cluster,account,parentname,user,partition,share";
/// What shares of 0 stand for in a tree, which divides by them: next to nothing.
const NEXT_TO_NOTHING: (u32, u32) = (1, 1_000_000);

/// The associations of a cluster, as far as the user may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// In the order in which `sacctmgr` gives them: an account before its users.
    pub associations: Vec<Association>,
}

/// An account, or a user in an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The account.
    pub account: String,
    /// The account it is part of; none for `root` and for users.
    pub parent: Option<String>,
    /// The user; none for the account itself.
    pub user: Option<String>,
    /// The partition it is for, if for one.
    pub partition: Option<String>,
    /// Shares among its siblings.
    pub shares: Shares,
}

/// An association's shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// So many.
    Number(u64),
    /// Those of the account above (`Fairshare=parent`): an account is as if it were not there, a user one of many.
    Parent,
}

impl Shares {
    fn parse(text: &str) -> Option<Shares> {
        if text == "parent" { Some(Shares::Parent) } else { number(text).map(Shares::Number) }
    }

    /// As a tree of accounts takes them: a user of his parent's shares has 1, and 0 is next to nothing.
    pub fn in_tree(self) -> Rational {
        match self {
            Shares::Parent => Rational::ONE,
            Shares::Number(0) => Rational::from_parts(NEXT_TO_NOTHING.0.into(), NEXT_TO_NOTHING.1.into()),
            Shares::Number(n) => n.into(),
        }
    }
}

/// A tree of accounts with the users who are its leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// The tree; its users are those of `users`.
    pub tree: AccountTree,
    /// Each user's name and account.
    pub users: Vec<(String, String)>,
}

impl Accounts {
    /// The call that shows the associations of a cluster (of all, if none is named).
    pub fn call(cluster: Option<&str>) -> Call {
        let words = ["--parsable2", "show", "association", COLUMNS].map(String::from);
        Call::new("sacctmgr", words.into_iter().chain(cluster.map(|name| format!("cluster={name}"))))
    }

    /// Reads the associations of a cluster.
    ///
    /// # Errors
    /// If `sacctmgr` fails, or what it prints is not understood.
    pub fn read(commands: &dyn Commands, cluster: Option<&str>) -> Result<Accounts, ReadError> {
        Ok(Accounts::parse(&commands.run(&Accounts::call(cluster))?)?)
    }

    /// Reads what `sacctmgr -P show assoc` prints with a header line.
    ///
    /// # Errors
    /// If there is no header, or shares are none.
    pub fn parse(text: &str) -> Result<Accounts, TextError> {
        let table = Table::of("sacctmgr show association", text, &["Account", "User", "Share"])?;
        let mut associations = Vec::new();
        for row in table.rows() {
            let row = row?;
            let text = |name: &str| row.get(name).map(|f| f.text.to_string());
            let shares = row.get("Share").map(|f| f.read("shares, or parent", Shares::parse)).transpose()?;
            associations.push(Association {
                account: row.needed("Account", "an account's name")?.text.to_string(),
                parent: text("ParentName"),
                user: text("User"),
                partition: text("Partition"),
                shares: shares.unwrap_or(Shares::Number(1)),
            });
        }
        Ok(Accounts { associations })
    }

    /// Whether the site has any account but `root`.
    pub fn is_flat(&self) -> bool {
        self.associations.iter().all(|a| a.account == "root" || a.user.is_some())
    }

    /// The accounts, each after the one it is part of. Not `root`, which all are part of, and not those with their
    /// parent's shares, whose children count as their parent's.
    pub fn accounts(&self) -> Vec<Account> {
        let own = self.associations.iter().filter(|a| a.user.is_none());
        let by_name: HashMap<&str, &Association> = own.clone().map(|a| (a.account.as_str(), a)).collect();
        let mut place: HashMap<&str, usize> = HashMap::new();
        let mut accounts: Vec<Account> = Vec::new();
        for association in own {
            // From this account up to one that is placed already, or to the root.
            let mut way: Vec<&Association> = Vec::new();
            let mut at = Some(association);
            while let Some(here) = at {
                let placed = place.contains_key(here.account.as_str());
                if here.account == "root" || placed || way.iter().any(|w| w.account == here.account) {
                    break;
                }
                way.push(here);
                at = here.parent.as_deref().and_then(|parent| by_name.get(parent).copied());
            }
            for here in way.into_iter().rev() {
                if here.shares == Shares::Parent {
                    continue;
                }
                let parent = self.home(&by_name, here.parent.as_deref()).and_then(|name| place.get(name).copied());
                place.insert(&here.account, accounts.len());
                accounts.push(Account { name: here.account.clone(), parent, shares: here.shares.in_tree() });
            }
        }
        accounts
    }

    /// The next account up that counts: not one with its parent's shares; `None` for the root.
    fn home<'a>(&self, by_name: &HashMap<&'a str, &'a Association>, name: Option<&'a str>) -> Option<&'a str> {
        let mut at = name?;
        for _ in 0..=by_name.len() {
            if at == "root" {
                return None;
            }
            match by_name.get(at) {
                Some(here) if here.shares == Shares::Parent => at = here.parent.as_deref()?,
                _ => return Some(at),
            }
        }
        None
    }

    /// Each user with his account and shares, once; of several partitions the first.
    pub fn users(&self) -> Vec<(&str, &str, Shares)> {
        let mut seen = HashSet::new();
        let users = self.associations.iter().filter_map(|a| Some((a.user.as_deref()?, a.account.as_str(), a.shares)));
        users.filter(|(user, account, _)| seen.insert((*user, *account))).collect()
    }

    /// The tree with every user of every account as a leaf.
    ///
    /// # Errors
    /// If the associations make no tree, which those of `sacctmgr` do.
    pub fn leaves(&self) -> Result<Leaves, AccountsError> {
        let accounts = self.accounts();
        let own = self.associations.iter().filter(|a| a.user.is_none());
        let by_name: HashMap<&str, &Association> = own.map(|a| (a.account.as_str(), a)).collect();
        let place: HashMap<&str, usize> = accounts.iter().enumerate().map(|(i, a)| (a.name.as_str(), i)).collect();
        let users = self.users();
        let homes = users
            .iter()
            .map(|(_, account, _)| self.home(&by_name, Some(*account)).and_then(|name| place.get(name).copied()));
        let homes: Vec<Option<usize>> = homes.collect();
        let shares = users.iter().map(|(.., shares)| shares.in_tree()).collect();
        let users = users.iter().map(|(user, account, _)| (user.to_string(), account.to_string())).collect();
        Ok(Leaves { tree: AccountTree::new(accounts.clone(), homes, shares)?, users })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::to_f64;
    use proptest::prelude::*;

    const SITE: &str = "Cluster|Account|ParentName|User|Partition|Share\nlab|root||||1\nlab|root||root||1\nlab|art|root|||1\n\
        lab|art||zoe||parent\nlab|art||bob||parent\nlab|science|root|||2\nlab|physics|science|||parent\nlab|physics||ann||3\n\
        lab|physics||ann|gpu|3\nlab|biology|science|||1\nlab|biology||ann||0\n";

    #[test]
    fn a_tree_has_the_entitlements_of_the_shares() {
        let leaves = Accounts::parse(SITE).unwrap().leaves().unwrap();
        let entitled: Vec<(String, f64)> = leaves
            .users
            .iter()
            .enumerate()
            .map(|(u, (user, account))| (format!("{user}@{account}"), to_f64(leaves.tree.user_entitlement(u))))
            .collect();
        // Root: root's own user 1, art 1, science 2; physics is as if it were not there: ann 3 beside biology 1.
        let expected = [
            ("root@root", 0.25),
            ("zoe@art", 0.125),
            ("bob@art", 0.125),
            ("ann@physics", 0.375),
            ("ann@biology", 0.125),
        ];
        for ((name, share), (expected_name, expected_share)) in entitled.iter().zip(expected) {
            assert_eq!(name, expected_name);
            assert!((share - expected_share).abs() < 1e-12, "{name} {share}");
        }
        assert_eq!(entitled.len(), 5, "a user of several partitions is one");
    }

    #[test]
    fn parents_may_come_later_and_circles_end() {
        let text = "Account|ParentName|User|Share\nb|a||1\na|root||2\nx|y||1\ny|x||1\n";
        let accounts = Accounts::parse(text).unwrap().accounts();
        let names: Vec<(&str, Option<usize>)> = accounts.iter().map(|a| (a.name.as_str(), a.parent)).collect();
        assert_eq!(names, [("a", None), ("b", Some(0)), ("y", None), ("x", Some(2))]);
        let error = Accounts::parse("Account|User|Share\nb||many\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr show association:2:4: found \"many\", expected shares, or parent");
    }

    proptest! {
        #[test]
        fn any_associations_make_a_tree(
            rows in prop::collection::vec((0usize..5, 0usize..6, prop::option::of(0usize..4), prop::option::of(0u64..4)), 0..12)
        ) {
            let mut text = "Account|ParentName|User|Share\n".to_string();
            for (account, parent, user, shares) in rows {
                let user = user.map_or(String::new(), |u| format!("u{u}"));
                let parent = if user.is_empty() { format!("a{parent}") } else { String::new() };
                text += &format!("a{account}|{parent}|{user}|{}\n", shares.map_or("parent".into(), |s| s.to_string()));
            }
            let accounts = Accounts::parse(&text).unwrap();
            let leaves = accounts.leaves().unwrap();
            let sum = (0..leaves.users.len()).fold(Rational::ZERO, |sum, u| sum + leaves.tree.user_entitlement(u));
            prop_assert!(leaves.users.is_empty() || sum == Rational::ONE);
        }
    }
}
