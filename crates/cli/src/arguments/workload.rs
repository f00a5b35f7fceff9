//! Arguments of `evenhand workload`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use evenhand_workload::export::ExportFormat;
use evenhand_workload::generate::TraceModel;

use super::TraceArgs;
use super::named_value::{file_to_write, size};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadVerb {
    /// Read a trace and store it as Parquet
    Import(ImportArgs),
    /// Print counts, users, demands, durations and mean use of a workload
    Describe(DescribeArgs),
    /// Generate a workload that resembles a public trace
    Generate(GenerateArgs),
    /// Write a workload in another program's format
    Export(ExportArgs),
    /// List the formats that --from takes, with a line each
    Formats,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Files, archives, folders of shards, or - for standard input; gzip, zstd, bzip2 and xz are unpacked
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The Parquet file to write
    #[arg(long, short, value_name = "W.parquet", value_parser = file_to_write())]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DescribeArgs {
    /// Workload (Parquet), or a trace in any importable format
    pub(crate) workload: PathBuf,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Print times in seconds
    #[arg(long)]
    pub(crate) seconds: bool,
    /// Also draw the description: a folder for SVG figures and their data
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    /// Trace that the workload resembles: google2011 or metacentrum
    #[arg(long, default_value = "google2011")]
    pub(crate) like: TraceModel,
    /// Number of tasks
    #[arg(long, default_value_t = 200_000)]
    pub(crate) tasks: u64,
    /// Number of users
    #[arg(long, default_value_t = 100)]
    pub(crate) users: u32,
    /// Number of days over which tasks are submitted
    #[arg(long, default_value_t = 29.0)]
    pub(crate) days: f64,
    /// Memory that may be used, such as 8Gi [default: 80 % of what is free, or of what limits leave]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// The Parquet file to write
    #[arg(long, short, value_name = "W.parquet", value_parser = file_to_write())]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Workload (Parquet), or a trace in any importable format
    pub(crate) workload: PathBuf,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Format to write: sdrf-csv, swf or evalys-csv (Batsim's jobs.csv)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: ExportFormat,
    /// The file to write, or - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}
