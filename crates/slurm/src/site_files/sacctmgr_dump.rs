//! The file that `sacctmgr dump CLUSTER` writes.

use crate::associations::{Accounts, Association, AssociationSetting, RawShares, parse_priority};
use crate::error::{TextError, quoted};
use crate::parse_values::is_no_limit;

const SOURCE: &str = "sacctmgr dump";

/// The associations of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The cluster's name.
    pub cluster: Option<String>,
    /// The associations, an account before its users.
    pub accounts: Accounts,
}

/// Options that a simulation has no use for, or that say again what a line's place says.
const WITHOUT_EFFECT: [&str; 10] = [
    "Description",
    "Organization",
    "DefaultAccount",
    "DefaultQOS",
    "DefaultWCKey",
    "WCKeys",
    "AdminLevel",
    "Coordinator",
    "Fairshare",
    "QOS",
];

/// Parses a dump: lines such as `Cluster - 'lab':Fairshare=1`, `Parent - 'root'`, `Account - 'physics':Fairshare=10`
/// and `User - 'ann':DefaultAccount='physics':Fairshare=2`, in which a `Parent` line names the account of the lines
/// after it. Lines such as `QOS - 'long':Priority=10`, with which dumps of Slurm 25.05 and later begin, are listed and not
/// read further.
///
/// # Errors
/// Returns an error if a line has another form, shares are malformed, or a user has no account.
pub fn parse_dump(text: &str) -> Result<Dump, TextError> {
    let mut dump = Dump::default();
    let mut parent: Option<String> = None;
    let mut known: Vec<String> = vec!["root".into()];
    for (at, whole) in text.lines().enumerate() {
        let line = whole.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |part: &str, expected: &str| TextError {
            source_name: SOURCE,
            line: at + 1,
            column: whole.find(part).unwrap_or(0) + 1,
            found: quoted(part),
            expected: expected.into(),
        };
        let parts = split(line);
        let kind_and_name = parts[0].split_once('-').map(|(kind, name)| (kind.trim(), unquoted(name.trim())));
        let Some((kind, name)) = kind_and_name.filter(|(_, name)| !name.is_empty()) else {
            return Err(error(line, "a line such as Account - 'physics':Fairshare=10"));
        };
        if kind == "QOS" {
            let (column, value) = (AssociationSetting::QOS.to_string(), name.to_string());
            dump.accounts.qos.push(AssociationSetting { column, value, line: at + 1 });
            continue;
        }
        let mut shares = RawShares::Number(1);
        let mut priority = None;
        let mut limits: Vec<(String, String)> = Vec::new();
        for part in &parts[1..] {
            let Some((option, value)) = part.split_once('=') else {
                return Err(error(part, "Option=value"));
            };
            if option.eq_ignore_ascii_case("Fairshare") || option.eq_ignore_ascii_case("Shares") {
                let parsed = RawShares::parse(unquoted(value));
                shares = parsed.ok_or_else(|| error(value, "shares, or parent"))?;
            } else if option.eq_ignore_ascii_case("Priority") {
                priority = Some(parse_priority(unquoted(value)).ok_or_else(|| error(value, "a whole number"))?);
            } else if is_no_limit(option, unquoted(value)) {
                continue;
            } else if !WITHOUT_EFFECT.iter().any(|known| known.eq_ignore_ascii_case(option)) {
                limits.push((option.to_string(), unquoted(value).to_string()));
            }
        }
        let association = Association {
            account: "root".into(),
            parent: None,
            user: None,
            partition: None,
            shares,
            priority,
            limits,
            line: at + 1,
        };
        match kind {
            "Cluster" => {
                dump.cluster = Some(name.to_string());
                if association.priority.is_some() || !association.limits.is_empty() {
                    dump.accounts.associations.push(association);
                }
            }
            "Parent" if !known.iter().any(|account| account == name) => {
                return Err(error(name, "an account that a line before this one defines"));
            }
            "Parent" => parent = Some(name.to_string()),
            "Account" => {
                known.push(name.to_string());
                dump.accounts.associations.push(Association {
                    account: name.to_string(),
                    parent: Some(parent.clone().unwrap_or_else(|| "root".into())),
                    ..association
                });
            }
            "User" => {
                let Some(account) = &parent else {
                    return Err(error(line, "a line Parent - 'ACCOUNT' before the users of an account"));
                };
                let partition = parts[1..].iter().find_map(|p| p.strip_prefix("Partition="));
                dump.accounts.associations.push(Association {
                    account: account.clone(),
                    user: Some(name.to_string()),
                    partition: partition.map(|p| unquoted(p).to_string()),
                    ..association
                });
            }
            _ => return Err(error(kind, "Cluster, Parent, Account, User or QOS")),
        }
    }
    Ok(dump)
}

