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
/// count together. So are MaxSubmitPU and GrpSubmit, beyond which submissions are counted. Of limits on several resources
/// those of the cluster are followed, and the others are left.
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
        one.settings.retain_mut(|(column, value)| {
            let limited = queues.iter_mut().map(|queue| limit(queue, &resources, column, value, is_alone));
            let left = limited.fold(None, |left, of_queue| of_queue.or(left));
            keep_left(value, left)
        });
        let queues: Vec<String> = queues.iter().map(|queue| queue.name.clone()).collect();
        let of = |each_user| Limit { queues: queues.clone(), each_user, ..Limit::new(format!("QOS {}", one.name)) };
        let (mut users, mut all) = (of(true), of(false));
        one.settings.retain_mut(|(column, value)| {
            let left = together(&mut users, &mut all, &resources, column, value);
            keep_left(value, left)
        });
        cluster.limits.extend([users, all].into_iter().filter(|limit| !limit.is_empty()));
    }
    rest
}

/// Keeps of a setting what is left of it. Returns whether it stays among those that are not followed; `None` for `left`: all
/// of it.
pub(super) fn keep_left(value: &mut String, left: Option<String>) -> bool {
    left.into_iter().for_each(|left| *value = left);
    !value.is_empty()
}

/// Sets a limit of each user, or of all, in some queues together. Returns the rest of the value that a simulation does not
/// follow, empty if it follows all; `None` if it follows nothing of it.
fn together(users: &mut Limit, all: &mut Limit, resources: &[String], column: &str, value: &str) -> Option<String> {
    match column.to_ascii_lowercase().as_str() {
        "maxtrespu" => return amounts(value, resources)?.put(&mut users.max),
        "grptres" => return amounts(value, resources)?.put(&mut all.max),
        "maxjobspu" => users.max_jobs = Some(jobs(value)?),
        "grpjobs" => all.max_jobs = Some(jobs(value)?),
        "maxsubmitpu" => users.max_submitted = Some(jobs(value)?),
        "grpsubmit" => all.max_submitted = Some(jobs(value)?),
        _ => return None,
    }
    Some(String::new())
}

/// A number of jobs; 0 is one too, which holds all of them.
pub(super) fn jobs(value: &str) -> Option<u32> {
    number(value).and_then(|n| u32::try_from(n).ok())
}

/// Sets a limit of a queue. Returns the rest of the value, as [`together`] does.
fn limit(queue: &mut Queue, resources: &[String], column: &str, value: &str, is_alone: bool) -> Option<String> {
    match column.to_ascii_lowercase().as_str() {
        "maxwall" => {
            let wall = TimeLimit::parse(value)?.span()?;
            queue.max_wall = Some(queue.max_wall.map_or(wall, |own| own.min(wall)));
        }
        "maxtres" => return amounts(value, resources)?.put(&mut queue.max_job),
        "maxtrespu" if is_alone => return amounts(value, resources)?.put(&mut queue.max_user),
        "grptres" if is_alone => return amounts(value, resources)?.put(&mut queue.max),
        "maxjobspu" if is_alone => queue.max_user_jobs = Some(jobs(value)?),
        "grpjobs" if is_alone => queue.max_jobs = Some(jobs(value)?),
        _ => return None,
    }
    Some(String::new())
}

/// A limit on several resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    /// Those of the cluster's resources, each once, by name.
    pub(super) followed: Vec<(String, ResourceQuantity)>,
    /// The others, as they are written: `node=2,billing=100`.
    left: String,
}

impl Amounts {
    /// Sets a limit. Returns what is left; `None` if that is all.
    pub(super) fn put(self, limit: &mut Vec<(String, ResourceQuantity)>) -> Option<String> {
        if self.followed.is_empty() && !self.left.is_empty() {
            return None;
        }
        *limit = self.followed;
        Some(self.left)
    }
}

