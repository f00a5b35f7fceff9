//! Reading a tree of accounts and placing a workload's users in it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use evenhand_documents::{Document, DocumentError, Format, Node, Source, Table, did_you_mean};
use evenhand_model::{AccountTree, AssociationPriority, ListedAccount, Members, Names, Rational, Workload};

use crate::cluster_file::whole;

/// A file of accounts, before it meets a workload.
///
/// ```toml
/// [[account]]
/// name = "science"
/// shares = 3            # among its siblings; default 1
/// users = 40            # how many users it has, those without jobs too, for Slurm's fair-share factors
/// user_shares = 52      # their shares together; default: 1 for each without jobs
///
/// [[account]]
/// name = "physics"
/// parent = "science"    # default: directly under the root
///
/// [[account]]
/// name = "optics"
/// parent = "physics"
/// shares = "parent"     # its users and accounts count as children of physics (Slurm's Fairshare=parent)
///
/// [[user]]
/// name = "ann"
/// shares = 2            # among the children of her account; default 1
/// account = "physics"   # all her tasks are charged here; default: the account that the trace has for each task
///
/// [[association]]
/// account = "physics"   # `root` for users of no account
/// user = "ann"          # default: every user of the account that is not listed
/// shares = 3            # hers in this account alone, instead of those above
/// priority = 10         # for PriorityWeightAssoc
/// partition = "gpu"     # her association in this partition alone: it counts for the highest priority, and for no job
/// ```
///
/// `users` and `user_shares` before the first table are those of the users directly under the root.
#[derive(Clone, Debug)]
pub struct AccountsFile {
    source: Source,
    /// Each after its parent.
    accounts: Vec<ListedAccount>,
    /// How many users the root has, and then each account.
    members: Vec<ListedMembers>,
    users: BTreeMap<String, UserEntry>,
    associations: Associations,
}

/// How many users an account has, and their shares together, if the file says so.
#[derive(Clone, Debug, Default)]
struct ListedMembers {
    users: u32,
    shares: Option<Rational>,
}

/// What the associations of a file set.
#[derive(Clone, Debug, Default)]
struct Associations {
    priorities: Vec<AssociationPriority>,
    /// The shares of a user in an account, by account and user.
    shares: HashMap<(String, String), Rational>,
}

#[derive(Clone, Debug)]
struct UserEntry {
    account: Option<usize>,
    shares: Rational,
}

/// A workload whose users are those of a tree of accounts.
#[derive(Clone, Debug)]
pub struct WorkloadWithAccounts {
    /// The workload; a user who works under several accounts has become one user for each.
    pub workload: Workload,
    /// The accounts of its users.
    pub tree: AccountTree,
    /// Users that the file names and the workload does not have.
    pub unknown: Vec<String>,
    /// Accounts that the workload names and the file does not: each directly under the root, 1 share.
    pub added: Vec<String>,
    /// Accounts of the file that contain no user of the workload, directly or below; possibly misspelt.
    pub empty: Vec<String>,
}

impl AccountsFile {
    /// Reads a file of accounts.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, names an account or a user twice or an unknown account, has
    /// accounts that contain each other, or shares that are not greater than 0.
    pub fn read(path: &Path) -> Result<AccountsFile, DocumentError> {
        AccountsFile::parse(Source::read(path)?, Format::of_path(path))
    }

    /// Returns an empty file: it gives equal shares to the accounts of the workload, and to the users within each.
    pub fn empty() -> AccountsFile {
        AccountsFile {
            source: Source::new("", ""),
            accounts: Vec::new(),
            members: vec![ListedMembers::default()],
            users: BTreeMap::new(),
            associations: Associations::default(),
        }
    }

