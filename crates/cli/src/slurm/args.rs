//! What a user can type after `evenhand slurm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SlurmVerb {
    /// What is read of this site: machines, partitions, queue, accounts, and how Slurm makes priorities
    Show(ShowArgs),
    /// Replay this site's history under policies, on its machines and with its accounts, and write a report
    Study(PastArgs),
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

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) machines: MachineArgs,
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
