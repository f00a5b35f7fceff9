//! Writes cluster files and accounts files, in the formats that [`read_cluster`](crate::read_cluster) and
//! [`AccountsFile`](crate::AccountsFile) read.

use std::collections::BTreeMap;

use evenhand_documents::toml_string as quoted;
use evenhand_model::calendar::iso_8601;
use evenhand_model::{
    AssociationPriority, Cluster, ListedAccount, Members, PreemptMode, Rational, ResourceQuantity, SiteTime, Span, UBig,
};

/// Returns the text of a cluster file that reads back as `cluster`.
pub fn cluster_text(cluster: &Cluster) -> String {
    let mut text = String::new();
    for group in &cluster.groups {
        line(&mut text, "[[machines]]");
        line(&mut text, &format!("name = {}", quoted(&group.name)));
        line(&mut text, &format!("count = {}", group.count));
        for (resource, capacity) in cluster.resources.iter().zip(&group.capacity) {
            line(&mut text, &format!("{} = {}", key(resource), quantity(capacity)));
        }
        if group.speed != Rational::ONE {
            line(&mut text, &format!("speed = {}", number(&group.speed)));
        }
        if group.weight != 1 {
            line(&mut text, &format!("weight = {}", group.weight));
        }
        properties(&mut text, &group.properties);
        if !group.hosts.is_empty() {
            line(&mut text, &format!("hosts = {}", quoted(&group.hosts.join(","))));
        }
        text.push('\n');
    }
    for queue in &cluster.queues {
        line(&mut text, "[[queues]]");
        line(&mut text, &format!("name = {}", quoted(&queue.name)));
        if queue.price != Rational::ONE {
            line(&mut text, &format!("price = {}", number(&queue.price)));
        }
        if queue.priority != 0 {
            line(&mut text, &format!("priority = {}", queue.priority));
        }
        if let Some(wall) = queue.max_wall {
            line(&mut text, &format!("max_wall = {}", quoted(&span(wall))));
        }
        for (name, amounts) in [("max_job", &queue.max_job), ("max_user", &queue.max_user), ("max", &queue.max)] {
            limits(&mut text, name, amounts);
        }
        for (name, jobs) in [("max_user_jobs", queue.max_user_jobs), ("max_jobs", queue.max_jobs)] {
            jobs.iter().for_each(|jobs| line(&mut text, &format!("{name} = {jobs}")));
        }
        properties(&mut text, &queue.properties);
        if queue.whole_machines {
            line(&mut text, "whole_machines = true");
        }
        preempted(&mut text, queue.preempt_mode, queue.grace_time);
        text.push('\n');
    }
    for limit in &cluster.limits {
        line(&mut text, "[[limits]]");
        line(&mut text, &format!("name = {}", quoted(&limit.name)));
        for (name, list) in [
            ("queues", &limit.queues),
            ("accounts", &limit.accounts),
            ("users", &limit.users),
            ("qos", &limit.qos),
            ("except_qos", &limit.except_qos),
        ] {
            names(&mut text, name, list);
        }
        if limit.each_user {
            line(&mut text, "each_user = true");
        }
        for (name, amounts) in [("max", &limit.max), ("max_job", &limit.max_job)] {
            limits(&mut text, name, amounts);
        }
        limit.max_jobs.iter().for_each(|jobs| line(&mut text, &format!("max_jobs = {jobs}")));
        limit.max_submitted.iter().for_each(|jobs| line(&mut text, &format!("max_submitted = {jobs}")));
        limit.max_wall.iter().for_each(|wall| line(&mut text, &format!("max_wall = {}", quoted(&span(*wall)))));
        text.push('\n');
    }
    for qos in &cluster.qos {
        line(&mut text, "[[qos]]");
        line(&mut text, &format!("name = {}", quoted(&qos.name)));
        if qos.priority > 0 {
            line(&mut text, &format!("priority = {}", qos.priority));
        }
        qos.usage_factor.iter().for_each(|factor| line(&mut text, &format!("usage_factor = {}", number(factor))));
        names(&mut text, "preempts", &qos.preempts);
        if qos.preempts_within {
            line(&mut text, "preempts_within = true");
        }
        let exempt = qos.preempt_exempt_time;
        exempt.iter().for_each(|time| line(&mut text, &format!("preempt_exempt_time = {}", quoted(&span(*time)))));
        preempted(&mut text, qos.preempt_mode, qos.grace_time);
        text.push('\n');
    }
    for licence in &cluster.licences {
        line(&mut text, "[[licences]]");
        line(&mut text, &format!("name = {}", quoted(&licence.name)));
        line(&mut text, &format!("count = {}\n", licence.count));
    }
    for (kind, closures) in [("reservations", &cluster.reservations), ("outages", &cluster.outages)] {
        for closure in closures {
            line(&mut text, &format!("[[{kind}]]"));
            line(&mut text, &format!("name = {}", quoted(&closure.name)));
            names(&mut text, "machines", &closure.machines);
            line(&mut text, &format!("from = {}", site_time(closure.from)));
            closure.to.iter().for_each(|to| line(&mut text, &format!("to = {}", site_time(*to))));
            if closure.may_overlap {
                line(&mut text, "may_overlap = true");
            }
            text.push('\n');
        }
    }
    text
}

