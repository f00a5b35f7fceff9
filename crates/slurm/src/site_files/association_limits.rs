//! Limits that accounts and users have from their associations.

use std::collections::HashMap;

use evenhand_model::{Cluster, Limit};

use super::partition_limits::{amounts, jobs};
use crate::associations::{Accounts, Association};
use crate::parse_values::Limit as TimeLimit;

/// Gives a cluster the limits that associations set. Returns what else they set, by column, as
/// [`Accounts::limits`] does.
///
/// Followed are GrpTRES, GrpJobs, MaxJobs, MaxTRES (of a job) and MaxWall, except on `root`, in associations of one
/// partition and of other resources than those of the cluster. What an account sets for each of its users (MaxJobs, MaxTRES,
/// MaxWall) is what a user has who sets nothing.
pub fn limit_associations(cluster: &mut Cluster, accounts: &Accounts) -> Vec<(String, String)> {
    let mut rest = Vec::new();
    for association in &accounts.associations {
        let below = accounts.accounts_below(&association.account);
        let mut group = Limit { accounts: below, ..Limit::new(name(association)) };
        group.users.extend(association.user.clone());
        if association.user.is_some() {
            group.accounts = vec![association.account.clone()];
        }
        for (column, value) in &association.limits {
            let is_group = column.to_ascii_lowercase().starts_with("grp");
            let can_follow = association.partition.is_none() && association.account != "root";
            // What an account sets for each of its users is looked up by user below.
            let is_followed = can_follow
                && match is_group {
                    true => set(&mut group, &cluster.resources, column, value).is_some(),
                    false => set(&mut Limit::new(""), &cluster.resources, column, value).is_some(),
                };
            if !is_followed {
                rest.push((
                    column.clone(),
                    format!("{}={value}", association.user.as_ref().unwrap_or(&association.account)),
                ));
            }
        }
        cluster.limits.extend(Some(group).filter(|limit| !limit.is_empty()));
    }
    let by_account: HashMap<&str, &Association> =
        accounts.associations.iter().filter(|a| a.user.is_none()).map(|a| (a.account.as_str(), a)).collect();
    for association in accounts.associations.iter().filter(|a| a.partition.is_none()) {
        let Some(user) = &association.user else { continue };
        let mut own = Limit {
            users: vec![user.clone()],
            accounts: vec![association.account.clone()],
            ..Limit::new(format!("{} each", name(association)))
        };
        for column in ["MaxJobs", "MaxTRES", "MaxWall"] {
            if let Some(value) = nearest(association, &by_account, column) {
                set(&mut own, &cluster.resources, column, value);
            }
        }
        cluster.limits.extend(Some(own).filter(|limit| !limit.is_empty()));
    }
    rest
}

/// The value of a column in an association, or in the nearest account above that sets it.
fn nearest<'a>(
    association: &'a Association,
    by_account: &HashMap<&str, &'a Association>,
    column: &str,
) -> Option<&'a str> {
    let mut here = association;
    // Accounts that name each other as their parents are no tree.
    for _ in 0..=by_account.len() {
        if here.account == "root" && here.user.is_none() {
            return None;
        }
        let value = here.limits.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
        if let Some((_, value)) = value {
            return Some(value);
        }
        let above = if here.user.is_some() { Some(here.account.as_str()) } else { here.parent.as_deref() };
        here = by_account.get(above?)?;
    }
    None
}

fn name(association: &Association) -> String {
    match &association.user {
        Some(user) => format!("{user} in {}", association.account),
        None => association.account.clone(),
    }
}

/// Sets what a column says; `None` if a simulation does not follow it.
fn set(limit: &mut Limit, resources: &[String], column: &str, value: &str) -> Option<()> {
    match column.to_ascii_lowercase().as_str() {
        "grptres" => limit.max = amounts(value, resources)?,
        "grpjobs" | "maxjobs" => limit.max_jobs = Some(jobs(value)?),
        "maxtres" => limit.max_job = amounts(value, resources)?,
        "maxwall" => limit.max_wall = Some(TimeLimit::parse(value)?.span()?),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use evenhand_model::{ResourceQuantity, Span};

    use super::*;

    #[test]
    fn accounts_limit_all_below_them_and_users_have_the_nearest_limit() {
        let text = "Account|ParentName|User|Partition|Share|GrpTRES|GrpJobs|MaxJobs|MaxWall|MaxSubmit\n\
            root||||1||9|||\nphysics|root|||1|cpu=64||4|01:00:00|\noptics|physics|||1|||||50\n\
            optics||ann||1||||02:00:00|\noptics||bob||1||2|3||\noptics||bob|gpu|1|||1||\n";
        let accounts = Accounts::parse(text).unwrap();
        let mut cluster = Cluster { resources: vec!["cpu".into()], ..Cluster::default() };
        let rest = limit_associations(&mut cluster, &accounts);
        let words = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
        let cpus = ResourceQuantity { exact: 64u64.into(), is_bytes: false };
        let hours = |hours: u64| Some(Span::from_secs(3600 * hours));
        let of = |name: &str, users: &[&str], accounts: &[&str]| Limit {
            users: words(users),
            accounts: words(accounts),
            ..Limit::new(name)
        };
        assert_eq!(
            cluster.limits,
            [
                Limit { max: vec![("cpu".into(), cpus)], ..of("physics", &[], &["physics", "optics"]) },
                Limit { max_jobs: Some(2), ..of("bob in optics", &["bob"], &["optics"]) },
                Limit { max_jobs: Some(4), max_wall: hours(2), ..of("ann in optics each", &["ann"], &["optics"]) },
                Limit { max_jobs: Some(3), max_wall: hours(1), ..of("bob in optics each", &["bob"], &["optics"]) },
            ]
        );
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(rest, [pair("GrpJobs", "root=9"), pair("MaxSubmit", "optics=50"), pair("MaxJobs", "bob=1")]);
    }

    #[test]
    fn accounts_that_name_each_other_as_parents_end_the_search() {
        let accounts = Accounts::parse("Account|ParentName|User|Share\nx|y||1\ny|x||1\nx||ann|1\n").unwrap();
        let mut cluster = Cluster { resources: vec!["cpu".into()], ..Cluster::default() };
        assert_eq!(limit_associations(&mut cluster, &accounts), []);
        assert_eq!(cluster.limits, []);
    }
}
