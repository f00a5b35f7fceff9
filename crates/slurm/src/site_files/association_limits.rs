//! Limits that accounts and users have from their associations.

use std::borrow::Cow;
use std::collections::HashMap;

use evenhand_model::{Cluster, Limit, Queue};

use super::partition_limits::{amounts, jobs};
use super::qos::Qos;
use super::qos_limits::{by_resource, join};
use crate::associations::{Accounts, Association, AssociationSetting};
use crate::parse_values::Limit as TimeLimit;
use crate::partitions::Partition;

/// Gives a cluster the limits that associations set. Returns what else they set, by column, as
/// [`Accounts::limits`] does.
///
/// Followed are GrpTRES, GrpJobs, MaxJobs, MaxTRES (of a job) and MaxWall, and GrpSubmit and MaxSubmit, beyond which
/// submissions are counted, also by the names that they have in a file of `sacctmgr dump`; except what `root` sets for all
/// together, and in associations of one partition and of other resources than those of the cluster. What an account sets
/// for each of its users (MaxJobs, MaxSubmit, MaxWall, and MaxTRES by resource) is what a user has who sets nothing. Where
/// the QOS of a job or of its partition sets the same, that one counts in place of all associations.
pub fn limit_associations(
    cluster: &mut Cluster,
    accounts: &Accounts,
    partitions: &[Partition],
    qos: &[Qos],
) -> Vec<AssociationSetting> {
    let first = SetFirst::new(cluster, partitions, qos);
    let mut rest = Vec::new();
    let mut all = Vec::new();
    for association in &accounts.associations {
        let below = accounts.accounts_below(&association.account);
        let mut group = Limit { accounts: below, ..Limit::new(name(association)) };
        group.users.extend(association.user.clone());
        if association.user.is_some() {
            group.accounts = vec![association.account.clone()];
        }
        let mut found = Vec::new();
        for (column, value) in &association.limits {
            let is_group = column.to_ascii_lowercase().starts_with("grp");
            let can_follow = association.partition.is_none() && (association.account != "root" || !is_group);
            // What an account sets for each of its users is looked up by user below.
            let left = match (can_follow, is_group) {
                (false, _) => None,
                (true, true) => first.add(&mut found, &group, column, value),
                (true, false) => set(&mut Limit::new(""), &first.resources, column, value),
            };
            match left {
                Some(left) if left.is_empty() => {}
                Some(left) => rest.push(association.setting(column, &left)),
                None => rest.push(association.setting(column, value)),
            }
        }
        all.extend(found);
    }
    let by_account: HashMap<&str, &Association> =
        accounts.associations.iter().filter(|a| a.user.is_none()).map(|a| (a.account.as_str(), a)).collect();
    for association in accounts.associations.iter().filter(|a| a.partition.is_none()) {
        let Some(user) = &association.user else { continue };
        let own = Limit {
            users: vec![user.clone()],
            accounts: vec![association.account.clone()],
            ..Limit::new(format!("{} each", name(association)))
        };
        let mut found = Vec::new();
        for column in ["MaxJobs", "MaxSubmit", "MaxTRES", "MaxWall"] {
            if let Some(value) = nearest(association, &by_account, column) {
                first.add(&mut found, &own, column, &value);
            }
        }
        all.extend(found);
    }
    cluster.limits.extend(all);
    rest.extend(accounts.not_followed());
    rest
}

/// What qualities of service set, in place of which no limit of an association counts.
struct SetFirst<'a> {
    resources: Vec<String>,
    qos: &'a [Qos],
    /// The queues, each with the QOS of its partition.
    queues: Vec<(String, Option<&'a Qos>)>,
}

