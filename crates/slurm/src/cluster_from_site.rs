//! Converts a site's nodes and partitions to the cluster that a simulation uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use evenhand_model::{Cluster, MachineGroup, Queue, Rational, ResourceQuantity, Span, expand_hostlist};

use crate::nodes::Node;
use crate::partitions::Partition;

/// Options of the conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Whether to leave out nodes on which no job can start now.
    pub exclude_unavailable: bool,
    /// The prefix of features that state a node's speed as a number after it: `spec_` for `spec_150`. The slowest node
    /// has speed 1.
    pub speed_feature: Option<String>,
    /// Whether features of nodes, and the types of their GPUs (`gpu:a100`), are properties of their machines. A feature that has the
    /// name of a partition, but not its nodes, keeps the name, and the partition's property becomes `partition:NAME`.
    pub with_features: bool,
}

/// A site's cluster, and what was left out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteCluster {
    /// Groups of equal nodes, named after their nodes; partitions as queues, which use the nodes that have the name of
    /// the partition as a property, or `partition:` and the name.
    pub cluster: Cluster,
    /// The nodes of each group, as indices into the list of nodes.
    pub members: Vec<Vec<usize>>,
    /// An entry for each reason for which nodes or partitions were left out.
    pub notes: Vec<LeftOut>,
}

/// Nodes or a partition that are left out of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What is left out and why, in a sentence.
    pub sentence: String,
    /// The line of the first in the text of the nodes or of the partitions; 0 if it is not known.
    pub line: usize,
    /// Whether it is a partition.
    pub is_partition: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Converts nodes and partitions to a cluster.
pub fn cluster(nodes: &[Node], partitions: &[Partition], options: &ClusterOptions) -> SiteCluster {
    let mut notes = Vec::new();
    let mut note = |left_out: &[&Node], what: &str| {
        let Some(first) = left_out.first() else { return };
        let names = shortened(&left_out.iter().map(|node| node.name.as_str()).collect::<Vec<_>>());
        let are = if left_out.len() == 1 { "machine is" } else { "machines are" };
        let sentence = format!("{} {are} left out: {what} ({names}).", left_out.len());
        notes.push(LeftOut { sentence, line: first.line, is_partition: false });
    };
    let knows_partitions = nodes.iter().any(|n| !n.partitions.is_empty());
    let without_partition = |n: &&Node| knows_partitions && n.partitions.is_empty();
    let of = |which: &dyn Fn(&&Node) -> bool| nodes.iter().filter(which).collect::<Vec<&Node>>();
    note(&of(&|n| n.is_future()), "its state is FUTURE");
    note(&of(&|n| !n.is_future() && without_partition(n)), "in no partition");
    let included = || nodes.iter().enumerate().filter(|(_, n)| !n.is_future() && !without_partition(n));
    if options.exclude_unavailable {
        note(&included().map(|(_, n)| n).filter(|n| n.is_unavailable()).collect::<Vec<_>>(), "down or drained");
    }
    let used: Vec<(usize, &Node)> =
        included().filter(|(_, n)| !(options.exclude_unavailable && n.is_unavailable())).collect();
    let speed = |node: &Node| {
        let prefix = options.speed_feature.as_deref()?;
        let numbers = node.features.iter().filter_map(|f| f.strip_prefix(prefix)?.parse::<u32>().ok());
        numbers.filter(|n| *n > 0).max()
    };
    let slowest = used.iter().filter_map(|(_, n)| speed(n)).min().unwrap_or(1);
    let features = |node: &Node| if options.with_features { node.features.clone() } else { Vec::new() };
    let of_partition = |partition: &String| {
        let has = |node: &Node| (features(node).contains(partition), node.partitions.contains(partition));
        let differs = used.iter().any(|(_, node)| has(node).0 != has(node).1);
        let is_feature = used.iter().any(|(_, node)| has(node).0);
        if is_feature && differs { format!("partition:{partition}") } else { partition.clone() }
    };
    let gpu_types = |node: &Node| if options.with_features { node.gpu_types() } else { BTreeSet::new() };
    // Equal in amounts, speed, weight, partitions, features and types of GPUs.
    let mut equal: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, node) in &used {
        let mut properties: Vec<String> =
            node.partitions.iter().map(of_partition).chain(features(node)).chain(gpu_types(node)).collect();
        properties.sort();
        properties.dedup();
        let weight = u32::try_from(node.weight).unwrap_or(u32::MAX);
        let key = (node.cpus, node.memory, node.gpus(), speed(node).unwrap_or(slowest), weight, properties);
        equal.entry(key).or_default().push(*at);
    }
    let mut resources = vec!["cpu".to_string()];
    let (has_memory, has_gpus) = (equal.keys().any(|k| k.1 > 0), equal.keys().any(|k| k.2 > 0));
    resources.extend(has_memory.then(|| "mem".to_string()));
    resources.extend(has_gpus.then(|| "gpu".to_string()));
    let number = |n: u64| ResourceQuantity { exact: n.into(), is_bytes: false };
    // In the order of their first nodes.
    let mut equal: Vec<_> = equal.into_iter().collect();
    equal.sort_by_key(|(_, members)| members[0]);
    let (mut groups, mut members) = (Vec::new(), Vec::new());
    for ((cpus, memory, gpus, speed, weight, properties), group_nodes) in equal {
        let mut has = vec![number(cpus)];
        has.extend(has_memory.then(|| ResourceQuantity { exact: memory.into(), is_bytes: true }));
        has.extend(has_gpus.then(|| number(gpus)));
        let names: Vec<&str> = group_nodes.iter().map(|&at| nodes[at].name.as_str()).collect();
        let speed = Rational::from_parts(speed.into(), slowest.into());
        let count = u32::try_from(group_nodes.len()).unwrap_or(u32::MAX);
        groups.push(MachineGroup {
            hosts: hosts_of(&names),
            name: shortened(&names),
            count,
            capacity: has,
            speed,
            weight,
            properties,
        });
        members.push(group_nodes);
    }
    let mut queues = Vec::new();
    for partition in partitions {
        let property = of_partition(&partition.name);
        if !groups.iter().any(|g| g.properties.contains(&property)) {
            let sentence = format!("Partition {} is left out: it has no machine.", partition.name);
            notes.push(LeftOut { sentence, line: partition.line, is_partition: true });
            continue;
        }
        // Slurm's default tier 1 corresponds to queue priority 0.
        let tier = i64::try_from(partition.priority_tier).unwrap_or(i64::MAX).min(i64::from(i32::MAX)) - 1;
        queues.push(Queue {
            priority: tier as i32,
            max_wall: partition.max_time.span(),
            properties: vec![property],
            whole_machines: partition.exclusive,
            preempt_mode: partition
                .preempt_mode
                .as_deref()
                .and_then(|text| crate::site_files::PreemptModes::read(text).mode),
            grace_time: Span::from_secs(partition.grace_time),
            ..Queue::new(partition.name.clone())
        });
    }
    SiteCluster { cluster: Cluster { resources, groups, queues, ..Cluster::default() }, members, notes }
}

