//! The associations of accounts and users with their shares: `sacctmgr show association`.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use evenhand_model::{AccountTree, AccountsError, AssociationPriority, ListedAccount, Members, Rational};

use crate::error::{ReadError, TextError, quoted};
use crate::parse_table::Table;
use crate::parse_values::{is_no_limit, number};
use crate::run_commands::{Call, Commands};

/// The columns of `sacctmgr show association` where no format is given. It has no column for the parent account.
const DEFAULT_ASSOCIATION_COLUMNS: &str = "Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|\
    GrpWall|GrpTRESMins|MaxJobs|MaxTRES|MaxTRESPerNode|MaxSubmit|MaxWall|MaxTRESMins|QOS|Def QOS|GrpTRESRunMins";
/// Columns that are read as accounts, users, shares and priorities, or that limit nothing.
const NO_LIMITS: [&str; 13] = [
    "Cluster",
    "Account",
    "ParentName",
    "Par Name",
    "User",
    "Partition",
    "Share",
    "Priority",
    "ID",
    "LFT",
    "RGT",
    "QOS",
    "Def QOS",
];
const COLUMNS: &str =
    "format=cluster,account,parentname,user,partition,share,priority,grptres,grpjobs,maxjobs,maxtres,maxwall";
/// The shares that stand for `parent` in Slurm's database (`SLURMDB_FS_USE_PARENT`) and in a file of `sacctmgr dump`.
const PARENT: u64 = 0x7fff_ffff;
/// The shares that stand for 0 in a tree, which divides by them.
const ALMOST_ZERO: (u32, u32) = (1, 1_000_000);

/// The associations of a cluster that the user may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// In the order of `sacctmgr`: an account before its users.
    pub associations: Vec<Association>,
    /// The QOS that the text defines beside them, in the column [`AssociationSetting::QOS`]; none of them is followed.
    pub qos: Vec<AssociationSetting>,
}

/// An association: an account, or a user in an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The name of the account.
    pub account: String,
    /// The parent account; `None` for `root` and for users.
    pub parent: Option<String>,
    /// The user; `None` for the account itself.
    pub user: Option<String>,
    /// The partition, if the association is limited to one.
    pub partition: Option<String>,
    /// Its shares among its siblings.
    pub shares: RawShares,
    /// What it adds to the priority of its jobs; `None`: what the account or its parent adds.
    pub priority: Option<u32>,
    /// What it sets beside shares and priority, by column.
    pub limits: Vec<(String, String)>,
    /// The line of the text, counted from 1.
    pub line: usize,
}

/// What an association sets and a simulation does not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationSetting {
    /// The column: `GrpWall`.
    pub column: String,
    /// For which account or user, and to what: `physics=1-00:00:00`.
    pub value: String,
    /// The line of the text, counted from 1; 0 if it is not known.
    pub line: usize,
}

impl AssociationSetting {
    /// The column of a line of `sacctmgr dump` that defines a QOS; the value is its name.
    pub const QOS: &str = "QOS";
}

impl Association {
    /// Returns a setting of this association.
    pub(crate) fn setting(&self, column: &str, value: &str) -> AssociationSetting {
        let of = self.user.as_ref().unwrap_or(&self.account);
        AssociationSetting { column: column.to_string(), value: format!("{of}={value}"), line: self.line }
    }
}

/// The shares of an association (`Share`, RawShares).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawShares {
    /// A number of shares.
    Number(u64),
    /// `Fairshare=parent`: an account is transparent, and a user is a child of the account with 1 share.
    Parent,
}

impl RawShares {
    pub(crate) fn parse(text: &str) -> Option<RawShares> {
        match text {
            "parent" => Some(RawShares::Parent),
            _ => number(text).map(|n| if n == PARENT { RawShares::Parent } else { RawShares::Number(n) }),
        }
    }

    /// Returns the shares as used in an account tree: 1 for `parent`, and a very small number for 0.
    pub fn in_tree(self) -> Rational {
        match self {
            RawShares::Parent => Rational::ONE,
            RawShares::Number(0) => Rational::from_parts(ALMOST_ZERO.0.into(), ALMOST_ZERO.1.into()),
            RawShares::Number(n) => n.into(),
        }
    }
}