    fn parse(source: Source, format: Option<Format>) -> Result<AccountsFile, DocumentError> {
        let document = Document::of(source.clone(), Some(format.unwrap_or(Format::Toml)))?;
        let root = document.root()?;
        root.deny_unknown(&["account", "association", "user", "user_shares", "users"])?;
        let mut members = vec![listed_members(&root)?];
        let entries = named(root.get("account"), "account")?;
        let number: HashMap<&str, usize> = entries.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect();
        let mut parents = Vec::with_capacity(entries.len());
        for (_, table) in &entries {
            table.deny_unknown(&["name", "parent", "shares", "user_shares", "users"])?;
            parents.push(table.get("parent").map(|node| account(&node, &number)).transpose()?);
        }
        let order = parents_first(&parents).map_err(|cycle| {
            let (name, table) = &entries[cycle];
            let problem = format!("found a cycle of parents through {name:?}, expected accounts that end at the root");
            table.get("parent").map_or_else(|| table.error(&problem), |node| node.error(&problem))
        })?;
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, from)| place[*from] = to);
        for &from in &order {
            members.push(listed_members(&entries[from].1)?);
        }
        let accounts = order
            .iter()
            .map(|&from| {
                let (name, table) = &entries[from];
                let parent = parents[from].map(|p| place[p]);
                Ok(ListedAccount { name: name.to_string(), parent, shares: shares_or_parent(table, name)? })
            })
            .collect::<Result<_, DocumentError>>()?;
        let mut users = BTreeMap::new();
        for (name, table) in named(root.get("user"), "user")? {
            table.deny_unknown(&["name", "account", "shares"])?;
            let home = table.get("account").map(|node| account(&node, &number)).transpose()?;
            users
                .insert(name.to_string(), UserEntry { account: home.map(|a| place[a]), shares: shares(&table, name)? });
        }
        let associations = associations(root.get("association"))?;
        Ok(AccountsFile { source, accounts, members, users, associations })
    }

    /// Places the users of a workload.
    ///
    /// A user with an account in the file belongs to that account. All other users belong to the account that the trace
    /// gives for the task, or directly to the root if it gives none. A user with tasks under several accounts counts as
    /// one user for each (as Slurm's associations), named `user@account`, with the same shares in each unless an
    /// association has others; their tasks queue, wait and are measured separately.
    ///
    /// # Errors
    /// Returns an error if the account tree is invalid, which a file that was read does not cause.
    pub fn place(&self, workload: Workload) -> Result<WorkloadWithAccounts, DocumentError> {
        let mut accounts = self.accounts.clone();
        let mut number: HashMap<String, usize> =
            accounts.iter().enumerate().map(|(i, a)| (a.name.clone(), i)).collect();
        let mut added = Vec::new();
        // The account of each of the workload's accounts, by its number there.
        let of_trace: Vec<usize> = workload
            .accounts()
            .iter()
            .map(|name| {
                *number.entry(name.clone()).or_insert_with(|| {
                    added.push(name.clone());
                    accounts.push(ListedAccount { name: name.clone(), parent: None, shares: Some(Rational::ONE) });
                    accounts.len() - 1
                })
            })
            .collect();
        let of_file: Vec<Option<usize>> =
            workload.users().iter().map(|u| self.users.get(u).and_then(|entry| entry.account)).collect();
        let column = workload.columns().account.clone();
        let home = |w: &Workload, row: usize| {
            let user = w.columns().user[row].index();
            let of_row = || column.as_ref().and_then(|c| of_trace.get(c[row] as usize).copied());
            (user, of_file[user].or_else(of_row))
        };
        let mut homes_of = vec![BTreeSet::new(); workload.users().len()];
        for row in 0..workload.len() {
            let (user, home) = home(&workload, row);
            homes_of[user].insert(home);
        }
        let names = workload.users().to_vec();
        let unknown = self.users.keys().filter(|name| workload.user_id(name).is_none()).cloned().collect();
        // In the order in which they first appear, which is that of the workload's users.
        let (mut seen, mut homes, mut shares) = (Names::default(), Vec::new(), Vec::new());
        let mut persons: Vec<usize> = Vec::new();
        let several = homes_of.iter().any(|homes| homes.len() > 1);
        let mut entity = |user: usize, home: Option<usize>| -> String {
            let name = match home {
                _ if homes_of[user].len() == 1 => names[user].clone(),
                Some(account) => format!("{}@{}", names[user], accounts[account].name),
                None => format!("{}@", names[user]),
            };
            if seen.intern(&name) as usize == homes.len() {
                homes.push(home);
                persons.push(user);
                shares.push(self.shares_of(&names[user], home.map(|a| accounts[a].name.as_str())));
            }
            name
        };
        let workload = match several {
            true => workload.with_users(|w, row| {
                let (user, home) = home(w, row);
                entity(user, home)
            }),
            false => {
                let only = |homes: &BTreeSet<Option<usize>>| homes.first().copied().flatten();
                (0..names.len()).for_each(|user| {
                    entity(user, only(&homes_of[user]));
                });
                workload
            }
        };
        let mut is_used = vec![false; accounts.len()];
        for home in &homes {
            let mut at = *home;
            // Above an account that was seen all were.
            while let Some(account) = at.filter(|a| !is_used[*a]) {
                is_used[account] = true;
                at = accounts[account].parent;
            }
        }
        let empty =
            self.accounts.iter().zip(&is_used).filter(|(_, used)| !**used).map(|(a, _)| a.name.clone()).collect();
        let associations = persons.iter().zip(&homes);
        let associations =
            associations.map(|(user, home)| (names[*user].as_str(), home.map(|a| accounts[a].name.as_str())));
        let (priorities, highest) = AssociationPriority::of_users(&self.associations.priorities, associations);
        let (accounts, places) = ListedAccount::with_shares(&accounts);
        let others = self.other_users(&homes, &shares, &places);
        let homes = homes.into_iter().map(|home| home.and_then(|a| places[a])).collect();
        let tree = AccountTree::new(accounts, homes, shares).map_err(|e| self.source.error(0..0, e.to_string()))?;
        let tree = tree.with_priorities(priorities, highest).with_other_users(others);
        Ok(WorkloadWithAccounts { workload, tree, unknown, added, empty })
    }

    /// The users of the file who have no jobs, by account of the tree, given the listed account and the shares of each who has.
    fn other_users(
        &self,
        homes: &[Option<usize>],
        shares: &[Rational],
        places: &[Option<usize>],
    ) -> Vec<(Option<usize>, Members)> {
        let mut with_jobs = vec![Members::NONE; places.len() + 1];
        homes.iter().zip(shares).for_each(|(home, shares)| with_jobs[home.map_or(0, |a| a + 1)].add(1, shares));
        let places = std::iter::once(&None).chain(places);
        let others = self.members.iter().zip(&with_jobs).zip(places).map(|((all, known), place)| {
            let users = all.users.saturating_sub(known.users);
            let left = all.shares.as_ref().map(|all| all - &known.shares).filter(|left| *left > Rational::ZERO);
            (*place, Members { users, shares: left.unwrap_or_else(|| users.into()) })
        });
        others.collect()
    }

    /// The shares of a user in an account: its association's, else the user's, else 1.
    fn shares_of(&self, user: &str, account: Option<&str>) -> Rational {
        let association = (account.unwrap_or("root").to_string(), user.to_string());
        let of_user = || self.users.get(user).map(|entry| &entry.shares);
        self.associations.shares.get(&association).or_else(of_user).cloned().unwrap_or(Rational::ONE)
    }
}

