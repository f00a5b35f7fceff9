//! Arguments of `evenhand serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address to listen at; other machines reach it only with --user-header
    #[arg(long, default_value = "127.0.0.1:8642", value_name = "ADDRESS", conflicts_with = "socket")]
    pub(crate) listen: SocketAddr,
    /// Unix socket to listen at instead: the system says which user comes
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Header in which a reverse proxy names the user
    #[arg(long, value_name = "NAME", requires = "trusted_proxy")]
    pub(crate) user_header: Option<String>,
    /// Proxy whose header is believed: its address, or user:NAME for a proxy that runs as this user and comes by --socket
    #[arg(long, value_name = "ADDRESS|user:NAME", requires = "user_header")]
    pub(crate) trusted_proxy: Option<String>,
    /// Time from one answer of Slurm to the next question, however many visitors there are
    #[arg(long, default_value = "15s", value_name = "TIME")]
    pub(crate) interval: String,
    /// File that says who sees what (TOML: anonymous, users, administrators) [default: what PrivateData shows]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy_file: Option<PathBuf>,
    /// Folder of a stored study's report, for those who see all users
    #[arg(long, value_name = "DIR")]
    pub(crate) study: Option<PathBuf>,
    /// Control socket of an agent, whose nodes and users have a page
    #[cfg(feature = "agent")]
    #[arg(long, value_name = "PATH")]
    pub(crate) agent: Option<PathBuf>,
    /// Address at which Prometheus can read metrics, without names of users: 127.0.0.1:9819
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Requests of one client per second; five times as many at once after a pause
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) rate: u32,
    /// How far back finished jobs are read for forecasts
    #[arg(long, default_value = "28d", value_name = "TIME")]
    pub(crate) history: String,
}