/// An account tree with users as its leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationTree {
    /// The tree; its users are those of `users`, in the same order.
    pub tree: AccountTree,
    /// The name and account of each user.
    pub users: Vec<(String, String)>,
    /// The account of the tree whose children the users of each account are; `None`: of the root.
    pub homes: HashMap<String, Option<usize>>,
}

impl Accounts {
    /// Returns the command that prints the associations of a cluster (of all clusters for `None`).
    pub fn call(cluster: Option<&str>) -> Call {
        let words = ["--parsable2", "show", "association", COLUMNS].map(String::from);
        Call::new("sacctmgr", words.into_iter().chain(cluster.map(|name| format!("cluster={name}"))))
    }

    /// Reads the associations of a cluster.
    ///
    /// # Errors
    /// Returns an error if `sacctmgr` fails or its output is not understood.
    pub fn read(commands: &dyn Commands, cluster: Option<&str>) -> Result<Accounts, ReadError> {
        Ok(Accounts::parse(&commands.run(&Accounts::call(cluster))?)?)
    }

    /// Parses the output of `sacctmgr -P show assoc` with a header line.
    ///
    /// # Errors
    /// Returns an error if there is no header, or shares are malformed.
    pub fn parse(text: &str) -> Result<Accounts, TextError> {
        let table = Table::of("sacctmgr show association", text, &["Account", "User", "Share"])?;
        let mut associations = Vec::new();
        for row in table.rows() {
            let row = row?;
            let text = |name: &str| row.get(name).map(|f| f.text.to_string());
            let limits = table.headers().iter().filter(|h| !NO_LIMITS.iter().any(|n| n.eq_ignore_ascii_case(h)));
            let limits = limits.filter_map(|header| Some((header.to_string(), row.get(header)?.text.to_string())));
            let limits = limits.filter(|(column, value)| !is_no_limit(column, value));
            let account = row.required("Account", "an account's name")?;
            let shares = row.get("Share").map(|f| f.read("shares, or parent", RawShares::parse)).transpose()?;
            associations.push(Association {
                account: account.text.to_string(),
                parent: text("ParentName").or_else(|| text("Par Name")),
                user: text("User"),
                partition: text("Partition"),
                shares: shares.unwrap_or(RawShares::Number(1)),
                priority: row.get("Priority").map(|f| f.read("a whole number", parse_priority)).transpose()?,
                limits: limits.collect(),
                line: account.line,
            });
        }
        Ok(Accounts { associations, qos: Vec::new() })
    }

