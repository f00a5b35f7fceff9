//! JSON record of `slurm show`.

use std::collections::BTreeMap;

use evenhand_model::{AccountsError, Nano, Time, to_f64};
use evenhand_slurm::{Accounts, Hold, Job, JobState, Node, Partition, Queue, ShareTable};
use serde::Serialize;

/// A site.
#[derive(Debug, Serialize)]
pub(super) struct SiteRecord {
    pub(super) cluster: Option<String>,
    pub(super) release: Option<String>,
    pub(super) priority_type: Option<String>,
    pub(super) priority_weights: BTreeMap<String, u64>,
    pub(super) priority_weight_tres: Option<String>,
    pub(super) decay_half_life: Option<String>,
    pub(super) scheduler: Option<String>,
    pub(super) select: Option<String>,
    pub(super) select_parameters: Option<String>,
    pub(super) private_data: Vec<String>,
    pub(super) machines: Vec<MachinesRecord>,
    pub(super) partitions: Vec<PartitionRecord>,
    pub(super) users: Vec<UserRecord>,
    pub(super) accounts: Vec<AccountRecord>,
    pub(super) jobs: Vec<JobRecord>,
    /// Sentences on what could not be read, and what was left out.
    pub(super) notes: Vec<String>,
}

/// CPUs, memory and GPUs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Amounts {
    pub(super) cpu: u64,
    pub(super) mem_bytes: u64,
    pub(super) gpu: u64,
}

impl Amounts {
    fn add(&mut self, cpu: u64, mem_bytes: u64, gpu: u64) {
        self.cpu = self.cpu.saturating_add(cpu);
        self.mem_bytes = self.mem_bytes.saturating_add(mem_bytes);
        self.gpu = self.gpu.saturating_add(gpu);
    }

    fn add_job(&mut self, job: &Job) {
        self.add(job.requested.cpus(), job.requested.bytes(), job.requested.gpus());
    }
}

/// Group of identical machines.
#[derive(Debug, Serialize)]
pub(super) struct MachinesRecord {
    pub(super) name: String,
    pub(super) machines: usize,
    /// Number of these that are down, drained or failing.
    pub(super) out: usize,
    pub(super) each: Amounts,
    /// Amounts that jobs hold on all of them.
    pub(super) held: Amounts,
    pub(super) partitions: Vec<String>,
    pub(super) features: Vec<String>,
}

impl MachinesRecord {
    pub(super) fn new(name: &str, nodes: &[&Node]) -> MachinesRecord {
        let mut held = Amounts::default();
        nodes.iter().for_each(|n| held.add(n.allocated_cpus, n.allocated_memory, n.allocated.gpus()));
        let first = nodes.first();
        MachinesRecord {
            name: name.to_string(),
            machines: nodes.len(),
            out: nodes.iter().filter(|n| n.is_unavailable()).count(),
            each: first.map_or(Amounts::default(), |n| Amounts { cpu: n.cpus, mem_bytes: n.memory, gpu: n.gpus() }),
            held,
            partitions: first.map_or(Vec::new(), |n| n.partitions.clone()),
            features: first.map_or(Vec::new(), |n| n.features.clone()),
        }
    }
}

/// A partition.
#[derive(Debug, Serialize)]
pub(super) struct PartitionRecord {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) is_default: bool,
    pub(super) priority_tier: u64,
    pub(super) max_time_s: Option<f64>,
    pub(super) machines: usize,
    pub(super) running: usize,
    /// Number of tasks; each task of an array counts.
    pub(super) waiting: u64,
}

impl PartitionRecord {
    pub(super) fn new(partition: &Partition, nodes: &[Node], queue: &Queue) -> PartitionRecord {
        let is_in = |job: &&Job| job.partitions.contains(&partition.name);
        PartitionRecord {
            name: partition.name.clone(),
            state: partition.state.clone(),
            is_default: partition.is_default,
            priority_tier: partition.priority_tier,
            max_time_s: partition.max_time.span().map(|s| s.secs_f64()),
            machines: nodes.iter().filter(|n| n.partitions.contains(&partition.name)).count(),
            running: queue.running().filter(is_in).count(),
            waiting: queue.pending().filter(is_in).map(Job::tasks).sum(),
        }
    }
}

/// A user's running and waiting jobs under one account.
#[derive(Debug, Serialize)]
pub(super) struct UserRecord {
    pub(super) user: String,
    pub(super) account: Option<String>,
    pub(super) running: usize,
    pub(super) held: Amounts,
    /// Number of tasks; each task of an array counts.
    pub(super) waiting: u64,
    /// Number of these held by the user.
    pub(super) held_by_user: u64,
    /// Number of these held by an administrator.
    pub(super) held_by_administrator: u64,
    /// Number of these with an unsatisfied dependency.
    pub(super) dependent: u64,
}

