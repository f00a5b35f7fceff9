//! What a user can type.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use evenhand_workload::import::{Format as TraceFormat, MemoryPer, MemoryUnit};
use evenhand_workload::generate::Like;

/// Who should get what next, and is it fair? Replays a site's own history under many fairness
/// policies and shows, per user, who would win and who would lose.
#[derive(Debug, Parser)]
#[command(name = "evenhand", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub verb: Verb,
}

/// Common to all verbs.
#[derive(Args, Debug)]
pub struct Common {
    /// How results are printed on standard output
    #[arg(long, global = true, value_enum)]
    pub format: Option<Format>,
    /// Seed of everything random; the same seed gives the same result
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// Threads to use (default: one a core); results do not depend on it
    #[arg(long, global = true)]
    pub threads: Option<NonZeroUsize>,
    /// No progress and no notes on standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Table,
    /// One JSON document and nothing else
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Bring traces in and out, generate them, describe them
    #[command(subcommand)]
    Workload(WorkloadVerb),
    /// Replay a workload under several policies and write a report
    Study(Box<StudyArgs>),
}

#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
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
pub struct TraceArgs {
    /// The trace's format: auto, swf, google2011, sdrf-csv, sacct or batsim
    #[arg(long, default_value = "auto", value_name = "FORMAT")]
    pub from: TraceFormat,
    /// Count and skip malformed rows instead of stopping at the first
    #[arg(long)]
    pub lenient: bool,
    /// SWF: accept decimals, more than 18 columns and any order of job numbers
    #[arg(long)]
    pub relaxed: bool,
    /// SWF: the unit of memory fields: B, KB or MB
    #[arg(long, default_value = "KB", value_name = "UNIT")]
    pub swf_memory_unit: MemoryUnit,
    /// SWF: what memory fields are for: processor, node or job
    #[arg(long, default_value = "processor", value_name = "WHAT")]
    pub swf_memory_per: MemoryPer,
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Files, folders of shards, or - for standard input; .gz and .zst are unpacked
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// The Parquet file to write
    #[arg(long, short, value_name = "W.parquet")]
    pub output: PathBuf,
}

#[derive(Args, Debug)]
pub struct DescribeArgs {
    /// A workload (Parquet), or a trace in any format that can be imported
    pub workload: PathBuf,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Also draw it: a folder for SVG figures and their data
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// Which trace it should look like: google2011 or metacentrum
    #[arg(long, default_value = "google2011")]
    pub like: Like,
    /// How many tasks
    #[arg(long, default_value_t = 200_000)]
    pub tasks: u64,
    /// How many users
    #[arg(long, default_value_t = 100)]
    pub users: u32,
    /// Over how many days they are submitted
    #[arg(long, default_value_t = 2.0)]
    pub days: f64,
    /// The Parquet file to write
    #[arg(long, short, value_name = "W.parquet")]
    pub output: PathBuf,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// A workload (Parquet), or a trace in any format that can be imported
    pub workload: PathBuf,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// The format to write
    #[arg(long, value_enum)]
    pub to: ExportFormat,
    /// The file to write (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// submit,start,finish (microseconds),user,task,cpu,mem; no header
    SdrfCsv,
    /// Standard Workload Format 2.2
    Swf,
    /// The columns of Batsim's jobs.csv, which evalys reads
    EvalysCsv,
}

#[derive(Args, Debug)]
pub struct StudyArgs {
    /// A workload (Parquet), or a trace in any format that can be imported (default: generate a
    /// small one like Google's)
    pub workload: Option<PathBuf>,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Policies; the others are held against the first
    #[arg(long, value_delimiter = ',', default_value = "fifo,drf,sdrf", value_name = "NAME,…")]
    pub policy: Vec<String>,
    /// Capacities: multiples of the workload's mean use R, or files with a [pool]
    #[arg(long, value_delimiter = ',', default_value = "0.5,0.75,1.0", value_name = "NUMBER|FILE,…")]
    pub capacity: Vec<String>,
    /// Discount factor a second of stateful policies [default: 0.999999]
    #[arg(long, value_delimiter = ',', value_name = "NUMBER,…", conflicts_with = "half_life")]
    pub delta: Vec<String>,
    /// The same as a half-life: 8d, 12h
    #[arg(long, value_delimiter = ',', value_name = "TIME,…")]
    pub half_life: Vec<String>,
    /// The key of sdrf: the largest sum of share and commitment, or the sum of the two largest
    #[arg(long, value_enum, default_value = "sum")]
    pub sdrf_key: SdrfKey,
    /// Users' weights: TOML with [weights], or CSV user,weight (default: 1 each)
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// When a user's first task does not fit, try the next user
    #[arg(long)]
    pub no_blocking: bool,
    /// When a run stops
    #[arg(long, value_enum, default_value = "finished")]
    pub until: Until,
    /// The folder for the report and all results
    #[arg(long, default_value = "evenhand-study", value_name = "DIR")]
    pub out: PathBuf,
    /// Write each run's tasks as CSV instead of Parquet
    #[arg(long)]
    pub tasks_csv: bool,
    /// Do not write each run's tasks
    #[arg(long, conflicts_with = "tasks_csv")]
    pub no_tasks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SdrfKey {
    /// max over resources of (share + commitment): paper 001, Algorithm 1
    Sum,
    /// max share + max commitment: paper 001, Eq. 5
    Dominant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// When every accepted task has finished
    Finished,
    /// At the last event of the trace
    TraceEnd,
}
