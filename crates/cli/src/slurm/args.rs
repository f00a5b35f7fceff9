//! What a user can type after `evenhand slurm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use evenhand_policies::DEFAULT_POLICY;

use crate::policy_args::PolicyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SlurmVerb {
    /// What is read of this site: machines, partitions, queue, accounts, and how Slurm makes priorities
    Show(ShowArgs),
    /// Replay this site's history under policies, on its machines and with its accounts, and write a report
    Study(PastArgs),
    /// The order in which a policy would start the jobs that wait now, each with its reason; changes nothing
    Plan(PlanArgs),
    /// Keep the queue in a policy's order, by site factors, as long as it runs; without --apply only say what would change
    Run(Box<RunArgs>),
    /// Put back what `run` wrote: the site factors of waiting jobs are 0 again
    Release(ReleaseArgs),
    /// Hold this site's history against the fairness properties: who could complain, of whom, for how long
    Audit(PastArgs),
}

/// What to make of the machines.
#[derive(Args, Debug)]
pub(crate) struct MachineArgs {
    /// Leave out machines that are down or drained now
    #[arg(long)]
    pub(crate) without_down: bool,
    /// Features that begin like this and go on with a number say how fast a machine is (spec_ for spec_150)
    #[arg(long, value_name = "PREFIX")]
    pub(crate) speed_feature: Option<String>,
}

/// Who tells the queue.
#[derive(Args, Debug)]
pub(crate) struct QueueArgs {
    /// Read the queue from slurmrestd at this socket, and the rest by the commands
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

/// Whose turn it is.
#[derive(Args, Debug)]
pub(crate) struct OrderArgs {
    /// The policy, as in evenhand study
    #[arg(long, default_value = DEFAULT_POLICY, value_name = "NAME")]
    pub(crate) policy: String,
    /// How fast a policy with a memory forgets: the time after which half is left
    #[arg(long, value_name = "TIME", conflicts_with = "delta")]
    pub(crate) half_life: Option<String>,
    /// The same as what is left after a second
    #[arg(long, value_name = "NUMBER")]
    pub(crate) delta: Option<String>,
    /// How far back what ended counts, for policies with a memory [default: ten half-lives, at most 60d]
    #[arg(long, value_name = "TIME")]
    pub(crate) memory: Option<String>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Under the policy penalty: what a second in a partition costs, where it is not 1
    #[arg(long, value_delimiter = ',', value_name = "PARTITION=NUMBER,…")]
    pub(crate) price: Vec<String>,
    /// Under the policy penalty: features that begin like this and go on with a number say how fast a machine is
    /// (spec_ for spec_150); the slowest has speed 1
    #[arg(long, value_name = "PREFIX")]
    pub(crate) speed_feature: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// How many places of the order
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) depth: usize,
    /// Only this job: its place, for which reason, and whom it waits for
    #[arg(long, value_name = "JOBID")]
    pub(crate) why: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Write the order; without this nothing is changed
    #[arg(long)]
    pub(crate) apply: bool,
    /// How many places at the head of the queue are kept in order
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) depth: usize,
    /// How long from one look to the next
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub(crate) interval: String,
    /// The most changes a second, in the mean
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) rate: usize,
    /// What is to survive a crash: one file
    #[arg(long, default_value = "/var/lib/evenhand/slurm.redb", value_name = "FILE")]
    pub(crate) state: PathBuf,
    /// If the controller did not answer for so long, everything is put back once it does
    #[arg(long, default_value = "10m", value_name = "TIME")]
    pub(crate) give_up: String,
    /// Answer Prometheus here: 127.0.0.1:9818
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Look so often, then put everything back and end
    #[arg(long, value_name = "N")]
    pub(crate) looks: Option<u64>,
    /// At the end leave the order as it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The file that `run` kept
    #[arg(long, default_value = "/var/lib/evenhand/slurm.redb", value_name = "FILE")]
    pub(crate) state: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct PastArgs {
    /// Jobs that waited or ran from then on: a date or time in UTC (2026-01-31, 2026-01-31T12:00), or so long
    /// ago (30d, 12h)
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub(crate) from: String,
    /// Jobs that waited or ran until then [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// The jobs of all users whose jobs you may see (sacct --allusers); else your own, to root everybody's
    #[arg(long)]
    pub(crate) all_users: bool,
    /// Count and skip malformed rows of sacct instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) machines: MachineArgs,
    /// The folder for what is read: workload.parquet, cluster.toml, accounts.toml
    #[arg(long, default_value = "evenhand-slurm", value_name = "DIR")]
    pub(crate) site: PathBuf,
    /// Options of evenhand study, or of evenhand audit --history, after those above
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub(crate) rest: Vec<String>,
}
