//! The queues of a site: `scontrol show partition`.

use crate::commands::{Call, Commands};
use crate::error::{ReadError, TextError};
use crate::records::{Record, records};
use crate::value::{Limit, number};

/// The partitions of a site, as far as the user may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    /// In the order in which `scontrol` gives them.
    pub partitions: Vec<Partition>,
}

/// One partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Whether jobs go here that name none.
    pub is_default: bool,
    /// `UP`, `DOWN`, `DRAIN`, `INACTIVE`.
    pub state: String,
    /// The longest a job may run.
    pub max_time: Limit,
    /// How long a job may run that does not say.
    pub default_time: Limit,
    /// Jobs of a higher tier are looked at before all others.
    pub priority_tier: u64,
    /// What the partition adds to a priority, before its weight.
    pub priority_job_factor: u64,
    /// The most nodes a job may have.
    pub max_nodes: Option<u64>,
    /// Its nodes, as Slurm shortens them: `n[1-3]`.
    pub nodes: Option<String>,
    /// What a unit of each resource counts, in Slurm's words: `CPU=1,Mem=0.25G`.
    pub billing_weights: Option<String>,
    /// `OFF`, `REQUEUE`, …
    pub preempt_mode: Option<String>,
}

impl Partitions {
    /// The call that shows all partitions, hidden ones included.
    pub fn call() -> Call {
        Call::new("scontrol", ["--all", "--oneliner", "show", "partition"])
    }

    /// Reads the partitions.
    ///
    /// # Errors
    /// If `scontrol` fails, or what it prints is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Partitions, ReadError> {
        Ok(Partitions::parse(&commands.run(&Partitions::call())?)?)
    }

    /// Reads what `scontrol show partition` prints.
    ///
    /// # Errors
    /// If a value is not what it should be.
    pub fn parse(text: &str) -> Result<Partitions, TextError> {
        let found = records("scontrol show partition", text, "PartitionName");
        Ok(Partitions { partitions: found.iter().map(partition).collect::<Result<_, _>>()? })
    }
}

fn partition(record: &Record<'_>) -> Result<Partition, TextError> {
    let text = |key: &str| record.get(key).map(|f| f.text.to_string());
    let count = |key: &str| record.get(key).map(|field| field.read("a whole number", number)).transpose();
    let limit = |key: &str| match record.get(key) {
        Some(field) => field.read("a time limit like 1-00:00:00", Limit::parse),
        None => Ok(Limit::None),
    };
    let max_nodes = match record.get("MaxNodes").filter(|f| !f.text.eq_ignore_ascii_case("UNLIMITED")) {
        Some(field) => Some(field.read("a whole number", number)?),
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_read() {
        let text = "PartitionName=main AllowGroups=ALL Default=YES QoS=N/A DefaultTime=00:10:00 MaxNodes=UNLIMITED \
            MaxTime=UNLIMITED Nodes=n[1-3] PriorityJobFactor=1 PriorityTier=10 State=UP\n\
            PartitionName=short MaxNodes=2 MaxTime=01:00:00 Nodes=(null) State=DOWN TRESBillingWeights=CPU=1,Mem=0.25G\n";
        let found = Partitions::parse(text).unwrap().partitions;
        assert_eq!((found[0].max_time, found[0].priority_tier, found[0].is_default), (Limit::None, 10, true));
        assert_eq!(
            (found[1].max_time.to_string(), found[1].max_nodes, found[1].nodes.clone()),
            ("01:00:00".into(), Some(2), None)
        );
        assert_eq!(found[1].billing_weights.as_deref(), Some("CPU=1,Mem=0.25G"));
        let error = Partitions::parse("PartitionName=x MaxTime=soon\n").unwrap_err().to_string();
        assert!(error.starts_with("scontrol show partition:1:25: found \"soon\""), "{error}");
    }
}