impl<'a> SetFirst<'a> {
    fn new(cluster: &Cluster, partitions: &[Partition], qos: &'a [Qos]) -> SetFirst<'a> {
        let of_queue = |queue: &Queue| {
            let partition = partitions.iter().find(|partition| partition.name == queue.name);
            let name = partition.and_then(|partition| partition.qos.as_ref());
            let own = name.and_then(|name| qos.iter().find(|one| one.name.eq_ignore_ascii_case(name)));
            (queue.name.clone(), own)
        };
        SetFirst { resources: cluster.resources.clone(), qos, queues: cluster.queues.iter().map(of_queue).collect() }
    }

    /// Adds what a column of an association says to limits of its jobs, for those whose QOS set nothing of the kind. Returns
    /// what is left of it, as [`set`] does.
    fn add(&self, found: &mut Vec<Limit>, jobs: &Limit, column: &str, value: &str) -> Option<String> {
        let mut whole = Limit::new("");
        let left = set(&mut whole, &self.resources, column, value)?;
        for (resource, part) in by_resource(whole) {
            let sets = |qos: &Qos| self.sets(qos, column, resource.as_deref());
            let (before, others): (Vec<_>, Vec<_>) = self.queues.iter().partition(|(_, own)| own.is_some_and(sets));
            if others.is_empty() && !before.is_empty() {
                continue;
            }
            let queues =
                if before.is_empty() { Vec::new() } else { others.into_iter().map(|(n, _)| n.clone()).collect() };
            let except_qos = self.qos.iter().filter(|qos| sets(qos)).map(|qos| qos.name.clone()).collect();
            let limit = Limit { name: jobs.name.clone(), queues, except_qos, ..part };
            let limit = Limit { accounts: jobs.accounts.clone(), users: jobs.users.clone(), ..limit };
            let same = |other: &&mut Limit| other.queues == limit.queues && other.except_qos == limit.except_qos;
            match found.iter_mut().find(same) {
                Some(same) => join(same, limit),
                None => found.push(limit),
            }
        }
        Some(left)
    }

    /// Whether a QOS sets, in a way that a simulation follows, what a column of an association limits.
    fn sets(&self, qos: &Qos, column: &str, resource: Option<&str>) -> bool {
        let of_qos = match of_association(column) {
            name if name.eq_ignore_ascii_case("MaxJobs") => "MaxJobsPU",
            name if name.eq_ignore_ascii_case("MaxSubmit") => "MaxSubmitPU",
            name => name,
        };
        let value = qos.settings.iter().find(|(name, _)| name.eq_ignore_ascii_case(of_qos)).map(|(_, value)| value);
        value.is_some_and(|value| match resource {
            Some(resource) => {
                let amounts = amounts(value, &self.resources).unwrap_or_default();
                amounts.followed.iter().any(|(name, _)| name == resource)
            }
            None => set(&mut Limit::new(""), &self.resources, column, value).is_some(),
        })
    }
}

/// The value of a column in an association, or in the nearest account above that sets it; of amounts those of all of them,
/// the nearest last, which counts where several are of one resource.
fn nearest<'a>(
    association: &'a Association,
    by_account: &HashMap<&str, &'a Association>,
    column: &str,
) -> Option<Cow<'a, str>> {
    let mut found: Option<Cow<'a, str>> = None;
    let mut here = Some(association);
    // Accounts that name each other as their parents are no tree.
    for _ in 0..=by_account.len() {
        let Some(association) = here else { break };
        let values = association.limits.iter().find(|(name, _)| of_association(name).eq_ignore_ascii_case(column));
        if let Some((_, value)) = values {
            found = Some(match found {
                Some(nearer) => format!("{value},{nearer}").into(),
                None => value.into(),
            });
            if column != "MaxTRES" {
                break;
            }
        }
        let above = match &association.user {
            Some(_) => Some(association.account.as_str()),
            None => association.parent.as_deref(),
        };
        here = above.and_then(|name| by_account.get(name).copied());
    }
    found
}

/// Names of columns in a file of `sacctmgr dump`, each with that of `sacctmgr show association`.
const IN_DUMPS: [(&str, &str); 4] = [
    ("GrpSubmitJobs", "GrpSubmit"),
    ("MaxSubmitJobs", "MaxSubmit"),
    ("MaxTRESPerJob", "MaxTRES"),
    ("MaxWallDurationPerJob", "MaxWall"),
];

/// Returns the name of a column in `sacctmgr show association`.
fn of_association(column: &str) -> &str {
    IN_DUMPS.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)).map_or(column, |(_, name)| *name)
}

fn name(association: &Association) -> String {
    match &association.user {
        Some(user) => format!("{user} in {}", association.account),
        None => association.account.clone(),
    }
}

