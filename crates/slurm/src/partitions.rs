//! The partitions of a site: `scontrol show partition`.

use crate::configuration::Configuration;
use crate::error::{ReadError, TextError};
use crate::parse_key_values::{Record, records};
use crate::parse_values::Limit;
use crate::run_commands::{Call, Commands};

/// The partitions of a site that the user may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    /// In the order of `scontrol`.
    pub partitions: Vec<Partition>,
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The name.
    pub name: String,
    /// Whether it is the default partition.
    pub is_default: bool,
    /// The state: `UP`, `DOWN`, `DRAIN`, `INACTIVE`.
    pub state: String,
    /// The maximum time limit of a job.
    pub max_time: Limit,
    /// The time limit of jobs that do not request one.
    pub default_time: Limit,
    /// The priority tier: jobs in partitions of a higher tier are considered first.
    pub priority_tier: u64,
    /// The partition's contribution to job priorities, before its weight.
    pub priority_job_factor: u64,
    /// The maximum number of nodes for a job.
    pub max_nodes: Option<u64>,
    /// The nodes, as a hostlist expression: `n[1-3]`.
    pub nodes: Option<String>,
    /// TRESBillingWeights as printed: `CPU=1,Mem=0.25G`.
    pub billing_weights: Option<String>,
    /// The preemption mode: `OFF`, `REQUEUE`, …
    pub preempt_mode: Option<String>,
    /// Whether each of its jobs has whole nodes (`OverSubscribe=EXCLUSIVE`).
    pub exclusive: bool,
    /// For how many seconds its jobs run on when they are preempted.
    pub grace_time: u64,
    /// The partition's QOS, whose limits its jobs have.
    pub qos: Option<String>,
    /// The memory of its jobs that name none, where it has a value of its own.
    pub default_memory: Option<DefaultMemory>,
    /// The line of the text that names it, from 1 on; 0 if it is not from the output of `scontrol`.
    pub line: usize,
}

/// The memory of a job that names none, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultMemory {
    /// For each CPU (DefMemPerCPU).
    PerCpu(u64),
    /// On each node (DefMemPerNode).
    PerNode(u64),
}

impl DefaultMemory {
    /// Reads the settings, in MiB. One that is 0 or `UNLIMITED` is not set.
    pub(crate) fn of<T: AsRef<str>>(get: impl Fn(&str) -> Option<T>) -> Option<DefaultMemory> {
        let bytes =
            |name: &str| get(name)?.as_ref().parse().ok().filter(|n: &u64| *n > 0).map(|n| n.saturating_mul(1 << 20));
        let per_node = || bytes("DefMemPerNode").map(DefaultMemory::PerNode);
        bytes("DefMemPerCPU").map(DefaultMemory::PerCpu).or_else(per_node)
    }
}

impl Partition {
    /// Returns the memory of its jobs that name none: the partition's setting, else that of the site. None if neither is set, and then
    /// Slurm gives them the whole memory of their nodes (slurm.conf(5), DefMemPerCPU and DefMemPerNode).
    pub fn memory_of_jobs_that_name_none(&self, configuration: &Configuration) -> Option<DefaultMemory> {
        self.default_memory.or_else(|| DefaultMemory::of(|name| configuration.get(name)))
    }
}

impl Partitions {
    /// Returns the command that prints all partitions, hidden ones included.
    pub fn call() -> Call {
        Call::new("scontrol", ["--all", "--oneliner", "show", "partition"])
    }

    /// Reads the partitions.
    ///
    /// # Errors
    /// Returns an error if `scontrol` fails or its output is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Partitions, ReadError> {
        Ok(Partitions::parse(&commands.run(&Partitions::call())?)?)
    }

    /// Parses the output of `scontrol show partition`.
    ///
    /// # Errors
    /// Returns an error if a value is malformed.
    pub fn parse(text: &str) -> Result<Partitions, TextError> {
        let found = records("scontrol show partition", text, "PartitionName");
        Ok(Partitions { partitions: found.iter().map(partition).collect::<Result<_, _>>()? })
    }
}

