//! What a job that could be submitted asks of nodes: whether a partition can ever start it, whether it could start now, and by when
//! it could, if the jobs that run reach their limits.

use std::collections::HashMap;

use evenhand_model::{Nano, Requirements, Span, Time, counted, expand_hostlist};
use thiserror::Error;

use crate::explain_wait::limit_s;
use crate::nodes::Node;
use crate::parse_values::Limit;
use crate::partitions::{DefaultMemory, Partition};
use crate::queue::{Job, Queue};

/// What a job asks for, as far as nodes and partitions are held against it. Amounts are those of the smallest nodes that do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequest {
    /// The least number of nodes.
    pub nodes: u64,
    /// The pieces that stay together on a node: the Slurm tasks of a script, the chunks of a shape.
    pub chunks: u64,
    /// The CPUs of each.
    pub cpus_per_chunk: u64,
    /// The memory on each node, in bytes; 0 if none is named.
    pub memory_per_node: u64,
    /// The GPUs on each node.
    pub gpus_per_node: u64,
    /// The GPUs of the whole job.
    pub gpus: u64,
    /// The type of all of these GPUs, such as `h100`, if it names one.
    pub gpu_type: Option<String>,
    /// The features that its nodes must have, and whether it has them for itself.
    pub requires: Requirements,
    /// The wall time.
    pub limit: Span,
}

/// Why a partition never starts a job.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NeverStarts {
    /// It is longer than the partition allows.
    #[error(
        "found a wall time of {asked}, expected at most {most}, which is the MaxTime of partition {partition}; ask for less time"
    )]
    TooLong {
        /// The partition.
        partition: String,
        /// The wall time.
        asked: Limit,
        /// The most that is allowed.
        most: Limit,
    },
    /// It needs more nodes than the partition allows.
    #[error(
        "found {asked} nodes, expected at most {most}, which is the MaxNodes of partition {partition}; ask for fewer"
    )]
    TooManyNodes {
        /// The partition.
        partition: String,
        /// The nodes.
        asked: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// The nodes of the partition do not have what it asks for, even if all are free.
    #[error(
        "found {asked}, expected what the nodes of partition {partition} have: {has}; ask for less, or name another partition"
    )]
    NoNodes {
        /// The partition.
        partition: String,
        /// What it asks for.
        asked: String,
        /// What the nodes have.
        has: String,
    },
}

/// What one node has, or has free: CPUs, memory in bytes, GPUs.
type Amounts = [u64; 3];

impl NewRequest {
    /// Checks that the nodes of a partition can start the job once all of them are up and free.
    ///
    /// # Errors
    /// Returns why they never can.
    pub fn check(&self, partition: &Partition, nodes: &[Node]) -> Result<(), NeverStarts> {
        let name = || partition.name.clone();
        if let Some(most) = partition.max_time.span().filter(|most| self.limit > *most) {
            return Err(NeverStarts::TooLong {
                partition: name(),
                asked: Limit::Span(self.limit),
                most: Limit::Span(most),
            });
        }
        if let Some(most) = partition.max_nodes.filter(|most| self.nodes > *most) {
            return Err(NeverStarts::TooManyNodes { partition: name(), asked: self.nodes, most });
        }
        let of_partition = || of_partition(nodes, partition);
        if self.fits(of_partition().filter(|node| self.may_use(node)).map(|node| self.whole(node))) {
            return Ok(());
        }
        Err(NeverStarts::NoNodes { partition: name(), asked: self.asked(), has: self.has(of_partition()) })
    }

