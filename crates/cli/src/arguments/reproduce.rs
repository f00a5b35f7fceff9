//! Arguments of `evenhand reproduce`.

use std::path::PathBuf;

use clap::Args;

use super::TraceArgs;

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// list; a paper, by name or number (sadok, 001); or a figure (sadok/figure-1b; sadok/figure-1 for all its parts)
    pub(crate) what: String,
    /// Folder for figures, their data and a page
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Google's trace of 2011, for experiments that use it [default: generate a workload that resembles it]; for poullie, a
    /// folder of recordings made by tests/agent/guests.sh
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) data: Option<PathBuf>,
    /// sadok: number of tasks in the generated month (the paper's: 32000000) [default: 1000000]; klusacek-rudova: number of
    /// jobs of the generated workload, at most 18000 [default: 18000]
    #[arg(long, value_name = "TASKS")]
    pub(crate) tasks: Option<u64>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}
