//! What a user can type.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use evenhand_policies::equivalents::Combine;
use evenhand_policies::{COMPARED_POLICIES, Order, Registry};
use evenhand_study::{BACKFILLS, Backfill, PLACEMENTS, Placement};
use evenhand_workload::export::ExportFormat;
use evenhand_workload::generate::TraceModel;
use evenhand_workload::import::{CsvColumns, Format as TraceFormat, MemoryPer, MemoryUnit};

use crate::agent::{AgentVerb, TopArgs};
use crate::history::HistoryArgs;
use crate::policies::PoliciesArgs;
use crate::policy_args::{PolicyArgs, with_policy_options};
use crate::price::PriceArgs;
use crate::slurm::SlurmVerb;

/// Who should get what next, and is it fair? Replays a site's own history under many fairness
/// policies and shows, per user, who would win and who would lose.
#[derive(Debug, Parser)]
#[command(name = "evenhand", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Parses a command line whose policies are those of `registry`.
pub(crate) fn parse(
    registry: &Registry,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli, clap::Error> {
    let mut command = with_policy_options(Cli::command(), registry);
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Common to all verbs.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// How results are printed on standard output
    #[arg(long, global = true, value_enum)]
    pub(crate) format: Option<Format>,
    /// Seed of everything random; the same seed gives the same result [default: 1]
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// Threads to use (default: one a core); results do not depend on it
    #[arg(long, global = true, value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// No progress and no notes on standard error
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Common {
    /// The seed, 1 if none is given.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// As a command line that says the same.
    pub(crate) fn as_typed(&self) -> Vec<String> {
        let mut typed = Vec::new();
        if let Some(format) = self.format.and_then(|f| f.to_possible_value()) {
            typed.extend(["--format".to_string(), format.get_name().to_string()]);
        }
        typed.extend(self.seed.map(|seed| format!("--seed={seed}")));
        typed.extend(self.threads.map(|threads| format!("--threads={threads}")));
        typed.extend(self.quiet.then(|| "--quiet".to_string()));
        typed
    }

    /// The seed, if one is given: files may have their own.
    pub(crate) fn seed_given(&self) -> Option<u64> {
        self.seed
    }
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number, 1 or more".to_string())
}

fn backfill(text: &str) -> Result<Backfill, String> {
    named(&BACKFILLS, text)
}

fn placement(text: &str) -> Result<Placement, String> {
    named(&PLACEMENTS, text)
}

pub(crate) fn combine(text: &str) -> Result<Combine, String> {
    named(&Combine::ALL.map(|c| (c.name(), c)), text)
}

fn named<T: Copy>(list: &[(&str, T)], text: &str) -> Result<T, String> {
    let names = || list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = list.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| format!("expected one of: {}", names()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// One JSON document and nothing else
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Bring traces in and out, generate them, describe them
    #[command(subcommand)]
    Workload(WorkloadVerb),
    /// Replay a workload under several policies and write a report
    Study(Box<StudyArgs>),
    /// List the policies and their settings
    Policies(PoliciesArgs),
    /// Run a grid of workloads, policies, capacities and settings, here or as job arrays of Slurm
    Sweep(Box<SweepArgs>),
    /// What a task of a sweep's job array runs
    #[command(hide = true)]
    SweepTask(SweepTaskArgs),
    /// Read the Slurm of this site: show it, study its history, audit it; changes nothing
    #[command(subcommand)]
    Slurm(SlurmVerb),
    /// Weigh running guests (machines, containers, users' slices) on every node by how much their users burden all nodes
    #[command(subcommand)]
    Agent(AgentVerb),
    /// The running agent's view: users by heaviness, their guests, shares against entitlement, what was changed
    Top(TopArgs),
    /// Divide one capacity among users once, by one or several mechanisms
    Allocate(AllocateArgs),
    /// Check an allocation or a real history against the fairness properties, or search for profitable misreports
    Audit(Box<AuditArgs>),
    /// Divide capacity over time among users who arrive, change and leave
    Timeline(TimelineArgs),
    /// Say what a job costs on the machines of a cluster, in processors (paper 004)
    Price(PriceArgs),
    /// Simulate processes that alternate between time-shared resources (Zeldes & Feitelson 2013)
    Processes(ProcessesArgs),
    /// Run a paper's experiment again: what it states, what we get, whether it holds
    Reproduce(Box<ReproduceArgs>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadVerb {
    /// Read a trace and store it as Parquet
    Import(ImportArgs),
    /// Say what a workload looks like: counts, users, demands, durations, mean use
    Describe(DescribeArgs),
    /// Make a workload that looks like a real trace
    Generate(GenerateArgs),
    /// Write a workload in another program's format
    Export(ExportArgs),
}

/// How a trace is read, wherever one is.
#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    /// The trace's format: auto, swf, google2011, sdrf-csv, sacct, batsim or csv
    #[arg(long, default_value = "auto", value_name = "FORMAT")]
    pub(crate) from: TraceFormat,
    /// Count and skip malformed rows instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Any table with a header: what its columns are (submit, start, end, duration, wait, requested, user,
    /// account, queue, count; all else is a resource, with its unit): submit=created,end=done,start=begun,cpu=cores*0.001
    #[arg(long, value_name = "WHAT=COLUMN,…")]
    pub(crate) csv_columns: Option<CsvColumns>,
    /// SWF: accept decimals, more than 18 columns and any order of job numbers
    #[arg(long)]
    pub(crate) relaxed: bool,
    /// SWF: the unit of memory fields: B, KB or MB
    #[arg(long, default_value = "KB", value_name = "UNIT")]
    pub(crate) swf_memory_unit: MemoryUnit,
    /// SWF: what memory fields are for: processor, node or job
    #[arg(long, default_value = "processor", value_name = "WHAT")]
    pub(crate) swf_memory_per: MemoryPer,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Files, folders of shards, or - for standard input; .gz and .zst are unpacked
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The Parquet file to write
    #[arg(long, short, value_name = "W.parquet")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DescribeArgs {
    /// A workload (Parquet), or a trace in any format that can be imported
    pub(crate) workload: PathBuf,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Also draw it: a folder for SVG figures and their data
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    /// Which trace it should look like: google2011 or metacentrum
    #[arg(long, default_value = "google2011")]
    pub(crate) like: TraceModel,
    /// How many tasks
    #[arg(long, default_value_t = 200_000)]
    pub(crate) tasks: u64,
    /// How many users
    #[arg(long, default_value_t = 100)]
    pub(crate) users: u32,
    /// Over how many days they are submitted
    #[arg(long, default_value_t = 29.0)]
    pub(crate) days: f64,
    /// The Parquet file to write
    #[arg(long, short, value_name = "W.parquet")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// A workload (Parquet), or a trace in any format that can be imported
    pub(crate) workload: PathBuf,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The format to write: sdrf-csv, swf or evalys-csv (Batsim's jobs.csv)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: ExportFormat,
    /// The file to write (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    /// A workload (Parquet), or a trace in any format that can be imported (default: generate a
    /// small one like Google's)
    pub(crate) workload: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Policies; the others are held against the first
    #[arg(long, value_delimiter = ',', default_value = COMPARED_POLICIES, value_name = "NAME,…")]
    pub(crate) policy: Vec<String>,
    /// Capacities: multiples of the workload's mean use R, or files with a [pool]
    #[arg(long, value_delimiter = ',', default_value = "0.5,0.75,1.0", value_name = "NUMBER|FILE,…")]
    pub(crate) capacity: Vec<String>,
    /// Discount factor a second of stateful policies [default: 0.999999]
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
    /// Users' accounts and shares: TOML with [[account]] and [[user]]; an empty file stands for the
    /// trace's own accounts, equally entitled
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    pub(crate) accounts: Option<PathBuf>,
    /// When a user's first task does not fit, try the next user
    #[arg(long)]
    pub(crate) no_blocking: bool,
    /// Which tasks may start before the head of the queue, which does not fit: none, easy, conservative
    #[arg(long, default_value = "none", value_name = "KIND", value_parser = backfill)]
    pub(crate) backfill: Backfill,
    /// On machines, where a task is put: first-fit, best-fit, worst-fit, dominant
    #[arg(long, default_value = "first-fit", value_name = "RULE", value_parser = placement)]
    pub(crate) placement: Placement,
    /// When a run stops
    #[arg(long, value_enum, default_value = "finished")]
    pub(crate) until: Until,
    /// What keeps users of stateful policies in order: auto (by their number), scan, tournament, or
    /// live-tree (paper 001's, which counts order events); results are the same
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub(crate) order: Order,
    /// The folder for the report and all results
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

#[derive(Args, Debug)]
pub(crate) struct AllocateArgs {
    /// Problem to divide: TOML or JSON with capacity and users; - for standard input
    pub(crate) problem: PathBuf,
    /// Mechanisms; several are also compared
    #[arg(long, value_delimiter = ',', default_value = "drf", value_name = "NAME,…")]
    pub(crate) mechanism: Vec<String>,
    /// Compute with exact fractions
    #[arg(long)]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) options: MechanismArgs,
}

/// What can be chosen about some mechanisms.
#[derive(Args, Debug)]
pub(crate) struct MechanismArgs {
    /// baa: whether to guarantee every user at least an equal split [default: true for 3 resources and more]
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) sharing_incentive: Option<bool>,
}

#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Problem, as for allocate; - for standard input
    #[arg(required_unless_present = "history")]
    pub(crate) problem: Option<PathBuf>,
    /// Allocation to check: users with name and tasks, or the JSON that allocate prints
    #[arg(required_unless_present_any = ["search_lies", "history"], conflicts_with = "search_lies")]
    pub(crate) allocation: Option<PathBuf>,
    /// Properties to check [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", conflicts_with = "search_lies")]
    pub(crate) property: Vec<String>,
    /// Largest difference at which two shares count as equal; 0 computes exactly
    #[arg(long, default_value = "1e-9", value_name = "NUMBER", conflicts_with = "search_lies")]
    pub(crate) tolerance: String,
    /// Mechanism whose allocation to check, if the file has several; or mechanism to search for misreports
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,
    /// Search for a profitable misreport: a false demand that gains tasks under the mechanism
    #[arg(long, requires = "mechanism")]
    pub(crate) search_lies: bool,
    /// Only misreports of this user
    #[arg(long, value_name = "NAME", requires = "search_lies")]
    pub(crate) user: Option<String>,
    /// Misreports to try for each user [default: 1000, fewer from 100 users on]
    #[arg(long, value_name = "N", requires = "search_lies")]
    pub(crate) tries: Option<u64>,
    #[command(flatten)]
    pub(crate) past: HistoryArgs,
    #[command(flatten)]
    pub(crate) options: MechanismArgs,
}

impl AuditArgs {
    /// The problem; the command line has one if it has no history.
    pub(crate) fn problem(&self) -> &Path {
        self.problem.as_deref().unwrap_or(Path::new("-"))
    }
}

#[derive(Args, Debug)]
pub(crate) struct TimelineArgs {
    /// Scenario: a problem whose users may have arrive and leave, or phases; - for standard input
    pub(crate) scenario: PathBuf,
    /// Mechanism that divides anew at each event
    #[arg(long, default_value = "drf", value_name = "NAME")]
    pub(crate) mechanism: String,
    /// Compute with exact fractions
    #[arg(long)]
    pub(crate) exact: bool,
    /// sdrf: discount factor per second [default: 0.999999]
    #[arg(long, value_name = "NUMBER", conflicts_with = "half_life")]
    pub(crate) delta: Option<String>,
    /// sdrf: the same as a half-life: 8d, 12h
    #[arg(long, value_name = "TIME")]
    pub(crate) half_life: Option<String>,
    /// baa: each user brings a share of capacity, and no allocation is ever reduced
    #[arg(long)]
    pub(crate) irrevocable: bool,
    /// Stop then, in seconds or as 2d, 12h
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// sdrf: longest interval while tasks change [default: an eighth of the half-life]
    #[arg(long, value_name = "TIME")]
    pub(crate) resolution: Option<String>,
    /// Draw the use of the resource, or of several resources the users' dominant shares
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) figure: Option<PathBuf>,
    /// Folder for all figures (SVG) and their data
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: MechanismArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ProcessesArgs {
    /// Programs (.prog; - for standard input), or one scenario (.toml)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Describe the programs in words, without running them
    #[arg(long, conflicts_with_all = ["runs", "out"])]
    pub(crate) check: bool,
    /// Number of runs, in parallel, each with its own seed
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Interpretation of the priorities' formula: per-resource (default), global, normalized
    #[arg(long, value_name = "NAME")]
    pub(crate) reading: Option<String>,
    /// Schedulers; several are compared: bottleneck (Zeldes & Feitelson, default), round-robin, lottery, stride, least-use,
    /// dominant-share
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) scheduler: Vec<String>,
    /// Time at which to cut the run off, in seconds or as 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) horizon: Option<String>,
    /// Folder for a page, figures and their data; with several schedulers, one folder for each
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// list, a paper (sadok, or its number 001), or a figure (sadok/figure-1b; sadok/figure-1 for all its parts)
    pub(crate) what: String,
    /// A folder for the figures, their data and a page
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Google's trace of 2011, where the paper draws from it (default: generate a workload like it); for paper 003 a folder
    /// of recordings, as tests/agent/guests.sh leaves them
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) data: Option<PathBuf>,
    /// How many tasks the generated month of paper 001 has (the paper's: 32000000) [default: 1000000]
    #[arg(long, value_name = "TASKS")]
    pub(crate) tasks: Option<u64>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepArgs {
    /// What is swept: TOML with lists for workload, policy, capacity and other axes
    #[arg(required = true, value_name = "GRID.toml")]
    pub(crate) grid: Option<PathBuf>,
    /// Who runs it: the cores of this machine, or Slurm
    #[arg(long, value_enum, default_value = "local")]
    pub(crate) engine: Engine,
    /// The folder for results; a sweep that was stopped goes on where it is
    #[arg(long, default_value = "evenhand-sweep", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Read the grid and all it names, say how large it is, and run nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// local: what workloads and runs may hold together [default: 80 % of what is available];
    /// slurm: what each task asks for [default: the estimate]; 0 asks for none
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// slurm: the partition [default: the site's]
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// slurm: the account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// slurm: the time limit of a task, as sbatch takes it
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<String>,
    /// slurm: points a task [default: about half a minute of them]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) chunk: Option<NonZeroUsize>,
    /// slurm: tasks of an array at a time at most
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) at_a_time: Option<NonZeroUsize>,
    /// slurm: follow until all is done, and print the results
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<SweepVerb>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// All cores of this machine
    Local,
    /// Job arrays, through sbatch
    Slurm,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepVerb {
    /// Where a sweep stands: points done, tasks in the queue, what is missing and why
    Status(SweepFolder),
    /// Cancel what of a sweep is in Slurm's queue; results stay
    Cancel(SweepFolder),
    /// Write the summary from the results that are there
    Gather(SweepFolder),
}

#[derive(Args, Debug)]
pub(crate) struct SweepFolder {
    /// What --out named
    pub(crate) dir: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct SweepTaskArgs {
    /// The sweep's folder
    pub(crate) dir: PathBuf,
    /// Which chunk of it
    pub(crate) chunk: usize,
}
