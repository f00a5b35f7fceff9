//! The file that `sacctmgr dump CLUSTER` writes.

use crate::associations::{Accounts, Association, RawShares};
use crate::error::{TextError, quoted};

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
const WITHOUT_EFFECT: [&str; 7] =
    ["Description", "Organization", "DefaultAccount", "DefaultWCKey", "AdminLevel", "Coordinator", "Fairshare"];

/// Parses a dump: lines such as `Cluster - 'lab':Fairshare=1`, `Parent - 'root'`, `Account - 'physics':Fairshare=10`
/// and `User - 'ann':DefaultAccount='physics':Fairshare=2`, in which a `Parent` line names the account of the lines
/// after it.
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
        let mut shares = RawShares::Number(1);
        let mut limits: Vec<(String, String)> = Vec::new();
        for part in &parts[1..] {
            let Some((option, value)) = part.split_once('=') else {
                return Err(error(part, "Option=value"));
            };
            if option.eq_ignore_ascii_case("Fairshare") || option.eq_ignore_ascii_case("Shares") {
                let parsed = RawShares::parse(unquoted(value));
                shares = parsed.ok_or_else(|| error(value, "shares, or parent"))?;
            } else if !WITHOUT_EFFECT.iter().any(|known| known.eq_ignore_ascii_case(option)) {
                limits.push((option.to_string(), unquoted(value).to_string()));
            }
        }
        match kind {
            "Cluster" => dump.cluster = Some(name.to_string()),
            "Parent" if !known.iter().any(|account| account == name) => {
                return Err(error(name, "an account that a line before this one defines"));
            }
            "Parent" => parent = Some(name.to_string()),
            "Account" => {
                known.push(name.to_string());
                dump.accounts.associations.push(Association {
                    account: name.to_string(),
                    parent: Some(parent.clone().unwrap_or_else(|| "root".into())),
                    user: None,
                    partition: None,
                    shares,
                    limits,
                });
            }
            "User" => {
                let Some(account) = &parent else {
                    return Err(error(line, "a line Parent - 'ACCOUNT' before the users of an account"));
                };
                let partition = parts[1..].iter().find_map(|p| p.strip_prefix("Partition="));
                dump.accounts.associations.push(Association {
                    account: account.clone(),
                    parent: None,
                    user: Some(name.to_string()),
                    partition: partition.map(|p| unquoted(p).to_string()),
                    shares,
                    limits,
                });
            }
            _ => return Err(error(kind, "Cluster, Parent, Account or User")),
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
        assert_eq!(
            accounts.iter().map(|a| (a.name.as_str(), a.shares.to_string())).collect::<Vec<_>>(),
            [("physics", "10".into())]
        );
        let users = dump.accounts.users();
        assert_eq!(users[1], ("ann", "physics", RawShares::Number(3)));
        assert_eq!(users[2], ("bob", "optics", RawShares::Number(1)));
        assert_eq!(dump.accounts.associations[4].partition.as_deref(), Some("gpu"));
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        let limits = [pair("GrpTRES", "physics=cpu=100"), pair("MaxJobs", "ann=5"), pair("Partition", "bob=gpu")];
        assert_eq!(dump.accounts.limits(), limits);
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
        fn no_text_causes_a_panic(text in "\\PC{0,40}|((Cluster|Parent|Account|User) - '[a-c]?'(:[A-Za-z]{0,9}=?[0-9a-z]{0,4}){0,3}\n){0,5}") {
            let _ = parse_dump(&text);
        }
    }
}
