//! Limits that jobs have from the QOS that they name.

use evenhand_model::{Cluster, Limit};

use super::partition_limits::{amounts, jobs, keep_left};
use super::qos::Qos;
use crate::parse_values::Limit as TimeLimit;
use crate::partitions::Partition;

/// Gives a cluster the limits of qualities of service on the jobs that name them. Returns `rest`, the qualities of service
/// with what a simulation has not followed so far, without what it then follows.
///
/// Followed are MaxTRES, MaxWall, MaxTRESPU, MaxJobsPU, GrpTRES and GrpJobs, and MaxSubmitPU and GrpSubmit, beyond which
/// submissions are counted. Where the QOS of a partition sets one of them, and of amounts one of the same resource, that one
/// counts for the partition's jobs in place of their own.
pub fn limit_jobs_of_qos(cluster: &mut Cluster, partitions: &[Partition], all: &[Qos], mut rest: Vec<Qos>) -> Vec<Qos> {
    let resources = cluster.resources.clone();
    for qos in all {
        let mut found: Vec<Limit> = Vec::new();
        for (column, value) in &qos.settings {
            let of = |each_user| Limit {
                qos: vec![qos.name.clone()],
                each_user,
                ..Limit::new(if each_user { format!("QOS {}, a user", qos.name) } else { format!("QOS {}", qos.name) })
            };
            let mut users = of(true);
            let mut everybody = of(false);
            let Some(left) = limit(&mut users, &mut everybody, &resources, column, value) else { continue };
            let whole = if users.is_empty() { everybody } else { users };
            let parts = by_resource(whole);
            let mut limits_some = parts.is_empty();
            for (resource, part) in parts {
                let queues = match sets_first(cluster, partitions, all, qos, column, resource.as_deref()) {
                    Some(queues) if queues.is_empty() => continue,
                    queues => queues.unwrap_or_default(),
                };
                limits_some = true;
                let new = Limit { queues, ..part };
                match found.iter_mut().find(|l| l.each_user == new.each_user && l.queues == new.queues) {
                    Some(same) => join(same, new),
                    None => found.push(new),
                }
            }
            if !limits_some {
                continue;
            }
            for one in rest.iter_mut().filter(|one| one.name == qos.name) {
                one.settings.retain_mut(|(name, value)| name != column || keep_left(value, Some(left.clone())));
            }
        }
        cluster.limits.extend(found);
    }
    rest
}

/// Divides a limit into those of one resource each, with its name, and the rest without a name.
pub(super) fn by_resource(limit: Limit) -> Vec<(Option<String>, Limit)> {
    let rest = Limit { max: Vec::new(), max_job: Vec::new(), ..limit.clone() };
    let bare = Limit { max_jobs: None, max_submitted: None, max_wall: None, ..rest.clone() };
    let max = limit.max.into_iter().map(|one| (Some(one.0.clone()), Limit { max: vec![one], ..bare.clone() }));
    let of_job = limit.max_job.into_iter();
    let max_job = of_job.map(|one| (Some(one.0.clone()), Limit { max_job: vec![one], ..bare.clone() }));
    max.chain(max_job).chain((!rest.is_empty()).then_some((None, rest))).collect()
}

/// The partitions where a limit of a QOS binds jobs, since the QOS of the partition sets none of the kind; `None`: all.
fn sets_first(
    cluster: &Cluster,
    partitions: &[Partition],
    all: &[Qos],
    qos: &Qos,
    column: &str,
    resource: Option<&str>,
) -> Option<Vec<String>> {
    let sets = |value: &str| {
        let names = |resource: &str| {
            let amounts = amounts(value, &cluster.resources).unwrap_or_default();
            amounts.followed.iter().any(|(name, _)| name == resource)
        };
        resource.is_none_or(names)
    };
    let is_before = |queue: &str| {
        let partition = partitions.iter().find(|partition| partition.name == queue);
        let own = partition.and_then(|partition| partition.qos.as_ref());
        let own = own.and_then(|name| all.iter().find(|other| other.name.eq_ignore_ascii_case(name)));
        own.is_some_and(|own| {
            own.name != qos.name
                && own.settings.iter().any(|(name, value)| name.eq_ignore_ascii_case(column) && sets(value))
        })
    };
    let names = || cluster.queues.iter().map(|queue| &queue.name);
    names().any(|name| is_before(name)).then(|| names().filter(|name| !is_before(name)).cloned().collect())
}