/// The shares of an account; `None`: `parent`.
fn shares_or_parent(table: &Table<'_>, of: &str) -> Result<Option<Rational>, DocumentError> {
    let Some(node) = table.get("shares").filter(Node::is_text) else { return shares(table, of).map(Some) };
    match node.text()? {
        "parent" => Ok(None),
        word if word.starts_with(char::is_alphabetic) => {
            let problem = format!("found {word:?}, expected a number greater than 0, or \"parent\"");
            Err(node.with_label(format!("shares of {of:?}")).error(problem))
        }
        _ => shares(table, of).map(Some),
    }
}

fn listed_members(table: &Table<'_>) -> Result<ListedMembers, DocumentError> {
    let users = table.get("users").map(|node| whole(&node, 0, i64::from(u32::MAX), "a whole number, at least 0"));
    let shares = table.get("user_shares").map(|node| node.positive().map(|shares| shares.exact().clone()));
    Ok(ListedMembers { users: users.transpose()?.unwrap_or(0) as u32, shares: shares.transpose()? })
}

fn shares(table: &Table<'_>, of: &str) -> Result<Rational, DocumentError> {
    let Some(node) = table.get("shares") else { return Ok(Rational::ONE) };
    Ok(node.with_label(format!("shares of {of:?}")).positive()?.exact().clone())
}

