//! What is shown of a site: fields of the JSON document, and the tables for people.

use std::collections::BTreeMap;

use evenhand_model::{AccountsError, Nano, Time, to_f64};
use evenhand_slurm::{Accounts, Hold, Job, JobState, Node, Partition, Queue, ShareTable};
use serde::Serialize;

use crate::study::short;
use crate::table::{Table, plain};

/// A site.
#[derive(Debug, Serialize)]
pub(super) struct Record {
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
    /// What could not be read, and what was left out.
    pub(super) notes: Vec<String>,
}

/// CPUs, memory and GPUs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Amounts {
    cpu: u64,
    mem_bytes: u64,
    gpu: u64,
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

/// Machines that are alike.
#[derive(Debug, Serialize)]
pub(super) struct MachinesRecord {
    name: String,
    machines: usize,
    /// Of these down, drained or failing.
    out: usize,
    each: Amounts,
    /// What jobs hold of all of them.
    held: Amounts,
    partitions: Vec<String>,
    features: Vec<String>,
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
    name: String,
    state: String,
    is_default: bool,
    priority_tier: u64,
    max_time_s: Option<f64>,
    machines: usize,
    running: usize,
    /// Tasks, those of arrays counted each.
    waiting: u64,
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

/// What a user has and wants under one account.
#[derive(Debug, Serialize)]
pub(super) struct UserRecord {
    user: String,
    account: Option<String>,
    running: usize,
    held: Amounts,
    /// Tasks, those of arrays counted each.
    waiting: u64,
    /// Of these held back by the user.
    held_by_user: u64,
    /// Of these held back by an administrator.
    held_by_administrator: u64,
    /// Of these with a dependency that is not met yet.
    dependent: u64,
}

/// The users of a queue, by account and name.
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
                None if job.dependency.is_some() => user.dependent += job.tasks(),
                None => {}
            }
        }
    }
    users.into_values().collect()
}

/// A user in an account.
#[derive(Debug, Serialize)]
pub(super) struct AccountRecord {
    account: String,
    user: String,
    /// Of the whole, by the shares of all accounts with users.
    entitlement: f64,
    /// Slurm's own numbers.
    effective_usage: Option<f64>,
    fair_share: Option<f64>,
    level_fs: Option<f64>,
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
                // JSON has no infinity: nothing was used.
                level_fs: row.and_then(|r| r.level_fs).filter(|x| x.is_finite()),
            }
        };
        Ok(leaves.users.iter().enumerate().map(record).collect())
    }
}

/// One record of the queue.
#[derive(Debug, Serialize)]
pub(super) struct JobRecord {
    id: u64,
    array: Option<u64>,
    tasks: u64,
    max_running: Option<u64>,
    heterogeneous: Option<u64>,
    user: String,
    account: Option<String>,
    partitions: Vec<String>,
    qos: Option<String>,
    state: String,
    reason: Option<String>,
    held_by: Option<&'static str>,
    submit_s: Option<f64>,
    eligible_s: Option<f64>,
    start_s: Option<f64>,
    limit_s: Option<f64>,
    priority: Option<u64>,
    site_factor: Option<i64>,
    nice: Option<i64>,
    dependency: Option<String>,
    nodes: Option<u64>,
    /// Of a job, or of each task.
    requested: Amounts,
    /// On each of its nodes.
    per_node: Amounts,
    features: Option<String>,
    reservation: Option<String>,
    restarts: u64,
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

impl Record {
    /// How priorities are made, then machines, partitions, users and accounts.
    pub(super) fn tables(&self) -> String {
        let mut parts = vec![self.heading(), self.machines(), self.partitions()];
        if !self.users.is_empty() {
            parts.push(self.users());
        }
        if !self.accounts.is_empty() {
            parts.push(self.accounts());
        }
        if !self.notes.is_empty() {
            parts.push(self.notes.join("\n"));
        }
        plain_lines(&parts.join("\n\n"))
    }

    fn heading(&self) -> String {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        let weights: Vec<String> =
            self.priority_weights.iter().map(|(name, weight)| format!("{name} {weight}")).collect();
        let mut lines = vec![format!("Cluster {}, Slurm {}", or(&self.cluster), or(&self.release))];
        let weighed = if weights.is_empty() { "no weights".to_string() } else { weights.join(", ") };
        lines.push(format!(
            "Priorities: {} ({weighed}), half-life {}",
            or(&self.priority_type),
            or(&self.decay_half_life)
        ));
        lines.push(format!(
            "Scheduling: {}, {} {}",
            or(&self.scheduler),
            or(&self.select),
            self.select_parameters.as_deref().unwrap_or("")
        ));
        if !self.private_data.is_empty() {
            lines.push(format!("Hidden from other users: {}", self.private_data.join(", ")));
        }
        lines.join("\n")
    }

    fn machines(&self) -> String {
        let mut table =
            Table::new(1, ["machines", "count", "out", "cpu", "held", "mem GiB", "held", "gpu", "held", "partitions"]);
        for m in &self.machines {
            let count = m.machines as u64;
            table.row(vec![
                m.name.clone(),
                count.to_string(),
                m.out.to_string(),
                (m.each.cpu * count).to_string(),
                m.held.cpu.to_string(),
                gib(m.each.mem_bytes.saturating_mul(count)),
                gib(m.held.mem_bytes),
                (m.each.gpu * count).to_string(),
                m.held.gpu.to_string(),
                m.partitions.join(","),
            ]);
        }
        table.render()
    }

    fn partitions(&self) -> String {
        let mut table = Table::new(1, ["partition", "state", "tier", "longest h", "machines", "running", "waiting"]);
        for p in &self.partitions {
            table.row(vec![
                if p.is_default { format!("{}*", p.name) } else { p.name.clone() },
                p.state.clone(),
                p.priority_tier.to_string(),
                p.max_time_s.map_or("-".into(), |s| short(s / 3600.0)),
                p.machines.to_string(),
                p.running.to_string(),
                p.waiting.to_string(),
            ]);
        }
        table.render()
    }

    fn users(&self) -> String {
        let header = ["user", "account", "running", "cpu", "mem GiB", "gpu", "waiting", "held", "dependent"];
        let mut table = Table::new(2, header);
        for u in &self.users {
            table.row(vec![
                u.user.clone(),
                u.account.clone().unwrap_or_else(|| "-".into()),
                u.running.to_string(),
                u.held.cpu.to_string(),
                gib(u.held.mem_bytes),
                u.held.gpu.to_string(),
                u.waiting.to_string(),
                (u.held_by_user + u.held_by_administrator).to_string(),
                u.dependent.to_string(),
            ]);
        }
        table.render()
    }

    fn accounts(&self) -> String {
        let mut table = Table::new(2, ["account", "user", "entitled", "used", "fair share"]);
        let percent = |part: f64| format!("{:.1} %", 100.0 * part);
        for a in &self.accounts {
            table.row(vec![
                a.account.clone(),
                a.user.clone(),
                percent(a.entitlement),
                a.effective_usage.map_or("-".into(), percent),
                a.fair_share.map_or("-".into(), |f| format!("{f:.3}")),
            ]);
        }
        table.render()
    }
}

fn gib(bytes: u64) -> String {
    short(bytes as f64 / (1u64 << 30) as f64)
}

/// Lines of names from outside, without what would move a terminal's cursor.
fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