    /// Parses the output of `sacctmgr -P show assoc` with a header line, or without one in sacctmgr's default order of columns.
    ///
    /// # Errors
    /// Returns an error if there is neither a header nor the columns up to shares, or shares are malformed.
    pub fn parse_with_any_header(text: &str) -> Result<Accounts, TextError> {
        let first = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty());
        let (line, first) = first.map_or((1, ""), |(at, line)| (at + 1, line));
        let fields: Vec<&str> = first.split('|').map(str::trim).collect();
        if fields.iter().any(|field| field.eq_ignore_ascii_case("Account")) {
            return Accounts::parse(text);
        }
        let header: Vec<&str> = DEFAULT_ASSOCIATION_COLUMNS.split('|').take(fields.len()).collect();
        if !header.contains(&"Share") {
            return Err(TextError {
                source_name: "sacctmgr show association",
                line,
                column: 1,
                found: quoted(first),
                expected:
                    "a header line with Account, User, Share, as sacctmgr -P prints it without -n, or lines with the \
                    columns Cluster|Account|User|Partition|Share"
                        .into(),
            });
        }
        // Lines end with a separator in sacctmgr -p.
        let end = if first.ends_with('|') && fields.len() > header.len() { "|" } else { "" };
        let mut accounts = Accounts::parse(&format!("{}{end}\n{text}", header.join("|")))
            .map_err(|error| TextError { line: error.line.saturating_sub(1).max(1), ..error })?;
        accounts.associations.iter_mut().for_each(|association| association.line -= 1);
        Ok(accounts)
    }

    /// Returns what the associations set beside shares and priorities, and priorities of one partition that count for no job.
    /// The QOS of the text are among them.
    pub fn limits(&self) -> Vec<AssociationSetting> {
        let each =
            |a: &Association| a.limits.iter().map(|(column, value)| a.setting(column, value)).collect::<Vec<_>>();
        self.associations.iter().flat_map(each).chain(self.not_followed()).collect()
    }

    /// Returns the priorities of the associations of accounts and users, without those of users that are as their account's;
    /// nothing if all are 0. What an association does not set is as in the account above.
    pub fn priorities(&self) -> Vec<AssociationPriority> {
        let found = self.known_priorities();
        let is_any = found.iter().any(|(one, _)| one.priority > 0);
        found.into_iter().map(|(one, _)| one).filter(|_| is_any).collect()
    }

    /// Returns what a simulation follows in no case: priorities of one partition that count for no job, and the QOS of the
    /// text.
    pub(crate) fn not_followed(&self) -> Vec<AssociationSetting> {
        self.priorities_of_partitions().into_iter().chain(self.qos.iter().cloned()).collect()
    }

    /// Returns the priorities of associations of one partition that count for no job.
    fn priorities_of_partitions(&self) -> Vec<AssociationSetting> {
        let setting = |(one, association): (AssociationPriority, &Association)| {
            let partition = one.partition?;
            Some(association.setting("Priority", &format!("{} in {partition}", one.priority)))
        };
        self.known_priorities().into_iter().filter_map(setting).collect()
    }

    /// The priorities that are listed, each with its association.
    fn known_priorities(&self) -> Vec<(AssociationPriority, &Association)> {
        let of_accounts = self.account_priorities();
        let counted = self.counted();
        let of_account = |a: &Association| of_accounts.get(a.account.as_str()).copied().unwrap_or(0);
        let priority_of = |a: &Association| a.priority.filter(|_| a.user.is_some()).unwrap_or_else(|| of_account(a));
        let mut found = Vec::new();
        for (at, a) in self.associations.iter().enumerate() {
            let priority = priority_of(a);
            let (unlisted, partition) = match counted.get(&(a.user.as_deref(), a.account.as_str())) {
                Some(&counted) if counted != at => match &a.partition {
                    // The same association of another cluster.
                    None => continue,
                    partition => (priority_of(&self.associations[counted]), partition.clone()),
                },
                _ => (a.user.as_ref().map_or(0, |_| of_account(a)), None),
            };
            if priority != unlisted {
                let (account, user) = (a.account.clone(), a.user.clone());
                found.push((AssociationPriority { account, user, partition, priority }, a));
            }
        }
        found
    }

    /// Returns the association of each account and user that counts for its jobs in all partitions: the first without a
    /// partition, or the first where all have one.
    fn counted(&self) -> HashMap<(Option<&str>, &str), usize> {
        let mut counted: HashMap<(Option<&str>, &str), usize> = HashMap::new();
        for (at, a) in self.associations.iter().enumerate() {
            match counted.entry((a.user.as_deref(), &a.account)) {
                Entry::Vacant(new) => {
                    new.insert(at);
                }
                Entry::Occupied(mut first) => {
                    if a.partition.is_none() && self.associations[*first.get()].partition.is_some() {
                        first.insert(at);
                    }
                }
            }
        }
        counted
    }

    /// Returns the priority of each account: its own, or that of the account above.
    fn account_priorities(&self) -> HashMap<&str, u32> {
        let own = self.associations.iter().filter(|a| a.user.is_none());
        let by_name: HashMap<&str, &Association> = own.map(|a| (a.account.as_str(), a)).collect();
        let priority = |name: &str| {
            let mut at = by_name.get(name).copied();
            // Accounts that name each other as their parents are no tree.
            for _ in 0..=by_name.len() {
                let Some(here) = at else { break };
                if here.priority.is_some() || here.account == "root" {
                    return here.priority.unwrap_or(0);
                }
                at = by_name.get(here.parent.as_deref().unwrap_or("root")).copied();
            }
            0
        };
        by_name.keys().map(|name| (*name, priority(name))).collect()
    }

    /// Returns an account and all accounts below it.
    pub fn accounts_below(&self, account: &str) -> Vec<String> {
        let mut below = vec![account.to_string()];
        let mut at = 0;
        while at < below.len() {
            let children =
                self.associations.iter().filter(|a| a.user.is_none() && a.parent.as_deref() == Some(&below[at]));
            let new: Vec<String> = children.map(|a| a.account.clone()).filter(|name| !below.contains(name)).collect();
            below.extend(new);
            at += 1;
        }
        below
    }

    /// Returns whether `root` is the only account.
    pub fn is_flat(&self) -> bool {
        self.associations.iter().all(|a| a.account == "root" || a.user.is_some())
    }

    /// Returns the accounts without `root`, each after its parent.
    pub fn accounts(&self) -> Vec<ListedAccount> {
        let own = self.associations.iter().filter(|a| a.user.is_none());
        let by_name: HashMap<&str, &Association> = own.clone().map(|a| (a.account.as_str(), a)).collect();
        let mut place: HashMap<&str, usize> = HashMap::new();
        let mut accounts: Vec<ListedAccount> = Vec::new();
        for association in own {
            // The path from this account up to one that is already placed, or to the root.
            let mut path: Vec<&Association> = Vec::new();
            let mut at = Some(association);
            while let Some(here) = at {
                let placed = place.contains_key(here.account.as_str());
                if here.account == "root" || placed || path.iter().any(|w| w.account == here.account) {
                    break;
                }
                path.push(here);
                at = here.parent.as_deref().and_then(|parent| by_name.get(parent).copied());
            }
            for here in path.into_iter().rev() {
                let parent = here.parent.as_deref().and_then(|name| place.get(name).copied());
                let shares = (here.shares != RawShares::Parent).then(|| here.shares.in_tree());
                place.insert(&here.account, accounts.len());
                accounts.push(ListedAccount { name: here.account.clone(), parent, shares });
            }
        }
        accounts
    }

    /// Returns each user with account and shares, once: those of the association without a partition, or of the first where
    /// all have one.
    pub fn users(&self) -> Vec<(&str, &str, RawShares)> {
        let counted = self.counted();
        let users = self.associations.iter().enumerate().filter_map(|(at, a)| {
            let (user, account) = (a.user.as_deref()?, a.account.as_str());
            (counted.get(&(Some(user), account)) == Some(&at)).then_some((user, account, a.shares))
        });
        users.collect()
    }

    /// Returns how many users each account has, `root` among them, and their shares together.
    pub fn members(&self) -> BTreeMap<String, Members> {
        let mut members = BTreeMap::new();
        for (_, account, shares) in self.users() {
            members.entry(account.to_string()).or_insert(Members::NONE).add(1, &shares.in_tree());
        }
        members
    }

    /// Returns the tree with each user of each account as a leaf.
    ///
    /// # Errors
    /// Returns an error if the associations do not form a tree, which those of `sacctmgr` always do.
    pub fn association_tree(&self) -> Result<AssociationTree, AccountsError> {
        let listed = self.accounts();
        let (accounts, places) = ListedAccount::with_shares(&listed);
        let homes: HashMap<String, Option<usize>> = listed.into_iter().map(|a| a.name).zip(places).collect();
        let users = self.users();
        let user_accounts = users.iter().map(|(_, account, _)| homes.get(*account).copied().flatten()).collect();
        let shares = users.iter().map(|(.., shares)| shares.in_tree()).collect();
        let users = users.iter().map(|(user, account, _)| (user.to_string(), account.to_string())).collect();
        Ok(AssociationTree { tree: AccountTree::new(accounts, user_accounts, shares)?, users, homes })
    }
}

