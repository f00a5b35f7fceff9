//! The pools in which the jobs of a site start: which resources are counted, what pools have of them, and what jobs need.
//!
//! A pool is the partitions that share nodes, as one machine: that a job has to fit on certain nodes is not counted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use evenhand_forecast::Size;
use evenhand_model::expand_hostlist;
use evenhand_workload::slurm_notation::Gres;

use crate::configuration::Configuration;
use crate::nodes::Node;
use crate::queue::Job;
use crate::tres::Tres;

/// The resources that can be counted, in the order of the amounts of a [`Size`]; memory in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolResource {
    /// CPUs.
    Cpus,
    /// Memory.
    Memory,
    /// GPUs of all types.
    Gpus,
}

impl PoolResource {
    /// All, in order.
    pub const ALL: [PoolResource; 3] = [PoolResource::Cpus, PoolResource::Memory, PoolResource::Gpus];

    /// Returns its name in records.
    pub fn name(self) -> &'static str {
        match self {
            PoolResource::Cpus => "cpu",
            PoolResource::Memory => "mem",
            PoolResource::Gpus => "gpu",
        }
    }

    /// Returns its amount in a size.
    pub fn of(self, size: Size) -> i64 {
        size.amounts()[self as usize]
    }

    /// Returns a size with another amount of it.
    #[must_use]
    pub fn set(self, size: Size, amount: i64) -> Size {
        let mut amounts = size.amounts();
        amounts[self as usize] = amount;
        Size::new(amounts)
    }
}

/// Which resources are counted beside CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Memory: Slurm gives it to jobs, and shows how much nodes have.
    pub memory: bool,
    /// GPUs: nodes have some.
    pub gpus: bool,
}

impl Counted {
    /// Returns what can be counted at a site. Without its configuration it is not known whether Slurm counts memory, and it is not
    /// counted here.
    pub fn of(nodes: &[Node], configuration: Option<&Configuration>) -> Counted {
        let here = || nodes.iter().filter(|node| !node.is_future());
        let counts = configuration.is_some_and(Configuration::counts_memory);
        Counted { memory: counts && here().all(|node| node.memory > 0), gpus: here().any(|node| node.gpus() > 0) }
    }

    /// Returns whether a resource is counted.
    pub fn has(self, resource: PoolResource) -> bool {
        match resource {
            PoolResource::Cpus => true,
            PoolResource::Memory => self.memory,
            PoolResource::Gpus => self.gpus,
        }
    }

    /// Returns the resources that are counted.
    pub fn resources(self) -> impl Iterator<Item = PoolResource> {
        PoolResource::ALL.into_iter().filter(move |resource| self.has(*resource))
    }

    /// Returns what is counted, in words: "CPUs and GPUs".
    pub fn words(self) -> &'static str {
        match (self.memory, self.gpus) {
            (false, false) => "CPUs",
            (true, false) => "CPUs and memory",
            (false, true) => "CPUs and GPUs",
            (true, true) => "CPUs, memory and GPUs",
        }
    }

    /// Returns the word that follows where CPUs are all that is counted: " alone".
    pub(crate) fn alone(self) -> &'static str {
        if self == Counted::default() { " alone" } else { "" }
    }

    /// Returns what of memory and GPUs is not counted, in words.
    pub(crate) fn not_counted(self) -> Vec<&'static str> {
        let memory = (!self.memory).then_some("memory");
        memory.into_iter().chain([if self.gpus { "types of GPUs" } else { "GPUs" }]).collect()
    }

    /// Returns an amount of each resource, 0 of those that are not counted. Memory is in bytes, and is rounded up to MiB.
    pub fn size(self, cpus: u64, bytes: u64, gpus: u64) -> Size {
        let amounts = [cpus, bytes.div_ceil(1 << 20), gpus].map(|amount| i64::try_from(amount).unwrap_or(i64::MAX));
        let uncounted = PoolResource::ALL.into_iter().filter(|resource| !self.has(*resource));
        uncounted.fold(Size::new(amounts), |size, resource| resource.set(size, 0))
    }

    /// Returns what a job of the queue needs or holds, of an array each of its tasks.
    pub fn need(self, job: &Job) -> Size {
        let cpus = job.cpus.unwrap_or_else(|| job.requested.cpus()).max(1);
        self.size(cpus, job.requested.bytes(), gpus_of(job))
    }

    /// Returns what a job held.
    pub fn held(self, tres: &Tres) -> Size {
        self.size(tres.cpus().max(1), tres.bytes(), tres.gpus())
    }

    /// Returns what a node has.
    pub(crate) fn capacity(self, node: &Node) -> Size {
        self.size(node.cpus, node.memory, node.gpus())
    }
}