/// What becomes of jobs that are preempted.
fn preempted(text: &mut String, mode: Option<PreemptMode>, grace: Span) {
    mode.iter().for_each(|mode| line(text, &format!("preempt_mode = {}", quoted(mode.name()))));
    if grace > Span::ZERO {
        line(text, &format!("grace_time = {}", quoted(&span(grace))));
    }
}

fn site_time(time: SiteTime) -> String {
    match time {
        SiteTime::Date(time) => quoted(&iso_8601(time)),
        SiteTime::OfLog(seconds) => seconds.to_string(),
    }
}

fn limits(text: &mut String, name: &str, limits: &[(String, ResourceQuantity)]) {
    let limits: Vec<String> =
        limits.iter().map(|(resource, limit)| format!("{} = {}", key(resource), quantity(limit))).collect();
    if !limits.is_empty() {
        line(text, &format!("{name} = {{ {} }}", limits.join(", ")));
    }
}

/// The shares of a user among the children of its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserShares {
    /// The user.
    pub user: String,
    /// The account in which these are the shares; `None`: every account that has no other ones.
    pub account: Option<String>,
    /// The shares.
    pub shares: Rational,
}

/// Returns the text of an accounts file with these accounts, each after its parent; how many users each has, `root` among them;
/// users' shares; and priorities.
pub fn accounts_text(
    accounts: &[ListedAccount],
    members: &BTreeMap<String, Members>,
    users: &[UserShares],
    priorities: &[AssociationPriority],
) -> String {
    let mut text = String::new();
    if let Some(of_root) = members.get("root") {
        members_lines(&mut text, of_root);
        text.push('\n');
    }
    for account in accounts {
        line(&mut text, "[[account]]");
        line(&mut text, &format!("name = {}", quoted(&account.name)));
        if let Some(parent) = account.parent.and_then(|p| accounts.get(p)) {
            line(&mut text, &format!("parent = {}", quoted(&parent.name)));
        }
        match &account.shares {
            None => line(&mut text, "shares = \"parent\""),
            Some(shares) if *shares != Rational::ONE => shares_line(&mut text, shares),
            Some(_) => {}
        }
        members.get(&account.name).into_iter().for_each(|members| members_lines(&mut text, members));
        text.push('\n');
    }
    let mut own: BTreeMap<(&str, &str), &Rational> = BTreeMap::new();
    for UserShares { user, account, shares } in users {
        if let Some(account) = account {
            own.insert((account, user), shares);
            continue;
        }
        line(&mut text, "[[user]]");
        line(&mut text, &format!("name = {}", quoted(user)));
        shares_line(&mut text, shares);
        text.push('\n');
    }
    for one in priorities {
        let of_user = one.user.as_deref().filter(|_| one.partition.is_none());
        let shares = of_user.and_then(|user| own.remove(&(one.account.as_str(), user)));
        association(&mut text, &one.account, one.user.as_deref(), shares);
        one.partition.iter().for_each(|name| line(&mut text, &format!("partition = {}", quoted(name))));
        line(&mut text, &format!("priority = {}\n", one.priority));
    }
    for ((account, user), shares) in own {
        association(&mut text, account, Some(user), Some(shares));
        text.push('\n');
    }
    text
}

