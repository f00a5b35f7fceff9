//! Arguments of `evenhand site`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::MachineArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SiteVerb {
    /// Read a site from Slurm's files, without a running Slurm, and write the folder that a study replays on
    Import(SiteImportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SiteImportArgs {
    /// slurm.conf, with the files that it includes
    #[arg(long, value_name = "FILE")]
    pub(crate) slurm_conf: Option<PathBuf>,
    /// Release of Slurm whose rules apply, such as 24.11; slurm.conf does not state it [default: 22.05]
    #[arg(long, value_name = "RELEASE", requires = "slurm_conf")]
    pub(crate) release: Option<String>,
    /// Accounts and users: the text of sacctmgr -nP show assoc, with a header line or the columns Cluster, Account, User,
    /// Partition, Share of sacctmgr's default format
    #[arg(long, value_name = "FILE", conflicts_with = "sacctmgr_dump")]
    pub(crate) assoc: Option<PathBuf>,
    /// Qualities of service: the text of sacctmgr -P show qos
    #[arg(long, value_name = "FILE")]
    pub(crate) qos: Option<PathBuf>,
    /// Accounts and users: the file that sacctmgr dump writes
    #[arg(long, value_name = "FILE")]
    pub(crate) sacctmgr_dump: Option<PathBuf>,
    /// Nodes, in place of those of slurm.conf: the text of scontrol -o show node
    #[arg(long, value_name = "FILE")]
    pub(crate) nodes: Option<PathBuf>,
    /// Partitions, in place of those of slurm.conf: the text of scontrol -o show part
    #[arg(long, value_name = "FILE")]
    pub(crate) partitions: Option<PathBuf>,
    /// Reservations: the text of scontrol show reservation, or of sacctmgr -P show reservation with NodeNames
    #[arg(long, value_name = "FILE")]
    pub(crate) reservations: Option<PathBuf>,
    /// When nodes were down or drained: the text of sacctmgr -P show event All_Time Event=Node, or of sinfo -R
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machines: MachineArgs,
    /// Folder for the files that describe the site: cluster.toml, accounts.toml, policy-settings.toml, slurm.conf
    #[arg(short, long, value_name = "SITE")]
    pub(crate) output: PathBuf,
}