/// The GPUs of a job. A site that does not list gres/gpu in AccountingStorageTRES has them only in what the job asks for on each
/// node, task or socket; of sockets one on each node is known.
fn gpus_of(job: &Job) -> u64 {
    let gpus = |list: &[Gres]| {
        list.iter().filter(|gres| gres.name == "gpu").fold(0, |sum: u64, gres| sum.saturating_add(gres.count))
    };
    let tracked = job.requested.gpus();
    if tracked > 0 {
        return tracked;
    }
    let nodes = job.requested.nodes().or(job.nodes).unwrap_or(1).max(1);
    let processes = job.processes.unwrap_or(1).max(1);
    gpus(&job.per_job)
        .max(gpus(&job.per_node).saturating_mul(nodes))
        .max(gpus(&job.per_socket).saturating_mul(nodes))
        .max(gpus(&job.per_task).saturating_mul(processes))
}

/// What running jobs hold of the nodes on which jobs may start: of a node that is down or drained, what ends there is free for nobody.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    counted: Counted,
    away: HashSet<String>,
}

impl Held {
    pub(crate) fn new(counted: Counted, nodes: &[Node]) -> Held {
        let away = nodes.iter().filter(|node| node.is_unavailable()).map(|node| node.name.clone());
        Held { counted, away: away.collect() }
    }

    /// Returns what a running job holds; of one on several nodes each has an equal part, rounded up.
    pub(crate) fn by(&self, job: &Job) -> Size {
        let all = self.counted.need(job);
        if self.away.is_empty() {
            return all;
        }
        let nodes = job.node_list.as_deref().and_then(expand_hostlist).unwrap_or_default();
        let here = nodes.iter().filter(|name| !self.away.contains(*name)).count();
        if here == nodes.len() {
            return all;
        }
        let part = |amount: i64| (i128::from(amount) * here as i128 + nodes.len() as i128 - 1) / nodes.len() as i128;
        Size::new(all.amounts().map(|amount| part(amount) as i64))
    }
}

/// Returns what is free on nodes on which jobs may start. `running` are the jobs that run in their partitions.
pub(crate) fn free<'a>(counted: Counted, nodes: &[&Node], running: impl Iterator<Item = &'a Job>) -> Size {
    let (mut cpus, mut bytes, mut gpus) = (0u64, 0u64, 0u64);
    for node in nodes {
        cpus = cpus.saturating_add(node.cpus.saturating_sub(node.allocated_cpus));
        bytes = bytes.saturating_add(node.memory.saturating_sub(node.allocated_memory));
        gpus = gpus.saturating_add(node.gpus().saturating_sub(node.allocated.gpus()));
    }
    // Slurm shows the GPUs that jobs hold only where it tracks them.
    let tracks = nodes.iter().any(|node| node.configured.gpus() > 0 || node.allocated.gpus() > 0);
    if counted.gpus && !tracks {
        gpus = gpus.saturating_sub(running.map(gpus_of).fold(0, u64::saturating_add));
    }
    // What is less than a MiB is not free.
    counted.size(cpus, bytes >> 20 << 20, gpus)
}

/// The pools of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pools {
    /// What is counted.
    pub counted: Counted,
    /// What the nodes of each pool have on which jobs may start; at least one.
    capacities: Vec<Size>,
    of_partition: BTreeMap<String, u32>,
    largest: u32,
}

