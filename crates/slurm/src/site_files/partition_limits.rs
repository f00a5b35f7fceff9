//! Limits that partitions have from their QOS.

use evenhand_model::{Cluster, Limit, Queue, ResourceQuantity};

use super::qos::Qos;
use crate::parse_values::{Limit as TimeLimit, number};
use crate::partitions::Partition;
use crate::tres::Tres;

/// Gives the queues of a cluster the limits that the QOS of their partitions set. Returns the qualities of service
/// without what a simulation then follows.
///
/// Followed are MaxTRES, MaxWall, MaxTRESPU, MaxJobsPU, GrpTRES and GrpJobs; the jobs of several partitions with one QOS
/// count together. So are MaxSubmitPU and GrpSubmit, beyond which submissions are counted. Limits of other resources than those of the cluster are not followed.
pub fn limit_partitions(cluster: &mut Cluster, partitions: &[Partition], qos: &[Qos]) -> Vec<Qos> {
    let resources = cluster.resources.clone();
    let mut rest = qos.to_vec();
    for one in &mut rest {
        let has = |p: &&Partition| p.qos.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&one.name));
        let names: Vec<&str> = partitions.iter().filter(has).map(|p| p.name.as_str()).collect();
        let mut queues: Vec<&mut Queue> =
            cluster.queues.iter_mut().filter(|queue| names.contains(&queue.name.as_str())).collect();
        if queues.is_empty() {
            continue;
        }
        let is_alone = queues.len() == 1;
        one.settings.retain(|(column, value)| {
            let limited =
                queues.iter_mut().filter_map(|queue| limit(queue, &resources, column, value, is_alone)).count();
            limited == 0
        });
        let queues: Vec<String> = queues.iter().map(|queue| queue.name.clone()).collect();
        let of = |each_user| Limit { queues: queues.clone(), each_user, ..Limit::new(format!("QOS {}", one.name)) };
        let (mut users, mut all) = (of(true), of(false));
        one.settings.retain(|(column, value)| together(&mut users, &mut all, &resources, column, value).is_none());
        cluster.limits.extend([users, all].into_iter().filter(|limit| !limit.is_empty()));
    }
    rest
}

/// Sets a limit of each user, or of all, in some queues together; `None` if it is not one that a simulation follows.
fn together(users: &mut Limit, all: &mut Limit, resources: &[String], column: &str, value: &str) -> Option<()> {
    match column.to_ascii_lowercase().as_str() {
        "maxtrespu" => users.max = amounts(value, resources)?,
        "grptres" => all.max = amounts(value, resources)?,
        "maxjobspu" => users.max_jobs = Some(jobs(value)?),
        "grpjobs" => all.max_jobs = Some(jobs(value)?),
        "maxsubmitpu" => users.max_submitted = Some(jobs(value)?),
        "grpsubmit" => all.max_submitted = Some(jobs(value)?),
        _ => return None,
    }
    Some(())
}

/// A number of jobs. A limit of 0 is that of a queue in which nothing runs.
pub(super) fn jobs(value: &str) -> Option<u32> {
    number(value).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0)
}

/// Sets a limit of a queue; `None` if it is not one that a simulation follows.
fn limit(queue: &mut Queue, resources: &[String], column: &str, value: &str, is_alone: bool) -> Option<()> {
    match column.to_ascii_lowercase().as_str() {
        "maxwall" => {
            let wall = TimeLimit::parse(value)?.span()?;
            queue.max_wall = Some(queue.max_wall.map_or(wall, |own| own.min(wall)));
        }
        "maxtres" => queue.max_job = amounts(value, resources)?,
        "maxtrespu" if is_alone => queue.max_user = amounts(value, resources)?,
        "grptres" if is_alone => queue.max = amounts(value, resources)?,
        "maxjobspu" if is_alone => queue.max_user_jobs = Some(jobs(value)?),
        "grpjobs" if is_alone => queue.max_jobs = Some(jobs(value)?),
        _ => return None,
    }
    Some(())
}

/// Amounts of the cluster's resources; `None` if there is one of another resource.
pub(super) fn amounts(text: &str, resources: &[String]) -> Option<Vec<(String, ResourceQuantity)>> {
    let tres = Tres::parse(text).ok()?;
    let mut found = Vec::new();
    for (name, _) in tres.amounts() {
        let (resource, amount, is_bytes) = match name {
            "cpu" => ("cpu", tres.cpus(), false),
            "mem" => ("mem", tres.bytes(), true),
            "gres/gpu" => ("gpu", tres.gpus(), false),
            _ => return None,
        };
        if amount == 0 || !resources.iter().any(|known| known == resource) {
            return None;
        }
        found.push((resource.to_string(), ResourceQuantity { exact: amount.into(), is_bytes }));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use evenhand_model::Span;

    use super::super::qos::parse_qos;
    use super::*;

    #[test]
    fn a_partition_has_the_limits_of_its_qos() {
        let qos = parse_qos(
            "Name|Priority|GrpTRES|GrpJobs|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU\nnormal|0||||||\n\
             p|0|cpu=64|9|mem=4G|01:00:00|cpu=16,gres/gpu=2|3\nboth|7|cpu=8||cpu=4|||2\n",
        )
        .unwrap();
        let partition =
            |name: &str, qos: &str| Partition { name: name.into(), qos: Some(qos.into()), ..Partition::default() };
        let partitions = [partition("one", "p"), partition("two", "both"), partition("three", "both")];
        let queue = |name: &str| Queue { max_wall: Some(Span::from_secs(7200)), ..Queue::new(name) };
        let mut cluster = Cluster {
            resources: ["cpu", "mem", "gpu"].map(String::from).to_vec(),
            queues: ["one", "two", "three"].map(queue).to_vec(),
            ..Cluster::default()
        };
        let rest = limit_partitions(&mut cluster, &partitions, &qos);
        let number = |n: u64| ResourceQuantity { exact: n.into(), is_bytes: false };
        assert_eq!(
            cluster.queues[0],
            Queue {
                max_wall: Some(Span::from_secs(3600)),
                max_job: vec![("mem".into(), ResourceQuantity { exact: (4u64 << 30).into(), is_bytes: true })],
                max_user: vec![("cpu".into(), number(16)), ("gpu".into(), number(2))],
                max_user_jobs: Some(3),
                max: vec![("cpu".into(), number(64))],
                max_jobs: Some(9),
                ..Queue::new("one")
            }
        );
        assert!(rest[1].settings.is_empty(), "{:?}", rest[1]);
        // Two partitions count together.
        let queues = vec!["two".to_string(), "three".to_string()];
        let together = |each_user| Limit { queues: queues.clone(), each_user, ..Limit::new("QOS both") };
        assert_eq!(
            cluster.limits,
            [
                Limit { max_jobs: Some(2), ..together(true) },
                Limit { max: vec![("cpu".into(), number(8))], ..together(false) },
            ]
        );
        assert_eq!(cluster.queues[1], Queue { max_job: vec![("cpu".into(), number(4))], ..queue("two") });
        let left: Vec<&str> = rest[2].settings.iter().map(|(column, _)| column.as_str()).collect();
        assert_eq!(left, ["Priority"]);
    }
}
