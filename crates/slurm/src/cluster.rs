//! A site's machines and partitions as the cluster that a simulation runs on.

use std::collections::BTreeMap;

use evenhand_model::{Cluster, MachineGroup, Queue, Rational, ResourceQuantity};

use crate::nodes::Node;
use crate::partitions::Partition;

/// What to make of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Leave out machines on which nothing can start now.
    pub without_out: bool,
    /// Features that begin like this and go on with a number say how fast a machine is: `spec_`. The slowest has speed 1.
    pub speed_feature: Option<String>,
}

/// A cluster, and what was left out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Groups of machines that are alike, by their first machine; partitions as queues that use the machines with a
    /// property of the partition's name.
    pub cluster: Cluster,
    /// Of each group the machines, as places in the list of nodes.
    pub members: Vec<Vec<usize>>,
    /// Machines that are left out and why, a sentence each.
    pub notes: Vec<String>,
}

/// The cluster of a site.
pub fn cluster(nodes: &[Node], partitions: &[Partition], options: &ClusterOptions) -> Described {
    let mut notes = Vec::new();
    let mut note = |count: usize, what: &str| {
        if count > 0 {
            notes.push(format!("{count} {} left out: {what}.", if count == 1 { "machine is" } else { "machines are" }));
        }
    };
    let knows_partitions = nodes.iter().any(|n| !n.partitions.is_empty());
    let homeless = |n: &&Node| knows_partitions && n.partitions.is_empty();
    note(nodes.iter().filter(|n| n.is_future()).count(), "not there yet (FUTURE)");
    note(nodes.iter().filter(|n| !n.is_future()).filter(homeless).count(), "in no partition");
    let there = || nodes.iter().enumerate().filter(|(_, n)| !n.is_future() && !homeless(n));
    if options.without_out {
        note(there().filter(|(_, n)| n.is_out()).count(), "down or drained");
    }
    let used: Vec<(usize, &Node)> = there().filter(|(_, n)| !(options.without_out && n.is_out())).collect();
    let speed = |node: &Node| {
        let prefix = options.speed_feature.as_deref()?;
        let numbers = node.features.iter().filter_map(|f| f.strip_prefix(prefix)?.parse::<u32>().ok());
        numbers.filter(|n| *n > 0).max()
    };
    let slowest = used.iter().filter_map(|(_, n)| speed(n)).min().unwrap_or(1);
    // Alike: the same amounts, speed and partitions.
    let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, node) in used {
        let mut partitions = node.partitions.clone();
        partitions.sort();
        let key = (node.cpus, node.memory, node.gpus(), speed(node).unwrap_or(slowest), partitions);
        alike.entry(key).or_default().push(at);
    }
    let mut resources = vec!["cpu".to_string()];
    let (has_memory, has_gpus) = (alike.keys().any(|k| k.1 > 0), alike.keys().any(|k| k.2 > 0));
    resources.extend(has_memory.then(|| "mem".to_string()));
    resources.extend(has_gpus.then(|| "gpu".to_string()));
    let number = |n: u64| ResourceQuantity { exact: n.into(), is_bytes: false };
    // In the order of their first machines.
    let mut alike: Vec<_> = alike.into_iter().collect();
    alike.sort_by_key(|(_, members)| members[0]);
    let (mut groups, mut members) = (Vec::new(), Vec::new());
    for ((cpus, memory, gpus, speed, properties), nodes_of) in alike {
        let mut has = vec![number(cpus)];
        has.extend(has_memory.then(|| ResourceQuantity { exact: memory.into(), is_bytes: true }));
        has.extend(has_gpus.then(|| number(gpus)));
        let names: Vec<&str> = nodes_of.iter().map(|&at| nodes[at].name.as_str()).collect();
        let speed = Rational::from_parts(speed.into(), slowest.into());
        let count = u32::try_from(nodes_of.len()).unwrap_or(u32::MAX);
        groups.push(MachineGroup { name: shortened(&names), count, capacity: has, speed, properties });
        members.push(nodes_of);
    }
    let mut queues = Vec::new();
    for partition in partitions {
        if !groups.iter().any(|g| g.properties.contains(&partition.name)) {
            notes.push(format!("Partition {} is left out: it has no machine.", partition.name));
            continue;
        }
        // Slurm's default tier is 1, as is the queue of priority 0 here.
        let tier = i64::try_from(partition.priority_tier).unwrap_or(i64::MAX).min(i64::from(i32::MAX)) - 1;
        queues.push(Queue {
            priority: tier as i32,
            max_wall: partition.max_time.span(),
            properties: vec![partition.name.clone()],
            ..Queue::new(partition.name.clone())
        });
    }
    Described { cluster: Cluster { resources, groups, queues }, members, notes }
}

