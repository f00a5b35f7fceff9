//! Arguments of `evenhand audit --history`.

use std::path::PathBuf;

use clap::Args;

use super::policy_settings::PolicyArgs;
use super::{Release, TraceArgs};

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Audit a recorded history against the properties: a workload (Parquet) with original starts, or a trace in any
    /// importable format
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["problem", "allocation", "search_lies", "mechanism", "tolerance"])]
    pub(crate) history: Option<PathBuf>,
    /// Capacity during the history: a multiple of its mean use, a pool (cpu=100,mem=1TiB), or a file with a [pool] or
    /// [[machines]] [default: what the header of an SWF log states, where its jobs fit, else the peak use of each resource]
    #[arg(long, value_name = "NUMBER|POOL|FILE", requires = "history")]
    pub(crate) capacity: Option<String>,
    /// Users' weights: TOML with [weights], or CSV user,weight [default: 1 each]
    #[arg(long, value_name = "FILE", requires = "history")]
    pub(crate) weights: Option<PathBuf>,
    /// Start the audit this long after the first submission: 7d, 12h
    #[arg(long, value_name = "TIME", requires = "history")]
    pub(crate) since: Option<String>,
    /// End the audit this long after the first submission
    #[arg(long, value_name = "TIME", requires = "history")]
    pub(crate) until: Option<String>,
    /// From when on jobs wait: from when they became eligible in the log, after dependencies, holds and begin times, or from
    /// their submission [default: eligible]
    #[arg(long, value_enum, value_name = "TIME", requires = "history")]
    pub(crate) release: Option<Release>,
    /// Also replay the same tasks under these policies (`evenhand policies` lists them), and audit the results
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", requires = "history")]
    pub(crate) policy: Vec<String>,
    /// Half-life of past use in policies with a memory: 8d, 12h [default: a discount of 0.999999 per second]
    #[arg(long, value_name = "TIME", requires = "policy")]
    pub(crate) half_life: Option<String>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Also report entitlement, demand and use of accounts and users by week, and overuse while others waited. Accounts
    /// and shares: TOML with [[account]] and [[user]], as for study
    #[arg(long, value_name = "FILE", requires = "history", conflicts_with = "weights")]
    pub(crate) accounts: Option<PathBuf>,
    /// Folder for a page on entitlements with its figures and data; without --accounts, the trace's own accounts have
    /// equal shares
    #[arg(long, value_name = "DIR", requires = "history")]
    pub(crate) out: Option<PathBuf>,
    /// Offset of local time, in which times are printed and weeks begin, from the trace's clock (+1, -05:30) [default: 0]
    #[arg(long, value_name = "HOURS", requires = "history", allow_hyphen_values = true)]
    pub(crate) utc_offset: Option<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}