/// Reads amounts; `None` if they are malformed. Of several of one resource the last counts. One of 0 is a limit of which
/// nothing is available; of GPUs, where no node has any, it has no effect.
pub(super) fn amounts(text: &str, resources: &[String]) -> Option<Amounts> {
    let mut found = Amounts::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let tres = Tres::parse(part).ok()?;
        let name = part.split('=').next().unwrap_or_default();
        let (resource, amount, is_bytes) = match name {
            "cpu" => ("cpu", tres.cpus(), false),
            "mem" => ("mem", tres.bytes(), true),
            name if name.starts_with("gres/gpu") => ("gpu", tres.gpus(), false),
            _ => ("", 0, false),
        };
        let is_known = resources.iter().any(|known| known == resource);
        if is_known && !name.contains(':') {
            found.followed.retain(|(other, _)| other != resource);
            found.followed.push((resource.to_string(), ResourceQuantity { exact: amount.into(), is_bytes }));
        } else if is_known || resource != "gpu" || amount > 0 {
            let comma = if found.left.is_empty() { "" } else { "," };
            found.left += &format!("{comma}{part}");
        }
    }
    found.followed.sort_by(|one, other| one.0.cmp(&other.0));
    Some(found)
}

#[cfg(test)]
mod tests {
    use evenhand_model::Span;

    use super::super::qos::parse_qos;
    use super::*;

    #[test]
    fn the_resources_of_a_limit_are_followed_one_by_one() {
        let read = |text: &str, resources: &[&str]| {
            let resources: Vec<String> = resources.iter().map(|name| name.to_string()).collect();
            let found = amounts(text, &resources)?;
            let followed: Vec<String> =
                found.followed.iter().map(|(name, amount)| format!("{name} {}", amount.exact)).collect();
            Some((followed.join(", "), found.left))
        };
        let of = |followed: &str, left: &str| Some((followed.to_string(), left.to_string()));
        let (all, without_gpus) = (["cpu", "mem", "gpu"], ["cpu", "mem"]);
        assert_eq!(read("cpu=6,node=2,billing=100", &all), of("cpu 6", "node=2,billing=100"));
        assert_eq!(read("cpu=6,mem=1K,gres/gpu=4", &without_gpus), of("cpu 6, mem 1024", "gres/gpu=4"));
        assert_eq!(read("gres/gpu=4,gres/gpu:a100=2", &all), of("gpu 4", "gres/gpu:a100=2"));
        assert_eq!(read("cpu=0,gres/gpu=0", &all), of("cpu 0, gpu 0", ""));
        assert_eq!(read("mem=0,gres/gpu=0,gres/gpu:l4=0,license/x=0", &without_gpus), of("mem 0", "license/x=0"));
        assert_eq!(read("cpu=4,mem=1K,cpu=1", &all), of("cpu 1, mem 1024", ""));
        assert_eq!(read("cpu=x", &all), None);
    }

    #[test]
    fn a_partitions_qos_may_set_zero_which_is_a_limit_and_minus_one_which_is_none() {
        let qos = parse_qos("Name|GrpJobs|MaxJobsPU|GrpSubmit|MaxSubmitPU\np|0|0|0|0\nfree|-1|-1|-1|-1\n").unwrap();
        let partition =
            |name: &str, qos: &str| Partition { name: name.into(), qos: Some(qos.into()), ..Partition::default() };
        let partitions = [partition("one", "p"), partition("two", "free")];
        let mut cluster = Cluster { queues: ["one", "two"].map(Queue::new).to_vec(), ..Cluster::default() };
        let rest = limit_partitions(&mut cluster, &partitions, &qos);
        assert!(rest.iter().all(|one| one.settings.is_empty()), "{rest:?}");
        let queue = |at: usize| (cluster.queues[at].max_jobs, cluster.queues[at].max_user_jobs);
        assert_eq!((queue(0), queue(1)), ((Some(0), Some(0)), (None, None)));
        let submitted = cluster.limits.iter().map(|limit| (limit.each_user, limit.max_submitted));
        assert_eq!(submitted.collect::<Vec<_>>(), [(true, Some(0)), (false, Some(0))]);
    }

    #[test]
    fn a_partition_has_the_limits_of_its_qos() {
        let qos = parse_qos(
            "Name|Priority|GrpTRES|GrpJobs|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU\nnormal|0||||||\n\
             p|0|cpu=64|9|mem=4G|01:00:00|cpu=16,gres/gpu=2|3\nboth|7|cpu=8,node=2||cpu=4,billing=9|||2\n",
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
        assert_eq!(left, ["Priority", "GrpTRES", "MaxTRES"]);
        assert_eq!([&rest[2].settings[1].1, &rest[2].settings[2].1], ["node=2", "billing=9"]);
    }
}
