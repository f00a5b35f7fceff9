//! Arguments of `evenhand slurm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use evenhand_policies::DEFAULT_POLICY;

use super::policy_settings::PolicyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SlurmVerb {
    /// Print this site: machines, partitions, queue, accounts, and how Slurm computes priorities; changes nothing
    Show(ShowArgs),
    /// Replay this site's history under policies, on its machines and with its accounts, and write a report; changes nothing
    Study(PastArgs),
    /// Print the order in which a policy would start the waiting jobs, with reasons; changes nothing
    Plan(PlanArgs),
    /// Explain why a job of the queue waits: Slurm's reason, the jobs ahead of it, what would start it earlier; changes nothing
    Why(WhyArgs),
    /// Forecast when a job of the queue starts, or one that could be submitted; changes nothing
    When(WhenArgs),
    /// Keep the queue in a policy's order by setting site factors; without --apply, only print the changes
    Run(Box<RunArgs>),
    /// Restore what `run` changed: give every job its old site factor
    Release(ReleaseArgs),
    /// Check this site's history against fairness properties: which users had a justified complaint, about whom, for how long
    Audit(PastArgs),
}

/// Options that determine how machines are read.
#[derive(Args, Debug)]
pub(crate) struct MachineArgs {
    /// Leave out machines that are down or drained now
    #[arg(long)]
    pub(crate) without_down: bool,
    /// Prefix of features that give a machine's speed as a number: spec_ for spec_150; the slowest machine has speed 1
    /// [default: all have speed 1]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) speed_feature: Option<String>,
}

/// Options that determine how the queue is read.
#[derive(Args, Debug)]
pub(crate) struct QueueArgs {
    /// Read the queue from slurmrestd at this socket, and everything else by Slurm's commands
    #[arg(long, value_name = "SOCKET")]
    pub(crate) rest: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    #[command(flatten)]
    pub(crate) machines: MachineArgs,
}

/// Options that determine the order of the queue.
#[derive(Args, Debug)]
pub(crate) struct OrderArgs {
    /// Policy (`evenhand policies` lists them)
    #[arg(long, default_value = DEFAULT_POLICY, value_name = "NAME")]
    pub(crate) policy: String,
    /// Half-life of past use in stateful policies: 8d, 12h [default: a discount of 0.999999 per second]
    #[arg(long, value_name = "TIME", conflicts_with = "delta")]
    pub(crate) half_life: Option<String>,
    /// The same as a discount per second
    #[arg(long, value_name = "NUMBER")]
    pub(crate) delta: Option<String>,
    /// How far back finished jobs count in stateful policies, a time such as 30d [default: ten half-lives, at most 60d]
    #[arg(long, value_name = "TIME")]
    pub(crate) memory: Option<String>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Policy penalty: price of a second in a partition [default: 1]
    #[arg(long, value_delimiter = ',', value_name = "PARTITION=NUMBER,…")]
    pub(crate) price: Vec<String>,
    /// Policy penalty: prefix of features that give a machine's speed as a number: spec_ for spec_150; the slowest machine
    /// has speed 1
    #[arg(long, value_name = "PREFIX")]
    pub(crate) speed_feature: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Number of places to compute
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) depth: usize,
    /// Explain only this job: its place, the reason, and which users are before it
    #[arg(long, value_name = "JOBID")]
    pub(crate) why: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Write the order; without this, nothing is changed
    #[arg(long)]
    pub(crate) apply: bool,
    /// Number of places at the head of the queue that are kept in order
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) depth: usize,
    /// Time from one update to the next
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub(crate) interval: String,
    /// Maximum mean rate of changes per second
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) rate: usize,
    /// File with the state that survives a crash
    #[arg(long, default_value = "/var/lib/evenhand/slurm.redb", value_name = "FILE")]
    pub(crate) state: PathBuf,
    /// If the Slurm controller does not answer for this long, restore everything once it answers
    #[arg(long, default_value = "10m", value_name = "TIME")]
    pub(crate) give_up: String,
    /// Address at which Prometheus can read metrics: 127.0.0.1:9818
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Number of looks at the queue, after which everything is restored and the program exits [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) looks: Option<u64>,
    /// Leave the order as it is on exit
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// File with the state that `run` saved
    #[arg(long, default_value = "/var/lib/evenhand/slurm.redb", value_name = "FILE")]
    pub(crate) state: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct PastArgs {
    /// Read jobs that waited or ran after this time: a date or time in UTC (2026-01-31, 2026-01-31T12:00), or a time ago
    /// (30d, 12h)
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub(crate) from: String,
    /// Read jobs that waited or ran before this time [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Read the jobs of all users whose jobs you may see (sacct --allusers) [default: your own jobs; for root, all jobs]
    #[arg(long)]
    pub(crate) all_users: bool,
    /// Count and skip malformed rows of sacct instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) machines: MachineArgs,
    /// Folder for the files that describe the site: workload.parquet, cluster.toml, accounts.toml
    #[arg(long, default_value = "evenhand-slurm", value_name = "DIR")]
    pub(crate) site: PathBuf,
    /// Options of `evenhand study` (for `slurm study`) or of `evenhand audit --history` (for `slurm audit`), after those above
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub(crate) rest: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Waiting job by its number, a user by name, or me
    #[arg(value_name = "JOB|USER|me")]
    pub(crate) who: String,
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    /// Print one line, for a login message
    #[arg(long)]
    pub(crate) short: bool,
}

#[derive(Args, Debug)]
pub(crate) struct WhenArgs {
    /// Waiting job by its number, 7_3 of an array, 7+1 of a heterogeneous job
    #[arg(required_unless_present_any = ["script", "shape"])]
    pub(crate) job: Option<String>,
    /// Batch script whose #SBATCH lines state what it asks for
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Job that could be submitted: how many times how many CPUs, and a wall time: 4x16cpu,2h. Several times: which starts
    /// first
    #[arg(long, value_name = "SHAPE")]
    pub(crate) shape: Vec<String>,
    /// Partition of the shapes and the script [default: the script's, else that of the user's latest job]
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// User who would submit them [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// How far back finished jobs are read
    #[arg(long, default_value = "28d", value_name = "TIME")]
    pub(crate) history: String,
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
}