/// Returns the users of a queue, by account and name.
pub(super) fn users(queue: &Queue) -> Vec<UserRecord> {
    let mut users: BTreeMap<(Option<&str>, &str), UserRecord> = BTreeMap::new();
    for job in &queue.jobs {
        let user = users.entry((job.account.as_deref(), &job.user)).or_insert_with(|| UserRecord {
            user: job.user.clone(),
            account: job.account.clone(),
            running: 0,
            held: Amounts::default(),
            waiting: 0,
            held_by_user: 0,
            held_by_administrator: 0,
            dependent: 0,
        });
        if job.state.holds_resources() {
            user.running += 1;
            user.held.add_job(job);
        }
        if job.state == JobState::Pending {
            user.waiting += job.tasks();
            match job.held() {
                Some(Hold::User) => user.held_by_user += job.tasks(),
                Some(Hold::Administrator) => user.held_by_administrator += job.tasks(),
                None if job.waits_for().is_some() => user.dependent += job.tasks(),
                None => {}
            }
        }
    }
    users.into_values().collect()
}

/// A user in an account.
#[derive(Debug, Serialize)]
pub(super) struct AccountRecord {
    pub(super) account: String,
    pub(super) user: String,
    /// Share of the whole, by the shares of all accounts with users.
    pub(super) entitlement: f64,
    /// Slurm's own values, as are the next two.
    pub(super) effective_usage: Option<f64>,
    pub(super) fair_share: Option<f64>,
    pub(super) level_fs: Option<f64>,
}

impl AccountRecord {
    pub(super) fn all(accounts: &Accounts, shares: Option<&ShareTable>) -> Result<Vec<AccountRecord>, AccountsError> {
        let leaves = accounts.association_tree()?;
        let used: BTreeMap<(&str, &str), _> = shares
            .iter()
            .flat_map(|table| &table.rows)
            .filter_map(|row| Some(((row.account.as_str(), row.user.as_deref()?), row)))
            .collect();
        let record = |(u, (user, account)): (usize, &(String, String))| {
            let row = used.get(&(account.as_str(), user.as_str()));
            AccountRecord {
                account: account.clone(),
                user: user.clone(),
                entitlement: to_f64(leaves.tree.user_entitlement(u)),
                effective_usage: row.and_then(|r| r.effective_usage),
                fair_share: row.and_then(|r| r.fair_share),
                // An infinite level means no usage; JSON has no infinity.
                level_fs: row.and_then(|r| r.level_fs).filter(|x| x.is_finite()),
            }
        };
        Ok(leaves.users.iter().enumerate().map(record).collect())
    }
}

/// One entry of the queue.
#[derive(Debug, Serialize)]
pub(super) struct JobRecord {
    pub(super) id: u64,
    pub(super) array: Option<u64>,
    pub(super) tasks: u64,
    #[serde(rename = "at_a_time")]
    pub(super) max_running: Option<u64>,
    pub(super) heterogeneous: Option<u64>,
    pub(super) user: String,
    pub(super) account: Option<String>,
    pub(super) partitions: Vec<String>,
    pub(super) qos: Option<String>,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) held_by: Option<&'static str>,
    pub(super) submit_s: Option<f64>,
    pub(super) eligible_s: Option<f64>,
    pub(super) start_s: Option<f64>,
    pub(super) limit_s: Option<f64>,
    pub(super) priority: Option<u64>,
    pub(super) site_factor: Option<i64>,
    pub(super) nice: Option<i64>,
    pub(super) dependency: Option<String>,
    pub(super) nodes: Option<u64>,
    /// Amounts of the job, or of each task.
    pub(super) requested: Amounts,
    /// Amounts on each node.
    pub(super) per_node: Amounts,
    pub(super) features: Option<String>,
    pub(super) reservation: Option<String>,
    pub(super) restarts: u64,
}

impl JobRecord {
    pub(super) fn new(job: &Job, site_factor: Option<i64>) -> JobRecord {
        let seconds = |time: Option<Time>| time.map(|t| t.secs_f64());
        let mut requested = Amounts::default();
        requested.add_job(job);
        let [cpu, mem_bytes, gpu] =
            job.requested_per_node().map(|n: Nano| u64::try_from(n.div_ceil(1_000_000_000)).unwrap_or(u64::MAX));
        JobRecord {
            id: job.id,
            array: job.array.as_ref().map(|a| a.job),
            tasks: job.tasks(),
            max_running: job.array.as_ref().and_then(|a| a.tasks.max_running),
            heterogeneous: job.heterogeneous.map(|h| h.job),
            user: job.user.clone(),
            account: job.account.clone(),
            partitions: job.partitions.clone(),
            qos: job.qos.clone(),
            state: job.state.name().to_string(),
            reason: job.reason.clone(),
            held_by: job.held().map(|hold| match hold {
                Hold::User => "user",
                Hold::Administrator => "administrator",
            }),
            submit_s: seconds(job.submit),
            eligible_s: seconds(job.eligible),
            start_s: seconds(job.start),
            limit_s: job.limit.span().map(|s| s.secs_f64()),
            priority: job.priority,
            site_factor,
            nice: job.nice,
            dependency: job.dependency.clone(),
            nodes: job.requested.nodes().or(job.nodes),
            requested,
            per_node: Amounts { cpu, mem_bytes, gpu },
            features: job.features.clone(),
            reservation: job.reservation.clone(),
            restarts: job.restarts,
        }
    }
}