    /// Returns in how many seconds from now the nodes of a partition have free what the job asks for, if the jobs that run reach their
    /// limits, no other starts, and nodes that are down stay so: 0 if they have it now. None if never.
    pub fn free_in(&self, partition: &Partition, nodes: &[Node], queue: &Queue, now: Time) -> Option<i64> {
        let can_start = |node: &&Node| !node.is_unavailable() && self.may_use(node);
        let usable: Vec<&Node> = of_partition(nodes, partition).filter(can_start).collect();
        let whole: Vec<Amounts> = usable.iter().map(|node| self.whole(node)).collect();
        let mut free: Vec<Amounts> = usable.iter().map(|node| self.free_of(node)).collect();
        // Of a node that it would have for itself, nothing is free while a job is there.
        let has_jobs = |free: &Amounts, whole: &Amounts| self.requires.whole_machines && free[0] < whole[0];
        let fits = |free: &[Amounts]| {
            self.fits(free.iter().zip(&whole).filter(|(free, whole)| !has_jobs(free, whole)).map(|(free, _)| *free))
        };
        if fits(&free) {
            return Some(0);
        }
        let place: HashMap<&str, usize> =
            usable.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
        let mut ends: Vec<(i64, &Job)> = queue.running().map(|job| (left_s(job, now), job)).collect();
        ends.sort_by_key(|(end, job)| (*end, job.id));
        for (at, (end, job)) in ends.iter().enumerate() {
            let names = job.node_list.as_deref().and_then(expand_hostlist).unwrap_or_default();
            let each = job.requested_per_node().map(|nano| u64::try_from(nano / NANO).unwrap_or(u64::MAX));
            for node in names.iter().filter_map(|name| place.get(name.as_str()).copied()) {
                // Of a job on unequal nodes the mean part is known; a node has never more free than it has.
                (0..3).for_each(|r| free[node][r] = free[node][r].saturating_add(each[r]).min(whole[node][r]));
            }
            let last_at_once = ends.get(at + 1).is_none_or(|(next, _)| next > end);
            if last_at_once && fits(&free) {
                return Some(*end);
            }
        }
        None
    }

    /// Returns how many GPUs it asks for in all.
    pub fn all_gpus(&self) -> u64 {
        self.gpus.max(self.gpus_per_node.saturating_mul(self.nodes))
    }

    /// Returns how many CPUs it holds at least, if it has its nodes for itself: all of those of the smallest nodes that it may use.
    pub fn cpus_of_whole_nodes(&self, partition: &Partition, nodes: &[Node]) -> Option<u64> {
        let can = |node: &&Node| self.may_use(node) && node.cpus >= self.cpus_per_chunk;
        let least = of_partition(nodes, partition).filter(can).map(|node| node.cpus).min();
        let least = least.filter(|_| self.requires.whole_machines)?;
        let chunks_on_one = (least / self.cpus_per_chunk.max(1)).max(1);
        Some(self.nodes.max(self.chunks.div_ceil(chunks_on_one)).saturating_mul(least))
    }

    /// Returns how much memory Slurm gives it in all if it names none, in bytes, and the request with the part of that on each node.
    /// `default` is what the partition gives, else whole nodes.
    #[must_use]
    pub fn with_default_memory(
        self,
        default: Option<DefaultMemory>,
        partition: &Partition,
        nodes: &[Node],
    ) -> (NewRequest, u64) {
        let cpus = self.chunks.saturating_mul(self.cpus_per_chunk);
        let (memory_per_node, all) = match default {
            Some(DefaultMemory::PerCpu(bytes)) => {
                (bytes.saturating_mul(self.cpus_per_chunk), bytes.saturating_mul(cpus))
            }
            Some(DefaultMemory::PerNode(bytes)) => (bytes, bytes.saturating_mul(self.nodes)),
            None => {
                // The smallest node on which it could start.
                let can = |node: &&Node| {
                    let [cpus, _, gpus] = self.whole(node);
                    let enough = cpus >= self.cpus_per_chunk && gpus >= self.gpus_per_node;
                    enough && self.may_use(node) && !node.is_unavailable()
                };
                let least = of_partition(nodes, partition).filter(can).map(|node| node.memory).min().unwrap_or(0);
                (least, least.saturating_mul(self.nodes))
            }
        };
        (NewRequest { memory_per_node, ..self }, all)
    }

    /// Returns whether a node has the features and the type of GPUs that it requires.
    fn may_use(&self, node: &Node) -> bool {
        let has = |word: &String| node.features.contains(word);
        let is_of_type = |kind: &String| node.gpus_of_type(kind).0 > 0;
        self.requires.wanted.iter().all(|any_of| any_of.iter().any(has)) && self.gpu_type.iter().all(is_of_type)
    }

    /// Returns the GPUs of a node that it can use, and how many of them jobs hold.
    fn gpus_of(&self, node: &Node) -> (u64, u64) {
        match &self.gpu_type {
            Some(kind) => node.gpus_of_type(kind),
            None => (node.gpus(), node.allocated.gpus()),
        }
    }

    fn whole(&self, node: &Node) -> Amounts {
        // A release that prints no memory of nodes does not limit it.
        [node.cpus, if node.memory == 0 { u64::MAX } else { node.memory }, self.gpus_of(node).0]
    }