/// Sets what a column says. Returns the rest of the value that a simulation does not follow, empty if it follows all; `None`
/// if it follows nothing of it.
fn set(limit: &mut Limit, resources: &[String], column: &str, value: &str) -> Option<String> {
    match of_association(column).to_ascii_lowercase().as_str() {
        "grptres" => return amounts(value, resources)?.put(&mut limit.max),
        "grpjobs" | "maxjobs" => limit.max_jobs = Some(jobs(value)?),
        "grpsubmit" | "maxsubmit" => limit.max_submitted = Some(jobs(value)?),
        "maxtres" => return amounts(value, resources)?.put(&mut limit.max_job),
        "maxwall" => limit.max_wall = Some(TimeLimit::parse(value)?.span()?),
        _ => return None,
    }
    Some(String::new())
}

#[cfg(test)]
mod tests {
    use evenhand_model::{ResourceQuantity, Span};

    use super::super::qos::parse_qos;
    use super::*;

    #[test]
    fn accounts_limit_all_below_them_and_users_have_the_nearest_limit() {
        let text = "Account|ParentName|User|Partition|Share|GrpTRES|GrpJobs|MaxJobs|MaxWall|MaxTRESMins\n\
            root||||1||9|||\nphysics|root|||1|cpu=64||4|01:00:00|\noptics|physics|||1|||||50\n\
            optics||ann||1||||02:00:00|\noptics||bob||1||2|3||\noptics||bob|gpu|1|||1||\n";
        let accounts = Accounts::parse(text).unwrap();
        let mut cluster = Cluster { resources: vec!["cpu".into()], ..Cluster::default() };
        let rest = limit_associations(&mut cluster, &accounts, &[], &[]);
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
        let of =
            |column: &str, value: &str, line| AssociationSetting { column: column.into(), value: value.into(), line };
        assert_eq!(rest, [of("GrpJobs", "root=9", 2), of("MaxTRESMins", "optics=50", 4), of("MaxJobs", "bob=1", 7)]);
    }

    #[test]
    fn a_dump_gives_the_limits_of_the_same_associations() {
        // As sacctmgr of 22.05.8 wrote and listed them: a list has what users have from the accounts above, resource by resource.
        let dump = "Cluster - 'lab':Fairshare=1:MaxWallDurationPerJob=1440:GrpJobs=50\nParent - 'root'\n\
            Account - 'phys':Fairshare=1:GrpTRES=billing=100,cpu=6,node=2:GrpSubmitJobs=9:MaxTRESPerJob=cpu=4,mem=1G:MaxTRESMinsPerJob=cpu=9:MaxSubmitJobs=5\n\
            Parent - 'phys'\nUser - 'ann':Fairshare=1:MaxTRESPerJob=cpu=1:MaxJobs=2:MaxWallDurationPerJob=30\nUser - 'john':Fairshare=2\n";
        let list = "Account|ParentName|User|Share|GrpJobs|GrpTRES|GrpSubmit|MaxJobs|MaxTRES|MaxSubmit|MaxWall|MaxTRESMins\n\
            root|||1|50||||||1-00:00:00|\nphys|root||1||billing=100,cpu=6,node=2|9||cpu=4,mem=1G|5|1-00:00:00|cpu=9\n\
            phys||ann|1||||2|cpu=1,mem=1G|5|00:30:00|\nphys||john|2|||||cpu=4,mem=1G|5|1-00:00:00|\n";
        let read = |accounts: Accounts| {
            let mut cluster = Cluster { resources: vec!["cpu".into(), "mem".into()], ..Cluster::default() };
            let rest = limit_associations(&mut cluster, &accounts, &[], &[]);
            (cluster.limits, rest.into_iter().map(|one| (one.column, one.value)).collect::<Vec<_>>())
        };
        let (limits, rest) = read(super::super::parse_dump(dump).unwrap().accounts);
        let of = |column: &str, value: &str| (column.to_string(), value.to_string());
        let group = || [of("GrpJobs", "root=50"), of("GrpTRES", "phys=billing=100,node=2")];
        assert_eq!(rest[..2], group());
        assert_eq!(rest[2..], [of("MaxTRESMinsPerJob", "phys=cpu=9")]);
        let (listed, rest) = read(Accounts::parse(list).unwrap());
        assert_eq!(rest[..2], group());
        assert_eq!(rest[2..], [of("MaxTRESMins", "phys=cpu=9")]);
        assert_eq!(limits, listed);
        let day = Some(Span::from_secs(86_400));
        let john = limits.iter().find(|limit| limit.users == ["john"]).unwrap();
        assert_eq!((john.max_submitted, john.max_job.len(), john.max_wall), (Some(5), 2, day));
    }