/// A priority; what is larger than any is the largest.
pub(crate) fn parse_priority(text: &str) -> Option<u32> {
    number(text).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
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
        let leaves = Accounts::parse(SITE).unwrap().association_tree().unwrap();
        let entitled: Vec<(String, f64)> = leaves
            .users
            .iter()
            .enumerate()
            .map(|(u, (user, account))| (format!("{user}@{account}"), to_f64(leaves.tree.user_entitlement(u))))
            .collect();
        // Root: root's own user 1, art 1, science 2. physics is transparent: ann has 3 beside biology with 1.
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
    fn parents_may_follow_their_children_and_cycles_are_cut() {
        let text = "Account|ParentName|User|Share\nb|a||1\na|root||2\nx|y||1\ny|x||1\n";
        let accounts = Accounts::parse(text).unwrap().accounts();
        let names: Vec<(&str, Option<usize>)> = accounts.iter().map(|a| (a.name.as_str(), a.parent)).collect();
        assert_eq!(names, [("a", None), ("b", Some(0)), ("y", None), ("x", Some(2))]);
        let error = Accounts::parse("Account|User|Share\nb||many\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr show association:2:4: found \"many\", expected shares, or parent");
    }

    #[test]
    fn a_text_without_a_header_is_quoted_itself() {
        let parse = |text: &str| Accounts::parse_with_any_header(text).map_err(|error| error.to_string());
        let associations = parse("lab|art||||\nlab|art|zoe||7|\n").unwrap().associations;
        assert_eq!((associations[1].shares, associations[1].line), (RawShares::Number(7), 2));
        let error = parse("\nart|zoe\n").unwrap_err();
        assert!(
            error.starts_with("sacctmgr show association:2:1: found \"art|zoe\", expected a header line"),
            "{error}"
        );
        let error = parse("lab|art||||\nlab|art|zoe||many|\n").unwrap_err();
        assert_eq!(error, "sacctmgr show association:2:14: found \"many\", expected shares, or parent");
    }

    #[test]
    fn limits_are_found_by_column() {
        let text = "Account|User|Share|GrpTRES|MaxJobs|QOS|\na||1|cpu=10||normal|\na|ann|1||5|normal|\n";
        let limits = Accounts::parse(text).unwrap().limits();
        let of =
            |column: &str, value: &str, line| AssociationSetting { column: column.into(), value: value.into(), line };
        assert_eq!(limits, [of("GrpTRES", "a=cpu=10", 2), of("MaxJobs", "ann=5", 3)]);
    }

    #[test]
    fn priorities_are_inherited_and_the_first_partition_s_counts() {
        let text = "Account|ParentName|User|Partition|Share|Priority\nroot||||1|2\nart|root|||1|\nart||ann||1|9\nart||bob||1|0\n\
            art||cid||1|\noil|art|||1|7\noil||ann|gpu|1|5\noil||ann|cpu|1|6\noil||ann|old|1|5\n";
        let accounts = Accounts::parse(text).unwrap();
        let all = accounts.priorities();
        let short: Vec<String> = all
            .iter()
            .map(|p| format!("{} {:?} {:?} {}", p.account, p.user.as_deref(), p.partition.as_deref(), p.priority))
            .collect();
        let expected = [
            "root None None 2",
            "art None None 2",
            "art Some(\"ann\") None 9",
            "art Some(\"bob\") None 0",
            "oil None None 7",
            "oil Some(\"ann\") None 5",
            "oil Some(\"ann\") Some(\"cpu\") 6",
        ];
        assert_eq!(short, expected);
        let of = AssociationSetting { column: "Priority".into(), value: "ann=6 in cpu".into(), line: 9 };
        assert_eq!(accounts.priorities_of_partitions(), [of]);
        assert!(Accounts::parse(SITE).unwrap().priorities().is_empty());
        let error = Accounts::parse("Account|User|Share|Priority\na||1|high\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr show association:2:6: found \"high\", expected a whole number");
    }

    #[test]
    fn an_association_with_a_partition_counts_only_where_none_is_without() {
        let text = "Account|ParentName|User|Partition|Share|Priority\nroot||||1|\nphys|root|||1|4\nphys||john|p|9|8\n\
            phys||john|q|7|2\nphys||john||2|5\nphys||ann|p|3|6\nphys||ann|q|1|1\nphys||john||6|7\n";
        let accounts = Accounts::parse(text).unwrap();
        let own = |user, shares| (user, "phys", RawShares::Number(shares));
        assert_eq!(accounts.users(), [own("john", 2), own("ann", 3)]);
        assert_eq!(accounts.members()["phys"], Members { users: 2, shares: 5u8.into() });
        let priorities = accounts.priorities();
        let of_users: Vec<(&str, Option<&str>, u32)> =
            priorities.iter().filter_map(|p| Some((p.user.as_deref()?, p.partition.as_deref(), p.priority))).collect();
        let expected = [
            ("john", Some("p"), 8),
            ("john", Some("q"), 2),
            ("john", None, 5),
            ("ann", None, 6),
            ("ann", Some("q"), 1),
        ];
        assert_eq!(of_users, expected);
        let dump = "Parent - 'root'\nAccount - 'phys'\nParent - 'phys'\nUser - 'john':Partition='p':Fairshare=9\n\
            User - 'john':Fairshare=2\n";
        assert_eq!(crate::parse_dump(dump).unwrap().accounts.users(), [own("john", 2)]);
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
            let leaves = accounts.association_tree().unwrap();
            let sum = (0..leaves.users.len()).fold(Rational::ZERO, |sum, u| sum + leaves.tree.user_entitlement(u));
            prop_assert!(leaves.users.is_empty() || sum == Rational::ONE);
        }
    }
}