    fn free_of(&self, node: &Node) -> Amounts {
        let [cpus, memory, gpus] = self.whole(node);
        [
            cpus.saturating_sub(node.allocated_cpus),
            if node.memory == 0 { memory } else { memory.saturating_sub(node.allocated_memory) },
            gpus.saturating_sub(self.gpus_of(node).1),
        ]
    }

    fn fits(&self, nodes: impl Iterator<Item = Amounts>) -> bool {
        let (mut fitting, mut chunks, mut gpus) = (0u64, 0u64, 0u64);
        for [cpus, memory, has_gpus] in nodes {
            let on_node = cpus / self.cpus_per_chunk.max(1);
            if on_node > 0 && memory >= self.memory_per_node && has_gpus >= self.gpus_per_node {
                fitting += 1;
                chunks = chunks.saturating_add(on_node);
                gpus = gpus.saturating_add(has_gpus);
            }
        }
        fitting >= self.nodes && chunks >= self.chunks && gpus >= self.gpus
    }

    fn asked(&self) -> String {
        let mut parts = vec![format!(
            "{} of {}",
            counted(self.chunks, "task or chunk", "tasks or chunks"),
            cpus(self.cpus_per_chunk)
        )];
        if self.nodes > 1 {
            parts.push(format!("{} nodes", self.nodes));
        }
        if self.memory_per_node > 0 {
            parts.push(format!("{} MiB of memory a node", self.memory_per_node.div_ceil(1 << 20)));
        }
        let gpus = |count: u64| match &self.gpu_type {
            Some(kind) => format!("{} of type {kind}", counted(count, "GPU", "GPUs")),
            None => counted(count, "GPU", "GPUs"),
        };
        if self.gpus_per_node > 0 {
            parts.push(format!("{} a node", gpus(self.gpus_per_node)));
        }
        if self.gpus > 0 {
            parts.push(format!("{} in all", gpus(self.gpus)));
        }
        let features = self.requires.wanted.iter().map(|any_of| any_of.join(" or ")).collect::<Vec<_>>();
        if !features.is_empty() {
            parts.push(format!("features {}", features.join(" and ")));
        }
        parts.join(", ")
    }

    /// What the nodes of a partition have: "2 nodes, at most 8 CPUs, 8000 MiB and 2 GPUs on one, 16 CPUs and 2 GPUs in all", and where
    /// it requires some, how many of the nodes have that.
    fn has<'a>(&self, nodes: impl Iterator<Item = &'a Node>) -> String {
        let (mut count, mut fitting, mut most, mut all) = (0u64, 0u64, [0u64; 3], [0u64; 3]);
        for node in nodes {
            count += 1;
            fitting += u64::from(self.may_use(node));
            for (r, amount) in [node.cpus, node.memory >> 20, node.gpus()].into_iter().enumerate() {
                most[r] = most[r].max(amount);
                all[r] = all[r].saturating_add(amount);
            }
        }
        let gpus = |n: u64| counted(n, "GPU", "GPUs");
        let what = match (&self.gpu_type, self.requires.wanted.is_empty()) {
            (None, true) => None,
            (Some(_), true) => Some("GPUs of that type"),
            (None, false) => Some("those features"),
            (Some(_), false) => Some("those features and GPUs of that type"),
        };
        let having = what.map_or(String::new(), |what| format!(" ({fitting} of them with {what})"));
        format!(
            "{}{having}, at most {}, {} MiB and {} on one, {} and {} in all",
            counted(count, "node", "nodes"),
            cpus(most[0]),
            most[1],
            gpus(most[2]),
            cpus(all[0]),
            gpus(all[2])
        )
    }
}

const NANO: Nano = 1_000_000_000;

fn cpus(count: u64) -> String {
    counted(count, "CPU", "CPUs")
}

fn of_partition<'a>(nodes: &'a [Node], partition: &'a Partition) -> impl Iterator<Item = &'a Node> {
    nodes.iter().filter(|node| !node.is_future() && node.partitions.contains(&partition.name))
}

