//! Arguments of `evenhand audit`; those of `--history` are in `audit_history`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{HistoryArgs, MechanismArgs};

#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Problem, as for allocate; - for standard input
    #[arg(required_unless_present = "history")]
    pub(crate) problem: Option<PathBuf>,
    /// Allocation to check: users with name and tasks, or the JSON that allocate prints
    #[arg(required_unless_present_any = ["search_lies", "history"], conflicts_with = "search_lies")]
    pub(crate) allocation: Option<PathBuf>,
    /// Properties to check: feasible, pareto, sharing_incentive, envy_free, no_justified_complaint, and of an allocation
    /// bottleneck_max_fair, baa_local_rules [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", conflicts_with = "search_lies")]
    pub(crate) property: Vec<String>,
    /// Largest difference at which two shares, as parts of the capacity, count as equal; 0 computes exactly
    #[arg(long, default_value = "1e-9", value_name = "NUMBER", conflicts_with = "search_lies")]
    pub(crate) tolerance: String,
    /// Mechanism whose allocation to check, if the file has several; or mechanism to search for misreports
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,
    /// Search for a profitable misreport: a false demand that gains tasks under the mechanism
    #[arg(long, requires = "mechanism")]
    pub(crate) search_lies: bool,
    /// Only misreports of this user, or with --history only findings of this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Misreports to try for each user [default: 1000, fewer from 100 users on]
    #[arg(long, value_name = "N", requires = "search_lies")]
    pub(crate) tries: Option<u64>,
    #[command(flatten)]
    pub(crate) history: HistoryArgs,
    #[command(flatten)]
    pub(crate) options: MechanismArgs,
}

impl AuditArgs {
    /// Returns the path of the problem, which the command line has unless it has a history.
    pub(crate) fn problem(&self) -> &Path {
        self.problem.as_deref().unwrap_or(Path::new("-"))
    }
}