fn association(text: &mut String, account: &str, user: Option<&str>, shares: Option<&Rational>) {
    line(text, "[[association]]");
    line(text, &format!("account = {}", quoted(account)));
    user.iter().for_each(|user| line(text, &format!("user = {}", quoted(user))));
    shares.iter().for_each(|shares| shares_line(text, shares));
}

fn members_lines(text: &mut String, members: &Members) {
    line(text, &format!("users = {}", members.users));
    if members.shares != Rational::from(members.users) {
        line(text, &format!("user_shares = {}", number(&members.shares)));
    }
}

fn shares_line(text: &mut String, shares: &Rational) {
    line(text, &format!("shares = {}", number(shares)));
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn properties(text: &mut String, properties: &[String]) {
    names(text, "properties", properties);
}

fn names(text: &mut String, key: &str, names: &[String]) {
    if !names.is_empty() {
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        line(text, &format!("{key} = [{}]", list.join(", ")));
    }
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_bare { name.to_string() } else { quoted(name) }
}

fn number(value: &Rational) -> String {
    if *value.denominator() == UBig::ONE { value.to_string() } else { quoted(&value.to_string()) }
}

fn quantity(quantity: &ResourceQuantity) -> String {
    if !quantity.is_bytes {
        return number(&quantity.exact);
    }
    let mebibytes = &quantity.exact / Rational::from(1u32 << 20);
    if *mebibytes.denominator() == UBig::ONE {
        quoted(&format!("{mebibytes}MiB"))
    } else {
        quoted(&format!("{}B", quantity.exact))
    }
}

/// Formats a time in the largest unit in which it is a whole number, otherwise in decimals of a second.
fn span(span: Span) -> String {
    let seconds = span.nanos() / 1_000_000_000;
    if !span.nanos().is_multiple_of(1_000_000_000) || seconds == 0 {
        return format!("{span}s");
    }
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let unit = units.iter().find(|(length, _)| seconds.is_multiple_of(*length));
    unit.map_or_else(|| format!("{seconds}s"), |(length, unit)| format!("{}{unit}", seconds / length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccountsFile, cluster_of};
    use evenhand_documents::{Document, Format};
    use evenhand_model::{Limit, MachineGroup, Queue, Resource, Task, WorkloadBuilder};
    use proptest::prelude::*;

    fn amount(numerator: u64, denominator: u8, is_bytes: bool) -> ResourceQuantity {
        let exact = Rational::from_parts(numerator.into(), denominator.max(1).into());
        ResourceQuantity { exact: if is_bytes { Rational::from(numerator) } else { exact }, is_bytes }
    }

    proptest! {
        #[test]
        fn a_cluster_reads_back(
            groups in prop::collection::vec(("\\PC{1,6}", 1u32..50, 1u64..1 << 50, 1u8..5, 0u64..9, prop::collection::vec("\\PC{1,4}", 0..3)), 1..4),
            queues in prop::collection::vec(("[a-z]{1,5}", -5i32..5, prop::option::of(0u64..1 << 60), 1u64..1 << 40), 0..3),
        ) {
            let mut cluster = Cluster { resources: vec!["cpu".into(), "mem".into(), "odd name".into()], ..Cluster::default() };
            for (at, (name, count, bytes, part, gpus, properties)) in groups.into_iter().enumerate() {
                let has = vec![amount(bytes, part, false), amount(bytes, 1, true), amount(gpus, 1, false)];
                let speed = Rational::from_parts(u32::from(part).into(), 3u8.into());
                cluster.groups.push(MachineGroup { hosts: Vec::new(),  name: format!("{name}{at}"), count, capacity: has, speed, weight: at as u32, properties });
            }
            for (at, (name, priority, wall, memory)) in queues.into_iter().enumerate() {
                cluster.queues.push(Queue {
                    priority,
                    max_wall: wall.map(Span::from_nanos),
                    max_job: vec![("mem".into(), amount(memory, 1, true))],
                    max: vec![("cpu".into(), amount(memory, 1, false))],
                    max_jobs: (at > 0).then_some(at as u32),
                    max_user_jobs: wall.map(|_| 3),
                    properties: cluster.groups[0].properties.clone(),
                    ..Queue::new(format!("{name}{at}"))
                });
            }
            for (at, queue) in cluster.queues.iter().enumerate() {
                cluster.limits.push(Limit {
                    queues: vec![queue.name.clone()],
                    users: vec!["a \"b\"".into(); at],
                    accounts: vec!["c".into(); at % 2],
                    each_user: at % 2 == 0,
                    max: queue.max.clone(),
                    max_jobs: queue.max_jobs,
                    max_job: queue.max_job.clone(),
                    max_wall: queue.max_wall,
                    ..Limit::new(format!("limit {at}"))
                });
            }
            let text = cluster_text(&cluster);
            let document = Document::parse("c.toml", &text, Some(Format::Toml)).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(cluster_of(&document).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?, Some(cluster));
        }
    }

    #[test]
    fn accounts_read_back() {
        let account = |name: &str, parent, shares: Option<u8>| {
            let shares = shares.map(Rational::from);
            ListedAccount { name: name.into(), parent, shares }
        };
        let accounts = [account("a \"b\"", None, Some(1)), account("c", Some(0), Some(3)), account("d", Some(1), None)];
        let priority = |account: &str, user: Option<&str>, partition: Option<&str>, priority| AssociationPriority {
            account: account.into(),
            user: user.map(String::from),
            partition: partition.map(String::from),
            priority,
        };
        let priorities = [
            priority("c", None, None, 5),
            priority("c", Some("ann"), None, 0),
            priority("c", Some("ann"), Some("gpu"), 9),
        ];
        let shares = |user: &str, account: Option<&str>, parts: u8| UserShares {
            user: user.into(),
            account: account.map(String::from),
            shares: Rational::from_parts(1.into(), parts.into()),
        };
        let users = [shares("ann", None, 3), shares("ann", Some("c"), 4), shares("bob", Some("d"), 5)];
        let of = |name: &str, users: u32, shares: u8| (name.to_string(), Members { users, shares: shares.into() });
        let members = [of("root", 2, 2), of("a \"b\"", 3, 7), of("c", 4, 5), of("d", 2, 1)].into();
        let text = accounts_text(&accounts, &members, &users, &priorities);
        assert!(
            text.starts_with("users = 2\n\n[[account]]\nname = \"a \\\"b\\\"\"\nusers = 3\nuser_shares = 7\n"),
            "{text}"
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.toml"), text).unwrap();
        let mut workload = WorkloadBuilder::new([Resource::new("cpu", "")]);
        workload.push(&Task { user: "ann", account: Some("c"), amounts: &[1], ..Task::default() });
        workload.push(&Task { user: "bob", account: Some("c"), amounts: &[1], ..Task::default() });
        workload.push(&Task { user: "ann", account: Some("d"), amounts: &[1], ..Task::default() });
        workload.push(&Task { user: "bob", account: Some("d"), amounts: &[1], ..Task::default() });
        let placed =
            AccountsFile::read(&folder.path().join("a.toml")).unwrap().place(workload.finish().unwrap()).unwrap();
        assert_eq!(placed.tree.accounts(), ListedAccount::with_shares(&accounts).0);
        assert_eq!([0, 1, 2, 3].map(|user| placed.tree.account_of(user)), [Some(1); 4]);
        assert_eq!([0, 1, 2, 3].map(|user| placed.tree.shares(user).to_string()), ["1/4", "1", "1/3", "1/5"]);
        assert_eq!([0, 1].map(|user| placed.tree.priority(user)), [0, 5]);
        assert_eq!(placed.tree.highest_priority(), 9);
        // The users of d are children of c, as d has no shares of its own: ann and bob in each are known, and two more of c.
        let (all, counts) = placed.tree.of_all_users();
        assert_eq!(counts, [1, 1, 1, 1, 2, 3, 2]);
        assert_eq!([4, 5, 6].map(|user| all.account_of(user)), [None, Some(0), Some(1)]);
        assert_eq!([4, 5, 6].map(|user| all.shares(user).to_string()), ["2", "7", "15/4"]);
    }
}