    #[test]
    fn zero_is_a_limit_and_minus_one_is_none() {
        // As Slurm has it: sacctmgr clears a limit with -1, and with 0 no job of the association runs.
        let list = "Account|ParentName|User|Share|GrpJobs|GrpTRES|GrpSubmit|MaxJobs|MaxSubmit\nroot|||1|||||\n\
            phys|root||1|0|cpu=0|0|4|\nphys||ann|1||||0|0\nphys||bob|1||||-1|-1\n";
        let dump = "Cluster - 'lab':Fairshare=1\nParent - 'root'\n\
            Account - 'phys':Fairshare=1:GrpTRES=cpu=0:GrpJobs=0:GrpSubmitJobs=0:MaxJobs=4\nParent - 'phys'\n\
            User - 'ann':Fairshare=1:MaxJobs=0:MaxSubmitJobs=0\nUser - 'bob':Fairshare=1:MaxJobs=-1:MaxSubmitJobs=-1\n";
        for accounts in [Accounts::parse(list).unwrap(), super::super::parse_dump(dump).unwrap().accounts] {
            let mut cluster = Cluster { resources: vec!["cpu".into()], ..Cluster::default() };
            assert_eq!(limit_associations(&mut cluster, &accounts, &[], &[]), []);
            let found = cluster.limits.iter().map(|l| (l.name.as_str(), l.max_jobs, l.max_submitted, l.max.len()));
            assert_eq!(
                found.collect::<Vec<_>>(),
                [
                    ("phys", Some(0), Some(0), 1),
                    ("ann in phys each", Some(0), Some(0), 0),
                    // What the account sets for each of its users.
                    ("bob in phys each", Some(4), None, 0),
                ]
            );
            assert!(cluster.limits[0].max[0].1.exact.is_zero());
        }
    }

    #[test]
    fn accounts_that_name_each_other_as_parents_end_the_search() {
        let accounts = Accounts::parse("Account|ParentName|User|Share\nx|y||1\ny|x||1\nx||ann|1\n").unwrap();
        let mut cluster = Cluster { resources: vec!["cpu".into()], ..Cluster::default() };
        assert_eq!(limit_associations(&mut cluster, &accounts, &[], &[]), []);
        assert_eq!(cluster.limits, []);
    }

    #[test]
    fn what_a_qos_sets_takes_the_place_of_what_associations_set() {
        let qos = parse_qos(
            "Name|GrpTRES|MaxJobsPU|MaxSubmitPU|MaxWall\nnormal||||\nlong|cpu=8|2||1-00:00:00\npart|||7|\nodd|license/x=1|||\n",
        )
        .unwrap();
        let partitions = [Partition { name: "two".into(), qos: Some("part".into()), ..Partition::default() }];
        let text = "Account|ParentName|User|Share|GrpTRES|MaxJobs|MaxSubmit|MaxWall\nroot|||1||||\n\
            physics|root||1|cpu=64,mem=1G|4|50|01:00:00\nphysics||ann|1||||\n";
        let mut cluster = Cluster {
            resources: vec!["cpu".into(), "mem".into()],
            queues: ["one", "two"].map(Queue::new).to_vec(),
            ..Cluster::default()
        };
        let rest = limit_associations(&mut cluster, &Accounts::parse(text).unwrap(), &partitions, &qos);
        assert_eq!(rest, []);
        let shown: Vec<String> = cluster
            .limits
            .iter()
            .map(|l| {
                let max: Vec<&str> = l.max.iter().map(|(name, _)| name.as_str()).collect();
                format!(
                    "{}: {max:?} {:?} {:?} {}, {:?} not {:?}",
                    l.name,
                    l.max_jobs,
                    l.max_submitted,
                    l.max_wall.is_some(),
                    l.queues,
                    l.except_qos
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "physics: [\"cpu\"] None None false, [] not [\"long\"]",
                "physics: [\"mem\"] None None false, [] not []",
                "ann in physics each: [] Some(4) None true, [] not [\"long\"]",
                // The QOS of the partition two sets it.
                "ann in physics each: [] None Some(50) false, [\"one\"] not [\"part\"]",
            ]
        );
    }
}