fn partition(record: &Record<'_>) -> Result<Partition, TextError> {
    let text = |key: &str| record.get(key).map(|f| f.text.to_string());
    let count = |key: &str| record.get(key).map(|field| field.whole()).transpose();
    let limit = |key: &str| match record.get(key) {
        Some(field) => field.read("a time limit like 1-00:00:00", Limit::parse),
        None => Ok(Limit::None),
    };
    let max_nodes = match record.get("MaxNodes").filter(|f| !f.text.eq_ignore_ascii_case("UNLIMITED")) {
        Some(field) => Some(field.whole()?),
        None => None,
    };
    Ok(Partition {
        name: text("PartitionName").unwrap_or_default(),
        is_default: text("Default").is_some_and(|t| t == "YES"),
        state: text("State").unwrap_or_else(|| "UP".into()),
        max_time: limit("MaxTime")?,
        default_time: limit("DefaultTime")?,
        priority_tier: count("PriorityTier")?.unwrap_or(1),
        priority_job_factor: count("PriorityJobFactor")?.unwrap_or(1),
        max_nodes,
        nodes: text("Nodes"),
        billing_weights: text("TRESBillingWeights"),
        preempt_mode: text("PreemptMode"),
        exclusive: text("OverSubscribe").is_some_and(|t| t.eq_ignore_ascii_case("EXCLUSIVE")),
        grace_time: count("GraceTime")?.unwrap_or(0),
        qos: text("QoS").filter(|name| name != "N/A"),
        default_memory: DefaultMemory::of(|name| record.get(name).map(|field| field.text)),
        line: record.get("PartitionName").map_or(0, |field| field.line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_read() {
        let text = "PartitionName=main AllowGroups=ALL Default=YES QoS=N/A DefaultTime=00:10:00 MaxNodes=UNLIMITED \
            MaxTime=UNLIMITED Nodes=n[1-3] PriorityJobFactor=1 PriorityTier=10 \
            OverSubscribe=EXCLUSIVE State=UP\n\
            PartitionName=short MaxNodes=2 MaxTime=01:00:00 Nodes=(null) State=DOWN TRESBillingWeights=CPU=1,Mem=0.25G\n";
        let found = Partitions::parse(text).unwrap().partitions;
        assert_eq!((found[0].exclusive, found[1].exclusive), (true, false));
        assert_eq!((found[0].max_time, found[0].priority_tier, found[0].is_default), (Limit::None, 10, true));
        assert_eq!(
            (found[1].max_time.to_string(), found[1].max_nodes, found[1].nodes.clone()),
            ("01:00:00".into(), Some(2), None)
        );
        assert_eq!(found[1].billing_weights.as_deref(), Some("CPU=1,Mem=0.25G"));
        let text =
            "PartitionName=a DefMemPerCPU=100 MaxMemPerNode=UNLIMITED\nPartitionName=b DefMemPerNode=UNLIMITED\n";
        let found = Partitions::parse(text).unwrap().partitions;
        let of_jobs = |at: usize, site: &str| {
            found[at]
                .memory_of_jobs_that_name_none(&Configuration::parse(&format!("ClusterName=lab\n{site}\n")).unwrap())
        };
        assert_eq!(of_jobs(0, "DefMemPerNode = 7"), Some(DefaultMemory::PerCpu(100 << 20)));
        assert_eq!(of_jobs(1, "DefMemPerNode = 7"), Some(DefaultMemory::PerNode(7 << 20)));
        assert_eq!(of_jobs(1, "DefMemPerNode = UNLIMITED"), None);
        let error = Partitions::parse("PartitionName=x MaxTime=soon\n").unwrap_err().to_string();
        assert!(error.starts_with("scontrol show partition:1:25: found \"soon\""), "{error}");
    }
}