/// Sets what a column says. Returns the rest of the value that a simulation does not follow, empty if it follows all; `None`
/// if it follows nothing of it.
fn limit(users: &mut Limit, all: &mut Limit, resources: &[String], column: &str, value: &str) -> Option<String> {
    match column.to_ascii_lowercase().as_str() {
        "maxtrespu" => return amounts(value, resources)?.put(&mut users.max),
        "maxjobspu" => users.max_jobs = Some(jobs(value)?),
        "grptres" => return amounts(value, resources)?.put(&mut all.max),
        "grpjobs" => all.max_jobs = Some(jobs(value)?),
        "maxsubmitpu" => users.max_submitted = Some(jobs(value)?),
        "grpsubmit" => all.max_submitted = Some(jobs(value)?),
        "maxtres" => return amounts(value, resources)?.put(&mut all.max_job),
        "maxwall" => all.max_wall = Some(TimeLimit::parse(value)?.span()?),
        _ => return None,
    }
    Some(String::new())
}

/// Adds what another limit of the same jobs says.
pub(super) fn join(limit: &mut Limit, other: Limit) {
    limit.max.extend(other.max);
    limit.max_job.extend(other.max_job);
    limit.max_jobs = limit.max_jobs.or(other.max_jobs);
    limit.max_submitted = limit.max_submitted.or(other.max_submitted);
    limit.max_wall = limit.max_wall.or(other.max_wall);
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Queue, ResourceQuantity, Span};

    use super::super::qos::parse_qos;
    use super::*;

    #[test]
    fn the_qos_of_a_partition_sets_amounts_first_resource_by_resource() {
        // slurmctld 22.05.8 kept a job of the QOS `job` in the partition pending with QOSGrpCpuLimit where its CPUs were 0.
        let qos = parse_qos("Name|GrpTRES\njob|cpu=4,mem=1G,node=1\npart|node=5,mem=2G,gres/gpu=9\n").unwrap();
        let partitions = [Partition { name: "p".into(), qos: Some("part".into()), ..Partition::default() }];
        let mut cluster = Cluster {
            resources: vec!["cpu".into(), "mem".into()],
            queues: ["p", "q"].map(Queue::new).to_vec(),
            ..Cluster::default()
        };
        limit_jobs_of_qos(&mut cluster, &partitions, &qos[..], qos.clone());
        let of_job = cluster.limits.iter().filter(|limit| limit.qos == ["job"]);
        let of_job: Vec<(&str, &[String])> = of_job.map(|l| (l.max[0].0.as_str(), l.queues.as_slice())).collect();
        assert_eq!(of_job, [("cpu", &[][..]), ("mem", &["q".to_string()][..])]);
    }

    #[test]
    fn jobs_have_the_limits_of_the_qos_that_they_name() {
        let text = "Name|Priority|GrpTRES|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPA\nnormal|0||||||\n\
            long|9|cpu=64|cpu=8,node=2|01:00:00|cpu=16|3|50\npart|0|||||1|\nodd|0|license/x=3|gres/gpu=0||||\n";
        let qos = parse_qos(text).unwrap();
        let partition = |name: &str, qos: Option<&str>| Partition {
            name: name.into(),
            qos: qos.map(String::from),
            ..Partition::default()
        };
        let partitions = [partition("one", None), partition("two", Some("part"))];
        let mut cluster = Cluster {
            resources: vec!["cpu".into()],
            queues: ["one", "two"].map(Queue::new).to_vec(),
            ..Cluster::default()
        };
        let rest = limit_jobs_of_qos(&mut cluster, &partitions, &qos, qos.clone());
        let cpus = |n: u64| vec![("cpu".to_string(), ResourceQuantity { exact: n.into(), is_bytes: false })];
        let of = |qos: &str, each_user, name: &str| Limit { qos: vec![qos.into()], each_user, ..Limit::new(name) };
        assert_eq!(
            cluster.limits,
            [
                Limit {
                    max: cpus(64),
                    max_job: cpus(8),
                    max_wall: Some(Span::from_secs(3600)),
                    ..of("long", false, "QOS long")
                },
                Limit { max: cpus(16), ..of("long", true, "QOS long, a user") },
                // The QOS of the partition two sets the number of jobs first.
                Limit { max_jobs: Some(3), queues: vec!["one".into()], ..of("long", true, "QOS long, a user") },
                Limit { max_jobs: Some(1), ..of("part", true, "QOS part, a user") },
            ]
        );
        let left: Vec<(&str, Vec<&str>)> = rest
            .iter()
            .map(|q| (q.name.as_str(), q.settings.iter().map(|(column, _)| column.as_str()).collect()))
            .collect();
        let expected = [
            ("normal", vec![]),
            ("long", vec!["Priority", "MaxTRES", "MaxSubmitPA"]),
            ("part", vec![]),
            ("odd", vec!["GrpTRES"]),
        ];
        assert_eq!(left, expected);
        assert_eq!(rest[1].settings[1].1, "node=2");
    }
}
