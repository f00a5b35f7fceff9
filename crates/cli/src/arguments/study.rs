//! Arguments of `evenhand study`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use evenhand_policies::Order;
use evenhand_study::{Arrivals, Backfill, Layout, Placement, Vary};

use super::TraceArgs;
use super::named_value::{arrivals, backfill, layout, placement, scheduler, vary};
use super::policy_settings::PolicyArgs;

#[derive(Args, Clone, Debug)]
pub(crate) struct StudyArgs {
    /// Workload (Parquet), or a trace in any importable format [default: generate a small workload that resembles
    /// Google's trace of 2011]
    pub(crate) workload: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Policies (`evenhand policies` lists them), and `logged` for what happened by the log's own starts [default: logged,fifo,fair-tree,sdrf for a log
    /// without --capacity, else fifo,drf,sdrf]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) policy: Vec<String>,
    /// The policy with which the others are compared [default: the first of --policy]
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,
    /// Capacities: multiples of the workload's mean use R, pools (cpu=100,mem=1TiB), or files with a [pool] or [[machines]]
    /// [default: for a log its own, from its cluster file, its header or its peak of use; for a generated workload
    /// 0.5,0.75,1.0]
    #[arg(long, value_delimiter = ',', value_name = "NUMBER|POOL|FILE,…")]
    pub(crate) capacity: Vec<String>,
    /// Folder of `site import` or `slurm study`: its machines, and its accounts and policy settings where no others are
    /// given
    #[arg(long, value_name = "SITE", conflicts_with = "capacity", requires = "workload")]
    pub(crate) site: Option<PathBuf>,
    /// Discount of past use per second in stateful policies [default: 0.999999]
    #[arg(long, value_delimiter = ',', value_name = "NUMBER,…", conflicts_with = "half_life")]
    pub(crate) delta: Vec<String>,
    /// The same as a half-life: 8d, 12h
    #[arg(long, value_delimiter = ',', value_name = "TIME,…")]
    pub(crate) half_life: Vec<String>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Users' weights: TOML with [weights], or CSV user,weight [default: 1 each]
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// Users' accounts and shares: TOML with [[account]] and [[user]]; with an empty file, the trace's own accounts have
    /// equal shares
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    pub(crate) accounts: Option<PathBuf>,
    /// If a user's first task does not fit, try the next user
    #[arg(long)]
    pub(crate) no_blocking: bool,
    /// Scheduler: strict (nothing starts before the head of the queue), easy or conservative backfilling, these also with
    /// settings (easy:reserve=3) or those of another program (easy:accasim, batsim, batsim-fast, cqsim, first-fit, pyss), or
    /// slurm (that of Slurm, on machines) [default: strict; for a log without --capacity easy, if most jobs have a requested wall time]
    #[arg(long, value_name = "NAME", value_parser = scheduler)]
    pub(crate) scheduler: Option<Backfill>,
    /// Settings of the scheduler slurm and of the policy site [default: slurm.conf in the folder of --site]
    #[cfg(feature = "slurm")]
    #[arg(long, value_name = "FILE")]
    pub(crate) slurm_conf: Option<PathBuf>,
    /// The same by another name: none, easy, conservative
    #[arg(long, value_name = "KIND", value_parser = backfill, conflicts_with = "scheduler")]
    pub(crate) backfill: Option<Backfill>,
    /// Rule that selects the machine of a task: first-fit, best-fit, worst-fit, dominant [default: first-fit]
    #[arg(long, value_name = "RULE", value_parser = placement)]
    pub(crate) placement: Option<Placement>,
    /// How jobs lie on machines: auto (as the source says, else one chunk, or single processors where one machine is too
    /// small), single (one chunk), packed (single processors), whole (whole machines) or chunk=K (chunks of K processors)
    #[arg(long, default_value = "auto", value_name = "LAYOUT", value_parser = layout)]
    pub(crate) layout: Layout,
    /// When a run ends
    #[arg(long, value_enum, default_value = "finished")]
    pub(crate) until: Until,
    /// What determines submissions: clock (the log's times), sessions (users come at the log's times, and within a session
    /// wait for their tasks and think as in the log) or closed (also between sessions); what users get done is then
    /// reported beside waits
    #[arg(long, default_value = "clock", value_name = "KIND", value_parser = arrivals)]
    pub(crate) arrivals: Arrivals,
    /// From when on jobs wait: from their submission, or from when they became eligible in the log, after dependencies, holds
    /// and begin times [default: eligible under --scheduler slurm, else submit]
    #[arg(long, value_enum, value_name = "TIME")]
    pub(crate) release: Option<Release>,
    /// Replays of each run, the log itself included: shows which differences are beyond the noise; 1 is no repeats
    /// [default: 10 where they take seconds, by the number of tasks, and otherwise 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// What varies between repeats: ties (the order of equal jobs and users), arrivals (within the resolution of the log),
    /// weeks (drawn with replacement), users (whose jobs move by whole weeks) [default: ties,arrivals; ties, where users
    /// react (--arrivals)]
    #[arg(long, value_delimiter = ',', value_name = "WHAT,…", value_parser = vary)]
    pub(crate) vary: Vec<Vary>,
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
    /// List all users in summary.json and --format json; of more than 10,000 users only the 1000 whose mean wait changes
    /// most are listed otherwise, and the others are summed up (users.csv always has all)
    #[arg(long)]
    pub(crate) list_all_users: bool,
    /// Print waits in seconds
    #[arg(long)]
    pub(crate) seconds: bool,
    /// Also print the simulator's speed, and the normalized user wait times of runs that have them
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Also print waits and completions by class: sporadic and heavy users, small and large, short and long tasks
    #[arg(long)]
    pub(crate) classes: bool,
    /// Do not write each run's tasks
    #[arg(long, conflicts_with = "tasks_csv")]
    pub(crate) no_tasks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Release {
    /// At its submission
    Submit,
    /// When it became eligible in the log
    Eligible,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// When every accepted task has finished
    Finished,
    /// At the last event of the trace
    TraceEnd,
}
