//! Arguments of `evenhand agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// Set the weights of running workloads by their users' load on all nodes; without --apply, only print the changes
    Run(RunArgs),
    /// Print which resources can be divided on this machine, by which mechanism, and why the others cannot; changes nothing
    Doctor(DoctorArgs),
    /// Restore what the agent changed: through the running agent, which then exits, or from its journal after a crash
    Release(ReleaseArgs),
    /// Let the running agent read its configuration again; an invalid one is refused, and the agent goes on as it was
    Reload(StatusArgs),
    /// Print the state of the running agent
    Status(StatusArgs),
    /// Explain the weights of a user's workloads
    Why(WhyArgs),
    /// Measure the speed of this machine's processors, for speed = "benchmark" on other nodes
    Benchmark,
}

/// Default path of the configuration.
pub(crate) const CONFIGURATION: &str = "/etc/evenhand/agent.toml";
/// Default path of the running agent's control socket.
pub(super) const SOCKET: &str = "/run/evenhand/agent.sock";

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Configuration
    #[arg(long, default_value = CONFIGURATION, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Write weights; without this, nothing is changed
    #[arg(long)]
    pub(crate) apply: bool,
    /// Number of updates, after which everything is restored and the agent exits [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) updates: Option<u64>,
    /// Leave everything as it is on exit; `release` restores it later
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Configuration whose devices and paths are also checked
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// Configuration with which the agent ran
    #[arg(long, default_value = CONFIGURATION, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Restore what can be read of this journal, also of a damaged one, without a configuration; no agent may be running with it
    #[arg(long, value_name = "FILE")]
    pub(crate) from_journal: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Control socket of the running agent
    #[arg(long, default_value = SOCKET, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Name of the user whose workloads to explain
    pub(crate) user: String,
    /// Control socket of the running agent
    #[arg(long, default_value = SOCKET, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
}