impl Pools {
    /// Divides a site into pools: partitions that share nodes are in one. A partition that is not `used`, such as one of all nodes for
    /// maintenance, connects no others.
    pub fn new(nodes: &[Node], counted: Counted, used: &BTreeSet<&str>) -> Pools {
        let nodes: Vec<&Node> = nodes.iter().filter(|node| !node.is_future()).collect();
        let connecting = |node: &Node| -> Vec<String> {
            let of_jobs: Vec<String> = node.partitions.iter().filter(|p| used.contains(p.as_str())).cloned().collect();
            if of_jobs.is_empty() { node.partitions.clone() } else { of_jobs }
        };
        // Each partition's pool so far; a number that is not its own pool any more has been joined to a smaller one.
        let mut pools: BTreeMap<String, usize> = BTreeMap::new();
        for (new, node) in nodes.iter().enumerate() {
            let names = connecting(node);
            let known: BTreeSet<usize> = names.iter().filter_map(|name| pools.get(name).copied()).collect();
            let Some(&first) = known.first() else {
                pools.extend(names.into_iter().map(|name| (name, new)));
                continue;
            };
            pools.extend(names.into_iter().map(|name| (name, first)));
            pools.values_mut().filter(|pool| known.contains(pool)).for_each(|pool| *pool = first);
        }
        let numbers: BTreeSet<usize> = pools.values().copied().collect();
        let number = |pool: usize| numbers.iter().position(|known| *known == pool).unwrap_or_default();
        pools.values_mut().for_each(|pool| *pool = number(*pool));
        let mut capacities = vec![Size::ZERO; numbers.len().max(1)];
        let mut of_partition: BTreeMap<String, u32> = BTreeMap::new();
        for node in &nodes {
            // Where no node has a partition, all are one pool; no job starts on a node without one where others have some.
            let pool = match connecting(node).first() {
                Some(name) => pools[name],
                None if pools.is_empty() => 0,
                None => continue,
            };
            if !node.is_unavailable() {
                capacities[pool] = capacities[pool].plus(counted.capacity(node));
            }
            for name in &node.partitions {
                let pool = pools.get(name).copied().unwrap_or(pool);
                of_partition.entry(name.clone()).or_insert(pool as u32);
            }
        }
        // The first of those that are equal.
        let largest = (0..capacities.len()).rev().max_by_key(|&pool| capacities[pool].first()).unwrap_or_default();
        Pools { counted, capacities, of_partition, largest: largest as u32 }
    }

    /// Returns what each pool has.
    pub fn capacities(&self) -> &[Size] {
        &self.capacities
    }

    /// Returns the pool of a partition; that with most CPUs if the partition is not known.
    pub fn of_partition(&self, name: Option<&str>) -> u32 {
        name.and_then(|name| self.of_partition.get(name).copied()).unwrap_or(self.largest)
    }

