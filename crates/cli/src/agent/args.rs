//! What a user can type after `evenhand agent`, and after `evenhand top`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// Weigh running guests by how much their users burden all nodes; without --apply only say what would change
    Run(RunArgs),
    /// What can be enforced on this machine, by what, and why not the rest; changes nothing
    Doctor(DoctorArgs),
    /// Put back what the agent wrote: by the running one, which then ends, or after a crash from its journal
    Release(ReleaseArgs),
    /// What the running agent sees and does
    Status(StatusArgs),
    /// Why a user's guests have the weights that they have
    Why(WhyArgs),
    /// Measure how fast a processor of this machine is, for speed = "benchmark" on others
    Benchmark,
}

/// The configuration.
pub(crate) const CONFIGURATION: &str = "/etc/evenhand/agent.toml";
/// Where the running agent answers, unless its configuration says another place.
pub(crate) const SOCKET: &str = "/run/evenhand/agent.sock";

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The configuration
    #[arg(long, default_value = CONFIGURATION, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Write weights; without this nothing is changed
    #[arg(long)]
    pub(crate) apply: bool,
    /// So many updates, then put everything back and end
    #[arg(long, value_name = "N")]
    pub(crate) updates: Option<u64>,
    /// At the end leave everything as it is; `release` puts it back later
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The configuration, if there is one: what it names is looked at
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The configuration that the agent ran with
    #[arg(long, default_value = CONFIGURATION, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Where the running agent answers
    #[arg(long, default_value = SOCKET, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The user
    pub(crate) user: String,
    /// Where the running agent answers
    #[arg(long, default_value = SOCKET, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Where the running agent answers
    #[arg(long, default_value = SOCKET, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// Print the view once as text, and end
    #[arg(long)]
    pub(crate) once: bool,
}
