//! Arguments of `evenhand sweep` and of the hidden verb `sweep-task`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::named_value::at_least_one;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepArgs {
    /// Grid to run: TOML with lists for workload, policy, capacity and other axes
    #[arg(required = true, value_name = "GRID.toml")]
    pub(crate) grid: Option<PathBuf>,
    /// Where the runs are computed
    #[arg(long, value_enum, default_value = "local")]
    pub(crate) engine: Engine,
    /// Folder for results; the same command continues a sweep that was stopped
    #[arg(long, default_value = "evenhand-sweep", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Read the grid and its files, print how large the sweep is, and run nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// local: memory limit of all workloads and runs together [default: 80 % of the available memory];
    /// slurm: memory that each task requests [default: the estimate]; 0 requests none
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// slurm: partition [default: the site's]
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// slurm: account [default: Slurm's own]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// slurm: time limit of a task, in a form that sbatch accepts [default: the partition's]
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<String>,
    /// slurm: points per task [default: as many as take about half a minute]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) chunk: Option<NonZeroUsize>,
    /// slurm: maximum number of an array's tasks that run at a time [default: no limit]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) at_a_time: Option<NonZeroUsize>,
    /// slurm: wait until all points are done, and print the results
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<SweepVerb>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// All cores of this machine
    Local,
    /// Job arrays of Slurm, submitted by sbatch
    Slurm,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepVerb {
    /// Print points done, tasks in the queue, and which points have no result and why
    Status(SweepFolder),
    /// Cancel the sweep's jobs in Slurm's queue; results stay
    Cancel(SweepFolder),
    /// Write the summary from the results so far
    Gather(SweepFolder),
}

#[derive(Args, Debug)]
pub(crate) struct SweepFolder {
    /// The sweep's folder (--out)
    pub(crate) dir: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct SweepTaskArgs {
    /// The sweep's folder
    pub(crate) dir: PathBuf,
    /// Number of the chunk
    pub(crate) chunk: usize,
}