fn account(node: &Node<'_>, number: &HashMap<&str, usize>) -> Result<usize, DocumentError> {
    let name = node.text()?;
    number.get(name).copied().ok_or_else(|| {
        let mut known: Vec<&str> = number.keys().copied().collect();
        known.sort_unstable();
        let hint = did_you_mean(name, known.iter().copied());
        node.error(format!("found {name:?}, expected the name of an [[account]] of this file{hint}"))
    })
}

/// The priorities and shares of associations.
fn associations(list: Option<Node<'_>>) -> Result<Associations, DocumentError> {
    let mut found = Associations::default();
    let Some(list) = list else { return Ok(found) };
    let mut seen = HashSet::new();
    for node in list.with_label("[[association]]").list()? {
        let table = node.table()?;
        table.deny_unknown(&["account", "partition", "priority", "shares", "user"])?;
        let text = |key: &str| table.get(key).map(|node| node.text()).transpose();
        let account = table.required("account", "the name of an account")?.text()?;
        let (user, partition) = (text("user")?, text("partition")?);
        if !seen.insert((account, user, partition)) {
            let problem = "found an association that is listed before, expected one for each account and user";
            return Err(table.error(problem));
        }
        let own_shares = table.get("shares");
        if let Some(node) = &own_shares {
            let user = user.filter(|_| partition.is_none());
            let problem = "found shares of no user of an account, expected those of accounts in [[account]] and of users \
                without a partition";
            let user = user.ok_or_else(|| node.error(problem))?;
            found.shares.insert((account.to_string(), user.to_string()), shares(&table, user)?);
        }
        if own_shares.is_some() && table.get("priority").is_none() {
            continue;
        }
        let priority = table.required("priority", "a whole number")?;
        found.priorities.push(AssociationPriority {
            account: account.to_string(),
            user: user.map(String::from),
            partition: partition.map(String::from),
            priority: whole(&priority, 0, i64::from(u32::MAX), "a whole number, at least 0")? as u32,
        });
    }
    Ok(found)
}

/// The tables of a list that may be missing.
fn named<'d>(list: Option<Node<'d>>, kind: &str) -> Result<Vec<(&'d str, Table<'d>)>, DocumentError> {
    list.map_or_else(|| Ok(Vec::new()), |list| list.named_tables(kind))
}

