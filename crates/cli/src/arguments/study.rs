//! Arguments of `evenhand study`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use evenhand_policies::{COMPARED_POLICIES, Order};
use evenhand_study::{Backfill, Placement};

use super::TraceArgs;
use super::named_value::{backfill, placement};
use super::policy_settings::PolicyArgs;

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    /// Workload (Parquet), or a trace in any importable format (default: generate a small workload that resembles
    /// Google's trace of 2011)
    pub(crate) workload: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Policies; the first is the baseline of all comparisons
    #[arg(long, value_delimiter = ',', default_value = COMPARED_POLICIES, value_name = "NAME,…")]
    pub(crate) policy: Vec<String>,
    /// Capacities: multiples of the workload's mean use R, or files with a [pool] or [[machines]]
    #[arg(long, value_delimiter = ',', default_value = "0.5,0.75,1.0", value_name = "NUMBER|FILE,…")]
    pub(crate) capacity: Vec<String>,
    /// Discount of past use per second in stateful policies [default: 0.999999]
    #[arg(long, value_delimiter = ',', value_name = "NUMBER,…", conflicts_with = "half_life")]
    pub(crate) delta: Vec<String>,
    /// The same as a half-life: 8d, 12h
    #[arg(long, value_delimiter = ',', value_name = "TIME,…")]
    pub(crate) half_life: Vec<String>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Users' weights: TOML with [weights], or CSV user,weight (default: 1 each)
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// Users' accounts and shares: TOML with [[account]] and [[user]]; with an empty file, the trace's own accounts have
    /// equal shares
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    pub(crate) accounts: Option<PathBuf>,
    /// If a user's first task does not fit, try the next user
    #[arg(long)]
    pub(crate) no_blocking: bool,
    /// Backfilling: which tasks may start before the head of the queue, which does not fit: none, easy, conservative
    #[arg(long, default_value = "none", value_name = "KIND", value_parser = backfill)]
    pub(crate) backfill: Backfill,
    /// Rule that selects the machine of a task: first-fit, best-fit, worst-fit, dominant
    #[arg(long, default_value = "first-fit", value_name = "RULE", value_parser = placement)]
    pub(crate) placement: Placement,
    /// When a run ends
    #[arg(long, value_enum, default_value = "finished")]
    pub(crate) until: Until,
    /// Data structure that orders the users of stateful policies: auto (by their number), scan, tournament, or live-tree
    /// (that of Sadok et al. 2021, which counts order events); results are the same
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub(crate) order: Order,
    /// Folder for the report and all results
    #[arg(long, default_value = "evenhand-study", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Write each run's tasks as CSV instead of Parquet
    #[arg(long)]
    pub(crate) tasks_csv: bool,
    /// Do not write each run's tasks
    #[arg(long, conflicts_with = "tasks_csv")]
    pub(crate) no_tasks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// When every accepted task has finished
    Finished,
    /// At the last event of the trace
    TraceEnd,
}
