//! What a test of Slurm's scheduler simulates: nodes, partitions, limits, jobs, and their order.

use evenhand_model::PreemptMode;
use evenhand_simulator::SlurmOptions;

/// Groups of nodes: how many, their CPUs and memory, and their properties.
#[derive(Clone, Debug)]
pub(crate) struct NodeGroup {
    pub(crate) count: usize,
    pub(crate) has: [u64; 2],
    pub(crate) properties: Vec<&'static str>,
    /// Nodes of a lower weight are taken first.
    pub(crate) weight: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    pub(crate) tier: i32,
    /// In seconds.
    pub(crate) max_time: Option<u64>,
    /// Of CPUs: for a user, and for all users.
    pub(crate) max_user: Option<u64>,
    pub(crate) max: Option<u64>,
    /// Of jobs: of a user, and of all users.
    pub(crate) max_user_jobs: Option<u32>,
    pub(crate) max_jobs: Option<u32>,
    pub(crate) properties: Vec<&'static str>,
    /// Whether its jobs have whole nodes.
    pub(crate) whole_machines: bool,
    pub(crate) preempted: Preempted,
}

/// How jobs are preempted; times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Preempted {
    pub(crate) mode: Option<PreemptMode>,
    pub(crate) grace: u64,
    /// Of a QOS: how long they run before.
    pub(crate) exempt: Option<u64>,
    /// Of a QOS: whether its jobs preempt others of it.
    pub(crate) within: bool,
}

/// What the jobs of an account may hold: CPUs, and how many they may be; all together or each user by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountLimit {
    pub(crate) max: Option<u64>,
    pub(crate) max_jobs: Option<u32>,
    /// How many of the jobs may wait or run.
    pub(crate) max_submitted: Option<u32>,
    pub(crate) each_user: bool,
    /// The QOS whose jobs it does not limit.
    pub(crate) except_qos: Option<usize>,
}

impl AccountLimit {
    /// Whether it limits a job, of its account or QOS.
    pub(super) fn binds(&self, job: &SlurmJob) -> bool {
        self.except_qos.is_none() || self.except_qos != job.qos
    }
}

/// The account of a user.
pub(crate) fn account_of(user: usize) -> usize {
    user % 2
}

/// A job; times in seconds.
#[derive(Clone, Debug)]
pub(crate) struct SlurmJob {
    pub(crate) submit: u64,
    pub(crate) run: u64,
    pub(crate) asked: Option<u64>,
    pub(crate) user: usize,
    /// The partitions that it names.
    pub(crate) partitions: Vec<usize>,
    pub(crate) amounts: [u64; 2],
    /// Equal chunks, one a node.
    pub(crate) nodes: Option<u64>,
    /// Equal tasks, on any number of nodes.
    pub(crate) tasks: Option<u64>,
    /// On how many nodes they are, if on a given number.
    pub(crate) task_nodes: Option<u64>,
    /// Whether it asks for whole nodes.
    pub(crate) is_exclusive: bool,
    /// The QOS that it names.
    pub(crate) qos: Option<usize>,
    /// How many of each licence it holds.
    pub(crate) licences: [u64; 2],
    /// The array of which it is a task, and how many tasks of that may run at once if that is limited.
    pub(crate) array: Option<(usize, Option<usize>)>,
    /// The reservation in which it asks to run.
    pub(crate) reservation: Option<usize>,
}

impl SlurmJob {
    /// A job of user 0 in a partition, by submission, run time, limit, CPUs and memory.
    pub(crate) fn new(partition: usize, (submit, run, asked, amounts): (u64, u64, u64, [u64; 2])) -> SlurmJob {
        SlurmJob {
            submit,
            run,
            asked: Some(asked),
            user: 0,
            partitions: vec![partition],
            amounts,
            nodes: None,
            tasks: None,
            task_nodes: None,
            is_exclusive: false,
            qos: None,
            licences: [0, 0],
            array: None,
            reservation: None,
        }
    }
}

/// Nodes that are closed for a time, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct ClosedNodes {
    pub(crate) nodes: Vec<usize>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl ClosedNodes {
    pub(super) fn covers(&self, t: u64) -> bool {
        self.from <= t && t < self.to
    }

    pub(super) fn meets(&self, from: u64, to: u64) -> bool {
        self.from < to && from < self.to
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderBy {
    Fifo,
    Drf,
    /// By priorities of jobs: [`priority`].
    Priorities,
}

#[derive(Clone, Debug)]
pub(crate) struct SlurmWorld {
    pub(crate) groups: Vec<NodeGroup>,
    pub(crate) partitions: Vec<Partition>,
    /// By account.
    pub(crate) accounts: [AccountLimit; 2],
    /// By QOS.
    pub(crate) qos: [AccountLimit; 2],
    /// By QOS; jobs of the second preempt those of the first.
    pub(crate) preempted: [Preempted; 2],
    pub(crate) reservations: Vec<ClosedNodes>,
    pub(crate) outages: Vec<ClosedNodes>,
    /// How many licences of each kind there are.
    pub(crate) licences: [u64; 2],
    pub(crate) jobs: Vec<SlurmJob>,
    pub(crate) order: OrderBy,
    pub(crate) options: SlurmOptions,
}

impl SlurmWorld {
    /// One node of four CPUs and memory 4 in all partitions, and no limits; jobs in the order of submission.
    pub(crate) fn of_one_node(partitions: Vec<Partition>, jobs: Vec<SlurmJob>, options: SlurmOptions) -> SlurmWorld {
        SlurmWorld {
            groups: vec![NodeGroup { count: 1, has: [4, 4], properties: vec![], weight: 1 }],
            partitions,
            accounts: Default::default(),
            qos: Default::default(),
            preempted: Default::default(),
            reservations: Vec::new(),
            outages: Vec::new(),
            licences: [0, 0],
            jobs,
            order: OrderBy::Fifo,
            options,
        }
    }
}

/// The partitions in which a job may be: those that admit it, of the highest tier first.
pub(crate) fn choice(partitions: &[Partition], job: &SlurmJob) -> Vec<usize> {
    let mut named: Vec<usize> = Vec::new();
    for &p in &job.partitions {
        if !named.contains(&p) {
            named.push(p);
        }
    }
    named.sort_by_key(|&p| -partitions[p].tier);
    let within = |most: Option<u64>, amount: u64| most.is_none_or(|most| amount <= most);
    let admits = |p: &usize| {
        let of = &partitions[*p];
        let amounts = within(of.max_user, job.amounts[0]) && within(of.max, job.amounts[0]);
        let takes_jobs = of.max_jobs != Some(0) && of.max_user_jobs != Some(0);
        within(of.max_time, job.asked.unwrap_or(job.run)) && amounts && takes_jobs
    };
    let admitted: Vec<usize> = named.iter().copied().filter(admits).collect();
    if admitted.is_empty() { vec![named[0]] } else { admitted }
}

/// The priority of the test's policy: `held` are the CPUs that the user's running jobs had at the last update, `used` the
/// CPU-seconds that it was charged until then.
pub(crate) fn priority(waited: u64, cpus: u64, held: u64, used: u64) -> u32 {
    (100 + waited / 20 + 2 * cpus).saturating_sub(5 * held + used / 50).max(1) as u32
}