    /// Returns the pool of a job for these partitions: that of the first whose nodes that are up have what it needs, else of the first.
    pub fn of_job<'a>(&self, partitions: impl IntoIterator<Item = &'a str>, need: Size) -> u32 {
        let pools: Vec<u32> = partitions.into_iter().map(|name| self.of_partition(Some(name))).collect();
        let can = pools.iter().copied().find(|pool| self.has(*pool, need));
        can.or(pools.first().copied()).unwrap_or(self.largest)
    }

    /// Returns whether a pool has what a job needs.
    fn has(&self, pool: u32, need: Size) -> bool {
        self.capacities.get(pool as usize).is_some_and(|capacity| need.fits(*capacity))
    }

    /// Returns a pool that has what a job needs: this one, else the first of all, else this one all the same.
    pub fn that_has(&self, need: Size, pool: u32) -> u32 {
        std::iter::once(pool).chain(0..self.capacities.len() as u32).find(|pool| self.has(*pool, need)).unwrap_or(pool)
    }

    /// Returns what a forecast counts, in words: "the CPUs and GPUs of the whole site", "the CPUs of the whole site alone".
    pub fn counts(&self) -> String {
        let of = match self.capacities.len() {
            1 => "the whole site",
            _ => "the partitions that share nodes with its own",
        };
        format!("the {} of {of}{}", self.counted.words(), self.counted.alone())
    }

    /// Returns what it does not count, in words.
    pub fn misses(&self) -> String {
        let mut words = self.counted.not_counted();
        words.extend(["whole nodes", "certain nodes"]);
        if self.capacities.len() == 1 {
            words.push("partitions");
        }
        let last = words.pop().unwrap_or_default();
        format!("{} or {last}", words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Nodes;
    use crate::queue::Queue;

    const NODES: &str = "NodeName=c1 CPUTot=8 RealMemory=1000 Partitions=main,debug,all State=IDLE\n\
        NodeName=c2 CPUTot=8 RealMemory=1000 Partitions=main,all State=IDLE+DRAIN\n\
        NodeName=g1 CPUTot=4 RealMemory=4000 Gres=gpu:4 CPUAlloc=1 AllocMem=500 CfgTRES=cpu=4,gres/gpu=4 AllocTRES=cpu=1,gres/gpu=3 Partitions=gpu,all State=MIXED\n\
        NodeName=g2 CPUTot=4 RealMemory=4000 Gres=gpu:4 Partitions=gpu,all State=FUTURE\n";

    fn nodes() -> Vec<Node> {
        Nodes::parse(NODES).unwrap().nodes
    }

    #[test]
    fn memory_is_counted_where_slurm_gives_it_to_jobs_and_gpus_where_nodes_have_them() {
        let with_memory = Configuration::parse("SelectTypeParameters=CR_Core_Memory\n").unwrap();
        let without = Configuration::parse("SelectTypeParameters=CR_Core\n").unwrap();
        let nodes = nodes();
        let words = |nodes: &[Node], configuration| Counted::of(nodes, configuration).words();
        assert_eq!(words(&nodes, Some(&with_memory)), "CPUs, memory and GPUs");
        assert_eq!(words(&nodes, Some(&without)), "CPUs and GPUs");
        assert_eq!(words(&nodes, None), "CPUs and GPUs");
        assert_eq!(words(&nodes[..2], Some(&with_memory)), "CPUs and memory");
        assert_eq!(words(&nodes[..2], None), "CPUs");
        let no_memory = Nodes::parse("NodeName=n CPUTot=8\n").unwrap().nodes;
        assert_eq!(words(&no_memory, Some(&with_memory)), "CPUs");
    }

    #[test]
    fn partitions_that_share_nodes_are_a_pool() {
        let all = Counted { memory: true, gpus: true };
        let used = BTreeSet::from(["main", "gpu"]);
        let pools = Pools::new(&nodes(), all, &used);
        assert_eq!(pools.capacities(), [Size::new([8, 1000, 0]), Size::new([4, 4000, 4])]);
        // What is unknown, and the unused partition of all nodes, are the largest pool or that of the first node.
        let of = |name| pools.of_partition(Some(name));
        assert_eq!(["main", "debug", "gpu", "all", "gone"].map(of), [0, 0, 1, 0, 0]);
        // A job for several partitions starts where it fits.
        let gpu = Size::new([1, 0, 1]);
        assert_eq!([pools.of_job(["main", "gpu"], gpu), pools.of_job(["main", "gpu"], Size::from(1))], [1, 0]);
        assert_eq!([pools.of_job(["main"], gpu), pools.of_job([], gpu), pools.that_has(gpu, 0)], [0, 0, 1]);
        assert_eq!(pools.counts(), "the CPUs, memory and GPUs of the partitions that share nodes with its own");
        assert_eq!(pools.misses(), "types of GPUs, whole nodes or certain nodes");
        // A job in the partition of all nodes makes them one pool.
        let pools = Pools::new(&nodes(), all, &BTreeSet::from(["main", "gpu", "all"]));
        assert_eq!(pools.capacities(), [Size::new([12, 5000, 4])]);
        let cpus = Pools::new(&nodes()[..2], Counted::default(), &used);
        assert_eq!(cpus.counts(), "the CPUs of the whole site alone");
        assert_eq!(cpus.misses(), "memory, GPUs, whole nodes, certain nodes or partitions");
        assert_eq!(Pools::new(&[], all, &used).capacities(), [Size::ZERO]);
    }

    #[test]
    fn pools_join_where_a_later_node_is_in_both() {
        let text = "NodeName=a CPUTot=1 Partitions=p\nNodeName=b CPUTot=2 Partitions=q\nNodeName=c CPUTot=4 Partitions=r\n\
            NodeName=d CPUTot=8 Partitions=q,r\n";
        let pools = Pools::new(&Nodes::parse(text).unwrap().nodes, Counted::default(), &BTreeSet::new());
        assert_eq!(pools.capacities(), [Size::from(1), Size::from(14)]);
        assert_eq!(["p", "q", "r", "?"].map(|name| pools.of_partition(Some(name))), [0, 1, 1, 1]);
        // Without the names of partitions all nodes are one pool.
        let pools = Pools::new(
            &Nodes::parse("NodeName=a CPUTot=1\nNodeName=b CPUTot=2\n").unwrap().nodes,
            Counted::default(),
            &BTreeSet::new(),
        );
        assert_eq!((pools.capacities(), pools.of_partition(Some("p"))), (&[Size::from(3)][..], 0));
    }

    #[test]
    fn a_job_needs_what_slurm_counted_for_it_and_else_what_it_asked_for() {
        let text = "JOBID|USER|STATE|NODES|TASKS|CPUS|TRES_ALLOC|TRES_PER_NODE|TRES_PER_JOB|TRES_PER_TASK\n\
            1|ann|PENDING|2|4|8|cpu=8,mem=2000M,node=2,gres/gpu=6|gres:gpu:3||\n\
            2|ann|PENDING|2|4|8|cpu=8,mem=2000M,node=2|gres:gpu:3||\n\
            3|ann|PENDING|1|4|4|cpu=4,mem=1.5M|||gres:gpu:a100:2\n\
            4|ann|PENDING|1|1||cpu=2|||\n";
        let queue = Queue::parse(text).unwrap();
        let all = Counted { memory: true, gpus: true };
        let need = |at: usize| all.need(&queue.jobs[at]).amounts();
        assert_eq!([0, 1, 2, 3].map(need), [[8, 2000, 6], [8, 2000, 6], [4, 2, 8], [2, 0, 0]]);
        assert_eq!(Counted::default().need(&queue.jobs[0]), Size::from(8));
    }

    #[test]
    fn free_is_what_nodes_do_not_give_to_jobs() {
        let (nodes, all) = (nodes(), Counted { memory: true, gpus: true });
        let none = || std::iter::empty();
        assert_eq!(free(all, &[&nodes[0], &nodes[2]], none()), Size::new([11, 4500, 1]));
        // What of GPUs that Slurm does not track is free follows from the jobs that run.
        let text = "JOBID|USER|STATE|NODES|CPUS|TRES_PER_NODE\n1|ann|RUNNING|1|1|gres:gpu:3\n";
        let (untracked, queue) =
            (Nodes::parse("NodeName=g CPUTot=4 Gres=gpu:4\n").unwrap().nodes, Queue::parse(text).unwrap());
        assert_eq!(free(all, &[&untracked[0]], queue.running()).amounts()[2], 1);
    }

    #[test]
    fn what_a_job_holds_of_a_drained_node_is_not_counted_as_what_others_wait_for() {
        let text = "JOBID|USER|STATE|CPUS|TRES_ALLOC|NODELIST\n1|ann|RUNNING|8|cpu=8,mem=1001M,gres/gpu=4|c[1-2]\n\
            2|ann|RUNNING|2|cpu=2|c2\n3|ann|RUNNING|2|cpu=2|c1\n4|ann|RUNNING|2|cpu=2|\n";
        let queue = Queue::parse(text).unwrap();
        let all = Counted { memory: true, gpus: true };
        let held = |nodes: &[Node]| {
            let held = Held::new(all, nodes);
            queue.jobs.iter().map(|job| held.by(job).amounts()).collect::<Vec<_>>()
        };
        // c2 is drained.
        assert_eq!(held(&nodes()), [[4, 501, 2], [0, 0, 0], [2, 0, 0], [2, 0, 0]]);
        assert_eq!(held(&nodes()[..1]), [[8, 1001, 4], [2, 0, 0], [2, 0, 0], [2, 0, 0]]);
    }
}