/// All accounts, each after its parent and else in the order given, or one that is on a cycle.
fn parents_first(parents: &[Option<usize>]) -> Result<Vec<usize>, usize> {
    let mut order = Vec::with_capacity(parents.len());
    let mut is_in = vec![false; parents.len()];
    for start in 0..parents.len() {
        let mut way = Vec::new();
        let mut at = Some(start);
        while let Some(account) = at.filter(|a| !is_in[*a]) {
            if way.len() > parents.len() {
                return Err(account);
            }
            way.push(account);
            at = parents[account];
        }
        for account in way.into_iter().rev() {
            is_in[account] = true;
            order.push(account);
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Resource, Task, Time, WorkloadBuilder, to_f64};

    fn file(text: &str) -> Result<AccountsFile, String> {
        let parsed = AccountsFile::parse(Source::new("a.toml", text), Some(Format::Toml));
        parsed.map_err(|e| e.to_string().split_once("a.toml").unwrap().1.to_string())
    }

    fn workload(tasks: &[(&str, Option<&str>)]) -> Workload {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for (i, (user, account)) in tasks.iter().enumerate() {
            let submit = Time::from_secs(i as u64);
            b.push(&Task { submit, user, account: *account, amounts: &[1], ..Task::default() });
        }
        b.finish().unwrap()
    }

    fn entitled(placed: &WorkloadWithAccounts) -> Vec<(&str, f64)> {
        let names = placed.workload.users().iter().map(String::as_str);
        names.enumerate().map(|(u, name)| (name, to_f64(placed.tree.user_entitlement(u)))).collect()
    }

    #[test]
    fn users_are_where_the_file_says_else_where_the_trace_says_else_at_the_root() {
        // Parents may come later.
        let text = "[[account]]\nname = \"physics\"\nparent = \"science\"\n\
                    [[account]]\nname = \"science\"\nshares = 3\n\
                    [[user]]\nname = \"ann\"\naccount = \"physics\"\nshares = 2\n[[user]]\nname = \"zoe\"\n";
        let w = workload(&[("bob", Some("science")), ("ann", Some("art")), ("cid", None), ("dan", Some("art"))]);
        let placed = file(text).unwrap().place(w).unwrap();
        // Root: science 3, art 1, cid 1; science: physics 1, bob 1.
        assert_eq!(entitled(&placed), [("bob", 0.3), ("ann", 0.3), ("cid", 0.2), ("dan", 0.2)]);
        assert_eq!((placed.unknown, placed.added), (vec!["zoe".to_string()], vec!["art".to_string()]));
        assert!(placed.empty.is_empty(), "physics has ann, science bob: {:?}", placed.empty);
        let w = workload(&[("cid", Some("physik"))]);
        assert_eq!(file(text).unwrap().place(w).unwrap().empty, ["science", "physics"].map(String::from));
    }

    #[test]
    fn who_works_under_several_accounts_is_one_user_for_each() {
        let w =
            workload(&[("ann", Some("x")), ("bob", Some("x")), ("ann", Some("y")), ("ann", Some("x")), ("ann", None)]);
        let placed = file("[[user]]\nname = \"ann\"\nshares = 3\n").unwrap().place(w).unwrap();
        // Root: x 1, y 1, ann@ 3; x: ann 3, bob 1.
        assert_eq!(entitled(&placed), [("ann@x", 0.15), ("bob", 0.05), ("ann@y", 0.2), ("ann@", 0.6)]);
        let users: Vec<u32> = placed.workload.columns().user.iter().map(|u| u.0).collect();
        assert_eq!(users, [0, 1, 2, 0, 3]);
    }

    #[test]
    fn priorities_are_of_users_in_accounts() {
        let text = "[[association]]\naccount = \"x\"\npriority = 4\n\
            [[association]]\naccount = \"y\"\nuser = \"ann\"\npriority = 6\n\
            [[association]]\naccount = \"x\"\nuser = \"ann\"\npartition = \"gpu\"\npriority = 60\n";
        let w =
            workload(&[("ann", Some("x")), ("bob", Some("x")), ("ann", Some("y")), ("cid", None), ("bob", Some("y"))]);
        let placed = file(text).unwrap().place(w).unwrap();
        let found: Vec<(&str, u32)> =
            placed.workload.users().iter().enumerate().map(|(u, n)| (n.as_str(), placed.tree.priority(u))).collect();
        assert_eq!(found, [("ann@x", 4), ("bob@x", 4), ("ann@y", 6), ("cid", 0), ("bob@y", 0)]);
        assert_eq!(placed.tree.highest_priority(), 60);
    }

    #[test]
    fn users_of_an_account_with_its_parents_shares_are_children_of_the_account_above() {
        let text = "[[account]]\nname = \"physics\"\nshares = 3\n[[account]]\nname = \"art\"\n\
            [[account]]\nname = \"optics\"\nparent = \"physics\"\nshares = \"parent\"\n\
            [[association]]\naccount = \"optics\"\nuser = \"ann\"\nshares = 2\n\
            [[association]]\naccount = \"optics\"\npriority = 7\n";
        let w = workload(&[
            ("ann", Some("optics")),
            ("bob", Some("physics")),
            ("cid", Some("art")),
            ("ann", Some("physics")),
        ]);
        let placed = file(text).unwrap().place(w).unwrap();
        // physics has 3 of 4: ann 2 by optics, bob 1, and ann 1 by physics itself.
        assert_eq!(entitled(&placed), [("ann@optics", 0.375), ("bob", 0.1875), ("cid", 0.25), ("ann@physics", 0.1875)]);
        let names: Vec<&str> = placed.tree.accounts().iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["physics", "art"]);
        assert_eq!([0, 1, 2, 3].map(|user| placed.tree.priority(user)), [7, 0, 0, 0]);
        assert_eq!((placed.added, placed.empty), (vec![], vec![]));
    }

    #[test]
    fn an_empty_file_is_the_accounts_of_the_trace() {
        let of_trace = || workload(&[("ann", Some("x")), ("bob", Some("y")), ("cid", Some("y"))]);
        assert_eq!(
            AccountsFile::empty().place(of_trace()).unwrap().tree,
            file("").unwrap().place(of_trace()).unwrap().tree
        );
        let placed = file("").unwrap().place(workload(&[("ann", Some("x")), ("bob", Some("y")), ("cid", Some("y"))]));
        assert_eq!(entitled(&placed.unwrap()), [("ann", 0.5), ("bob", 0.25), ("cid", 0.25)]);
    }

    #[test]
    fn what_is_wrong_says_where() {
        let error = |text: &str| file(text).unwrap_err();
        assert!(error("[[account]]\nname = \"a\"\nshares = 0\n").starts_with(":3:10: shares of \"a\": found"));
        assert!(error("[[account]]\nname = \"a\"\nparent = \"b\"\n").starts_with(":3:10: "));
        assert!(error("[[account]]\nname = \"a\"\n[[account]]\nname = \"a\"\n").starts_with(":4:8: "));
        assert!(error("[[account]]\nname = \"a\"\nweight = 1\n").starts_with(":3:1: "));
        assert!(error("[[accounts]]\nname = \"a\"\n").starts_with(":1:3: "));
        assert!(error("[[user]]\nname = \"a\"\naccount = \"b\"\n").starts_with(":3:11: "));
        assert!(error("[[association]]\naccount = \"b\"\npriority = -1\n").starts_with(":3:12: "));
        assert!(error("[[association]]\naccount = \"b\"\nshares = 2\n").starts_with(":3:10: "));
        assert!(error("[[association]]\naccount = \"b\"\nuser = \"a\"\n").starts_with(":1:1: "));
        let word = error("[[account]]\nname = \"a\"\nshares = \"much\"\n");
        assert!(
            word.starts_with(":3:10: shares of \"a\": found \"much\", expected a number greater than 0, or \"parent\""),
            "{word}"
        );
        assert!(error("[[account]]\nname = \"a\"\nusers = -1\n").starts_with(":3:9: "));
        assert!(error("user_shares = 0\n").starts_with(":1:15: "));
        let twice = "[[association]]\naccount = \"b\"\npriority = 1\n".repeat(2);
        assert!(error(&twice).contains("listed before"), "{}", error(&twice));
        let cycle = "[[account]]\nname = \"a\"\nparent = \"b\"\n[[account]]\nname = \"b\"\nparent = \"a\"\n";
        assert!(error(cycle).contains("found a cycle of parents"), "{}", error(cycle));
        assert!(error("[[account]]\nname = \"a\"\nparent = \"a\"\n").contains("found a cycle of parents"));
    }

    /// How many others there are and their shares, in the places of a workload of ann and bob in the account c.
    fn others(text: &str) -> Vec<(Option<usize>, u32, String)> {
        let placed = file(text).unwrap().place(workload(&[("ann", Some("c")), ("bob", Some("c"))])).unwrap();
        let (all, users) = placed.tree.of_all_users();
        (2..all.users()).map(|at| (all.account_of(at), users[at], all.shares(at).to_string())).collect()
    }

    #[test]
    fn users_without_jobs_are_those_beyond_the_workloads() {
        assert_eq!(others("[[account]]\nname = \"c\"\nusers = 2\n"), []);
        assert_eq!(others("[[account]]\nname = \"c\"\nusers = 1\nuser_shares = 9\n"), [], "fewer than have jobs");
        assert_eq!(others("[[account]]\nname = \"c\"\nusers = 5\n"), [(Some(0), 3, "3".into())]);
        assert_eq!(others("[[account]]\nname = \"c\"\nusers = 5\nuser_shares = 12\n"), [(Some(0), 3, "10".into())]);
        // Less than those with jobs have: one for each.
        assert_eq!(others("[[account]]\nname = \"c\"\nusers = 5\nuser_shares = 1.5\n"), [(Some(0), 3, "3".into())]);
        let nested = "users = 1\n[[account]]\nname = \"d\"\nparent = \"c\"\nusers = 4\nshares = \"parent\"\n[[account]]\nname = \"c\"\n";
        assert_eq!(others(nested), [(None, 1, "1".into()), (Some(0), 4, "4".into())]);
    }
}