/// The seconds in which a running job reaches its limit.
fn left_s(job: &Job, now: Time) -> i64 {
    let ran = job.start.map_or(0, |start| now.since(start).whole_secs());
    (limit_s(job) - ran).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Nodes;
    use crate::partitions::Partitions;

    const ONE: NewRequest = NewRequest {
        nodes: 1,
        chunks: 1,
        cpus_per_chunk: 1,
        memory_per_node: 0,
        gpus_per_node: 0,
        gpus: 0,
        gpu_type: None,
        requires: Requirements {
            wanted: Vec::new(),
            unwanted: Vec::new(),
            whole_machines: false,
            separate_machines: false,
            tasks: None,
        },
        limit: Span::from_secs(60),
    };

    /// n1 has 8 CPUs of which 2 are free, both GPUs in use; n2 has 8, is drained in part of the tests, and is outside `small`.
    fn site(state: &str) -> (Vec<Node>, Vec<Partition>) {
        let nodes = format!(
            "NodeName=n1 CPUTot=8 CPUAlloc=6 RealMemory=8000 AllocMem=6000 Gres=gpu:2 AllocTRES=cpu=6,gres/gpu=2 Partitions=main,small State=MIXED\n\
             NodeName=n2 CPUTot=8 RealMemory=4000 Partitions=main State={state}\n"
        );
        let partitions = "PartitionName=main MaxTime=UNLIMITED\nPartitionName=small MaxTime=1:00:00 MaxNodes=1\n";
        (Nodes::parse(&nodes).unwrap().nodes, Partitions::parse(partitions).unwrap().partitions)
    }

    #[test]
    fn what_a_partition_can_never_start_is_refused() {
        let (nodes, partitions) = site("IDLE");
        let error = |request: NewRequest, at: usize| request.check(&partitions[at], &nodes).map_err(|e| e.to_string());
        assert_eq!(error(ONE, 0), Ok(()));
        assert_eq!(
            error(NewRequest { limit: Span::from_secs(7200), ..ONE }, 1).unwrap_err(),
            "found a wall time of 02:00:00, expected at most 01:00:00, which is the MaxTime of partition small; ask for less time"
        );
        assert!(
            error(NewRequest { nodes: 2, chunks: 2, ..ONE }, 1).unwrap_err().contains("MaxNodes of partition small")
        );
        assert_eq!(
            error(NewRequest { gpus_per_node: 7, ..ONE }, 0).unwrap_err(),
            "found 1 task or chunk of 1 CPU, 7 GPUs a node, expected what the nodes of partition main have: 2 nodes, at most 8 CPUs, \
             8000 MiB and 2 GPUs on one, 16 CPUs and 2 GPUs in all; ask for less, or name another partition"
        );
        for never in [
            NewRequest { cpus_per_chunk: 9, ..ONE },
            NewRequest { chunks: 3, cpus_per_chunk: 5, ..ONE },
            NewRequest { nodes: 2, memory_per_node: 5000 << 20, ..ONE },
            NewRequest { gpus: 3, ..ONE },
        ] {
            assert!(error(never.clone(), 0).is_err(), "{never:?}");
        }
        for can in [
            NewRequest { chunks: 2, cpus_per_chunk: 8, nodes: 2, ..ONE },
            NewRequest { memory_per_node: 8000 << 20, gpus: 2, ..ONE },
        ] {
            assert_eq!(error(can.clone(), 0), Ok(()), "{can:?}");
        }
    }

    #[test]
    fn what_is_not_free_is_free_when_the_jobs_that_hold_it_reach_their_limits() {
        let queue = "JOBID|USER|STATE|START_TIME|TIME_LIMIT|NODES|TRES_ALLOC|NODELIST\n\
            1|ann|RUNNING|900|5:00|1|cpu=2,mem=1000M,node=1|n1\n\
            2|ann|RUNNING|900|10:00|1|cpu=4,mem=5000M,node=1,gres/gpu=2|n1\n";
        let queue = Queue::parse(queue).unwrap();
        let (nodes, partitions) = site("IDLE");
        let now = Time::from_secs(1000);
        let free_in = |request: NewRequest| request.free_in(&partitions[0], &nodes, &queue, now);
        assert_eq!(free_in(ONE), Some(0));
        assert_eq!(free_in(NewRequest { gpus_per_node: 1, ..ONE }), Some(500));
        assert_eq!(free_in(NewRequest { chunks: 3, cpus_per_chunk: 4, ..ONE }), Some(200));
        assert_eq!(free_in(NewRequest { chunks: 2, cpus_per_chunk: 8, nodes: 2, ..ONE }), Some(500));
        // A node that is drained is not counted on.
        let (nodes, _) = site("IDLE+DRAIN");
        let none =
            NewRequest { chunks: 2, cpus_per_chunk: 8, nodes: 2, ..ONE }.free_in(&partitions[0], &nodes, &queue, now);
        assert_eq!(none, None);
    }

    /// a1 has two A100s, both in use; h1 has two H100s of which one is free, and an A100; b1 has none, but a job.
    const TYPES: &str = "NodeName=a1 CPUTot=8 CPUAlloc=2 RealMemory=8000 Gres=gpu:a100:2 AllocTRES=cpu=2,gres/gpu=2 Partitions=main ActiveFeatures=old State=MIXED\n\
        NodeName=h1 CPUTot=8 CPUAlloc=1 RealMemory=8000 Gres=gpu:H100:2,gpu:a100:1 AllocTRES=cpu=1,gres/gpu=1,gres/gpu:h100=1 Partitions=main ActiveFeatures=new,ib State=MIXED\n\
        NodeName=b1 CPUTot=8 CPUAlloc=8 RealMemory=8000 Partitions=main ActiveFeatures=old,ib State=ALLOCATED\n";

    #[test]
    fn gpus_of_a_type_features_and_whole_nodes_are_those_that_it_requires() {
        let queue = "JOBID|USER|STATE|START_TIME|TIME_LIMIT|NODES|TRES_ALLOC|NODELIST\n\
            1|ann|RUNNING|900|5:00|1|cpu=2,node=1,gres/gpu=2|a1\n\
            2|ann|RUNNING|900|10:00|1|cpu=1,node=1,gres/gpu=1|h1\n\
            3|ann|RUNNING|900|15:00|1|cpu=8,node=1|b1\n";
        let queue = Queue::parse(queue).unwrap();
        let nodes = Nodes::parse(TYPES).unwrap().nodes;
        let partitions = Partitions::parse("PartitionName=main MaxTime=UNLIMITED\n").unwrap().partitions;
        let free_in = |request: &NewRequest| request.free_in(&partitions[0], &nodes, &queue, Time::from_secs(1000));
        let gpus = |count: u64, kind: Option<&str>| NewRequest {
            gpus_per_node: count,
            gpu_type: kind.map(String::from),
            ..ONE
        };
        // Any two GPUs are free on h1, of one type only when a job there or on a1 has ended.
        assert_eq!(
            [(1, "h100"), (2, "H100"), (2, "a100"), (1, "A100")].map(|(n, kind)| free_in(&gpus(n, Some(kind)))),
            [Some(0), Some(500), Some(200), Some(0)]
        );
        assert_eq!(free_in(&gpus(2, None)), Some(0));
        let requiring = |features: &[&[&str]], whole_machines: bool| {
            let wanted = features.iter().map(|any_of| any_of.iter().map(|word| word.to_string()).collect()).collect();
            NewRequest { requires: Requirements { wanted, whole_machines, ..Requirements::default() }, ..ONE }
        };
        assert_eq!(free_in(&requiring(&[&["new", "old"]], false)), Some(0));
        assert_eq!(free_in(&requiring(&[&["old"], &["ib"]], false)), Some(800), "b1 alone has both");
        // No node is free of jobs before a1.
        assert_eq!(free_in(&requiring(&[], true)), Some(200));
        assert_eq!(free_in(&requiring(&[&["new"]], true)), Some(500));
        let held = |request: NewRequest| request.cpus_of_whole_nodes(&partitions[0], &nodes);
        assert_eq!(
            held(NewRequest { chunks: 5, cpus_per_chunk: 3, ..requiring(&[], true) }),
            Some(24),
            "2 on each node"
        );
        assert_eq!((held(requiring(&[], true)), held(requiring(&[], false))), (Some(8), None));
        let never = |request: NewRequest| request.check(&partitions[0], &nodes).unwrap_err().to_string();
        assert_eq!(
            never(gpus(3, Some("h100"))),
            "found 1 task or chunk of 1 CPU, 3 GPUs of type h100 a node, expected what the nodes of partition main have: 3 nodes (1 of them \
             with GPUs of that type), at most 8 CPUs, 8000 MiB and 3 GPUs on one, 24 CPUs and 5 GPUs in all; ask for less, or name another \
             partition"
        );
        let error = never(requiring(&[&["new"], &["old", "older"]], false));
        assert!(error.contains("1 CPU, features new and old or older, expected"), "{error}");
        assert!(error.contains("3 nodes (0 of them with those features), at most"), "{error}");
    }
}