/// Names that differ in the number at their end, as Slurm shortens them: `n[1-3,7]`; of long lists the first.
pub(crate) fn shortened(names: &[&str]) -> String {
    const LONGEST: usize = 60;
    let parts: Vec<(&str, &str)> =
        names.iter().map(|name| name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len())).collect();
    let Some((prefix, first)) = parts.first().copied() else { return String::new() };
    let alike = parts
        .iter()
        .all(|(p, digits)| *p == prefix && digits.len() == first.len() && !digits.is_empty() && digits.len() < 10);
    let numbers: Option<Vec<u64>> = parts.iter().map(|(_, digits)| digits.parse().ok()).collect();
    let rest = names.len() - 1;
    let by_hand = || if rest == 0 { names[0].to_string() } else { format!("{} and {rest} more", names[0]) };
    let Some(mut numbers) = numbers.filter(|_| alike && rest > 0) else { return by_hand() };
    numbers.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for n in numbers {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 >= n => *to = n,
            _ => ranges.push((n, n)),
        }
    }
    let width = first.len();
    let range = |(from, to): &(u64, u64)| {
        if from == to { format!("{from:0width$}") } else { format!("{from:0width$}-{to:0width$}") }
    };
    let text = format!("{prefix}[{}]", ranges.iter().map(range).collect::<Vec<_>>().join(","));
    if text.len() <= LONGEST { text } else { by_hand() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nodes, Partitions};

    const NODES: &str = "NodeName=n1 CPUTot=8 RealMemory=16000 Partitions=main,short State=IDLE ActiveFeatures=spec_100\n\
        NodeName=g1 CPUTot=4 RealMemory=32000 Gres=gpu:2 Partitions=main State=DOWN ActiveFeatures=spec_150\n\
        NodeName=n2 CPUTot=8 RealMemory=16000 Partitions=short,main State=MIXED+DRAIN ActiveFeatures=spec_100\n\
        NodeName=n3 CPUTot=8 RealMemory=16000 Partitions=main State=IDLE ActiveFeatures=spec_100\n\
        NodeName=f1 CPUTot=8 Partitions=main State=FUTURE\nNodeName=x1 CPUTot=8 State=IDLE\n";
    const PARTITIONS: &str = "PartitionName=main MaxTime=UNLIMITED PriorityTier=1\n\
        PartitionName=short MaxTime=01:00:00 PriorityTier=5\nPartitionName=none Nodes=(null)\n";

    fn described(options: &ClusterOptions) -> Described {
        let nodes = Nodes::parse(NODES).unwrap().nodes;
        cluster(&nodes, &Partitions::parse(PARTITIONS).unwrap().partitions, options)
    }

    #[test]
    fn machines_that_are_alike_are_a_group_and_partitions_are_queues() {
        let Described { cluster, members, notes } =
            described(&ClusterOptions { speed_feature: Some("spec_".into()), ..ClusterOptions::default() });
        assert_eq!(cluster.resources, ["cpu", "mem", "gpu"]);
        let groups: Vec<(&str, u32, String)> =
            cluster.groups.iter().map(|g| (g.name.as_str(), g.count, g.speed.to_string())).collect();
        assert_eq!(groups, [("n[1-2]", 2, "1".into()), ("g1", 1, "3/2".into()), ("n3", 1, "1".into())]);
        assert_eq!(members, [vec![0, 2], vec![1], vec![3]]);
        assert_eq!(cluster.groups[0].properties, ["main", "short"]);
        assert_eq!(
            (cluster.groups[0].capacity[1].exact.to_string(), cluster.groups[0].capacity[1].is_bytes),
            ((16_000u64 << 20).to_string(), true)
        );
        let queues: Vec<(&str, i32, bool)> =
            cluster.queues.iter().map(|q| (q.name.as_str(), q.priority, q.max_wall.is_some())).collect();
        assert_eq!(queues, [("main", 0, false), ("short", 4, true)]);
        assert_eq!(
            notes,
            [
                "1 machine is left out: not there yet (FUTURE).",
                "1 machine is left out: in no partition.",
                "Partition none is left out: it has no machine."
            ]
        );
        let up = described(&ClusterOptions { without_out: true, ..ClusterOptions::default() });
        assert_eq!(up.cluster.groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["n1", "n3"]);
        assert!(up.notes.contains(&"2 machines are left out: down or drained.".to_string()));
    }

    #[test]
    fn names_are_shortened_as_slurm_does() {
        assert_eq!(shortened(&["n09", "n10", "n12"]), "n[09-10,12]");
        assert_eq!(shortened(&["n9", "n10"]), "n9 and 1 more");
        assert_eq!((shortened(&["login"]), shortened(&["a1", "b2"])), ("login".into(), "a1 and 1 more".into()));
        let many: Vec<String> = (0..90).map(|i| format!("n{:03}", 2 * i)).collect();
        assert_eq!(shortened(&many.iter().map(String::as_str).collect::<Vec<_>>()), "n000 and 89 more");
    }
}