/// Splits at colons outside of quotation marks.
fn split(line: &str) -> Vec<&str> {
    let mut quoted = false;
    line.split(|c| {
        quoted ^= c == '\'';
        c == ':' && !quoted
    })
    .collect()
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DUMP: &str = "# To edit this file\nCluster - 'lab':Fairshare=1:QOS='normal'\nParent - 'root'\n\
        User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n\
        Account - 'physics':Description='a: b':Organization='p':Fairshare=10:GrpTRES=cpu=100\n\
        Parent - 'physics'\nAccount - 'optics':Fairshare=parent\nUser - 'ann':DefaultAccount='physics':Fairshare=3:MaxJobs=5\n\
        Parent - 'optics'\nUser - 'bob':Partition='gpu':DefaultAccount='optics'\n";

    #[test]
    fn a_dump_has_accounts_users_and_limits() {
        let dump = parse_dump(DUMP).unwrap();
        assert_eq!(dump.cluster.as_deref(), Some("lab"));
        let accounts = dump.accounts.accounts();
        let short: Vec<_> = accounts.iter().map(|a| (a.name.as_str(), a.parent, a.shares.clone())).collect();
        assert_eq!(short, [("physics", None, Some(10u8.into())), ("optics", Some(0), None)]);
        let users = dump.accounts.users();
        assert_eq!(users[1], ("ann", "physics", RawShares::Number(3)));
        assert_eq!(users[2], ("bob", "optics", RawShares::Number(1)));
        assert_eq!(dump.accounts.associations[4].partition.as_deref(), Some("gpu"));
        let of =
            |column: &str, value: &str, line| AssociationSetting { column: column.into(), value: value.into(), line };
        let limits = [of("GrpTRES", "physics=cpu=100", 5), of("MaxJobs", "ann=5", 8), of("Partition", "bob=gpu", 10)];
        assert_eq!(dump.accounts.limits(), limits);
    }

    #[test]
    fn the_line_of_the_cluster_is_that_of_the_root() {
        let text = "Cluster - 'lab':Fairshare=1:QOS='normal':GrpJobs=9:Priority=4\nParent - 'root'\nAccount - 'art'\n\
            Account - 'lab':Priority=40\nParent - 'lab'\nUser - 'ann':Priority=7\n";
        let accounts = parse_dump(text).unwrap().accounts;
        let priorities = accounts.priorities();
        let found: Vec<(&str, Option<&str>, u32)> =
            priorities.iter().map(|p| (p.account.as_str(), p.user.as_deref(), p.priority)).collect();
        assert_eq!(found, [("root", None, 4), ("art", None, 4), ("lab", None, 40), ("lab", Some("ann"), 7)]);
        assert_eq!(accounts.limits()[0].value, "root=9");
        let error = parse_dump("Account - 'a':Priority=high\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr dump:1:24: found \"high\", expected a whole number");
    }

    #[test]
    fn the_number_for_parent_is_parent_and_lines_of_qos_are_listed() {
        // As 22.05.8 writes the associations, and 25.05 the QOS.
        let text = "QOS - 'standard':Description='Normal: all':Flags='DenyOnLimit':GraceTime=0:MaxTRESPerUser=cpu=8\n\
            QOS - 'long':Priority=10\nCluster - 'lab':Fairshare=1:QOS='standard'\nParent - 'root'\n\
            Account - 'opt':Description='opt':Organization='phys':Fairshare=2147483647\nParent - 'opt'\n\
            User - 'ann':DefaultAccount='opt':WCKeys='k1,k2':Fairshare=2147483647\nUser - 'bob':Fairshare=2147483646\n";
        let accounts = parse_dump(text).unwrap().accounts;
        assert_eq!(accounts.accounts()[0].shares, None);
        let shares: Vec<RawShares> = accounts.users().iter().map(|(.., shares)| *shares).collect();
        assert_eq!(shares, [RawShares::Parent, RawShares::Number(2_147_483_646)]);
        let of = |value: &str, line| AssociationSetting { column: "QOS".into(), value: value.into(), line };
        assert_eq!(accounts.limits(), [of("standard", 1), of("long", 2)]);
        let error = parse_dump("WCKey - 'a'\n").unwrap_err().to_string();
        assert_eq!(error, "sacctmgr dump:1:1: found \"WCKey\", expected Cluster, Parent, Account, User or QOS");
    }

    #[test]
    fn errors_have_a_place() {
        let error = |text: &str| parse_dump(text).unwrap_err().to_string();
        assert_eq!(
            error("Cluster - 'lab'\nParent - 'x'\n"),
            "sacctmgr dump:2:11: found \"x\", expected an account that a line before this one defines"
        );
        assert_eq!(
            error("Account - 'a':Fairshare=many\n"),
            "sacctmgr dump:1:25: found \"many\", expected shares, or parent"
        );
        assert!(error("User - 'ann'\n").contains("expected a line Parent"));
        assert!(error("Account\n").contains("expected a line such as"));
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,40}|((Cluster|Parent|Account|User|QOS) - '[a-c]?'(:[A-Za-z]{0,9}=?[0-9a-z]{0,4}){0,3}\n){0,5}") {
            let _ = parse_dump(&text);
        }
    }
}