/// The names of machines that the name of their group does not list in their order.
fn hosts_of(names: &[&str]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let listed = expand_hostlist(&shortened(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    if listed.is_some_and(|listed| listed == names) { Vec::new() } else { names }
}

/// Returns a hostlist expression for names that differ in the number at their end, such as `n[1-3,7]`; the first name
/// and a count if the names differ otherwise or the expression is long.
pub(crate) fn shortened(names: &[&str]) -> String {
    const MAX_LEN: usize = 60;
    let parts: Vec<(&str, &str)> =
        names.iter().map(|name| name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len())).collect();
    let Some((prefix, first)) = parts.first().copied() else { return String::new() };
    let is_number = |digits: &str| !digits.is_empty() && digits.len() < 10;
    let of_prefix = parts.iter().all(|(p, digits)| *p == prefix && is_number(digits));
    // n[08-10] has numbers of two digits, n[8-10] numbers without leading zeros.
    let is_padded = |digits: &str| digits.len() > 1 && digits.starts_with('0');
    let equal = of_prefix
        && (parts.iter().all(|(_, digits)| digits.len() == first.len())
            || !parts.iter().any(|(_, digits)| is_padded(digits)));
    let padding = if parts.iter().any(|(_, digits)| is_padded(digits)) { first.len() } else { 0 };
    let numbers: Option<Vec<u64>> = parts.iter().map(|(_, digits)| digits.parse().ok()).collect();
    let rest = names.len() - 1;
    let by_hand = || if rest == 0 { names[0].to_string() } else { format!("{} and {rest} more", names[0]) };
    let Some(mut numbers) = numbers.filter(|_| equal && rest > 0) else { return by_hand() };
    numbers.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for n in numbers {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 >= n => *to = n,
            _ => ranges.push((n, n)),
        }
    }
    let range = |(from, to): &(u64, u64)| {
        if from == to { format!("{from:0padding$}") } else { format!("{from:0padding$}-{to:0padding$}") }
    };
    let text = format!("{prefix}[{}]", ranges.iter().map(range).collect::<Vec<_>>().join(","));
    if text.len() <= MAX_LEN { text } else { by_hand() }
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

    fn described(options: &ClusterOptions) -> SiteCluster {
        let nodes = Nodes::parse(NODES).unwrap().nodes;
        cluster(&nodes, &Partitions::parse(PARTITIONS).unwrap().partitions, options)
    }

    #[test]
    fn equal_nodes_form_a_group_and_partitions_are_queues() {
        let SiteCluster { cluster, members, notes } =
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
        let notes: Vec<(&str, usize)> = notes.iter().map(|note| (note.sentence.as_str(), note.line)).collect();
        assert_eq!(
            notes,
            [
                ("1 machine is left out: its state is FUTURE (f1).", 5),
                ("1 machine is left out: in no partition (x1).", 6),
                ("Partition none is left out: it has no machine.", 3)
            ]
        );
        let up = described(&ClusterOptions { exclude_unavailable: true, ..ClusterOptions::default() });
        assert_eq!(up.cluster.groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["n1", "n3"]);
        assert!(
            up.notes.iter().any(|note| note.sentence == "2 machines are left out: down or drained (g1 and 1 more).")
        );
    }

    #[test]
    fn features_are_properties_of_machines() {
        let nodes = "NodeName=n1 CPUTot=8 Partitions=main State=IDLE ActiveFeatures=ib,amd\n\
            NodeName=n2 CPUTot=8 Partitions=main,fast State=IDLE ActiveFeatures=fast,ib\n\
            NodeName=n3 CPUTot=8 Partitions=main,fast,ib State=IDLE\n\
            NodeName=n4 CPUTot=8 Partitions=main State=IDLE ActiveFeatures=amd,ib\n";
        let partitions = "PartitionName=main\nPartitionName=fast\nPartitionName=ib\n";
        let nodes = Nodes::parse(nodes).unwrap().nodes;
        let options = ClusterOptions { with_features: true, ..ClusterOptions::default() };
        let found = cluster(&nodes, &Partitions::parse(partitions).unwrap().partitions, &options).cluster;
        let groups: Vec<(&str, String)> =
            found.groups.iter().map(|group| (group.name.as_str(), group.properties.join(" "))).collect();
        assert_eq!(
            groups,
            [
                ("n[1,4]", "amd ib main".into()),
                ("n2", "fast ib main partition:fast".into()),
                ("n3", "main partition:fast partition:ib".into()),
            ]
        );
        let queues: Vec<&str> = found.queues.iter().map(|queue| queue.properties[0].as_str()).collect();
        assert_eq!(queues, ["main", "partition:fast", "partition:ib"]);
    }

    #[test]
    fn types_of_gpus_are_properties_of_machines() {
        let node = |name: &str, gres: &str| format!("NodeName={name} CPUTot=8 Partitions=gpu State=IDLE Gres={gres}\n");
        let nodes = [("g1", "gpu:A100:2(S:0-1)"), ("g2", "gpu:h100:2"), ("g3", "gpu:a100:2"), ("g4", "gpu:2")];
        let nodes: String =
            nodes.iter().map(|(name, gres)| node(name, gres)).chain([node("g5", "gpu:a:1,gpu:b:1")]).collect();
        let nodes = Nodes::parse(&nodes).unwrap().nodes;
        let of = |with_features: bool| {
            let options = ClusterOptions { with_features, ..ClusterOptions::default() };
            let groups = cluster(&nodes, &[], &options).cluster.groups;
            groups.iter().map(|group| format!("{} {}", group.name, group.properties.join(" "))).collect::<Vec<_>>()
        };
        assert_eq!(of(true), ["g[1,3] gpu gpu:a100", "g2 gpu gpu:h100", "g4 gpu", "g5 gpu gpu:a gpu:b"]);
        assert_eq!(of(false), ["g[1-5] gpu"]);
    }

    #[test]
    fn names_are_shortened_to_hostlist_expressions() {
        assert_eq!(shortened(&["n09", "n10", "n12"]), "n[09-10,12]");
        assert_eq!(shortened(&["n9", "n10", "n0"]), "n[0,9-10]");
        assert_eq!(shortened(&["n9", "n010"]), "n9 and 1 more");
        let rack: Vec<String> = (1..=5040).map(|i| format!("t{i}")).collect();
        let rack: Vec<&str> = rack.iter().map(String::as_str).collect();
        assert_eq!(shortened(&rack), "t[1-5040]");
        assert_eq!(hosts_of(&rack), Vec::<String>::new(), "the name lists the machines");
        assert_eq!((shortened(&["login"]), shortened(&["a1", "b2"])), ("login".into(), "a1 and 1 more".into()));
        let many: Vec<String> = (0..90).map(|i| format!("n{:03}", 2 * i)).collect();
        assert_eq!(shortened(&many.iter().map(String::as_str).collect::<Vec<_>>()), "n000 and 89 more");
    }
}
