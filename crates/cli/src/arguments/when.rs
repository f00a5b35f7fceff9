//! Arguments of `evenhand when`, and those that verbs about a log share.

use std::path::PathBuf;

use clap::Args;
use evenhand_workload::import::{CsvColumns, Format as TraceFormat, MemoryPer, MemoryUnit, Processors};

use super::{Release, TraceArgs};

/// A log with starts. The options that others call `--from` are named differently here, where `--from` is a time.
#[derive(Args, Debug)]
pub(crate) struct LogArgs {
    /// Log of a site with the starts of its jobs: a workload (Parquet), or a trace in any importable format
    #[arg(long, value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Format of the log, as `evenhand workload formats` lists them
    #[arg(long, default_value = "auto", value_name = "FORMAT")]
    pub(crate) log_format: TraceFormat,
    /// Count and skip malformed rows instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Columns of any table with a header: submit=created,end=done,start=begun,cpu=cores
    #[arg(long, value_name = "FIELD=COLUMN,…")]
    pub(crate) csv_columns: Option<CsvColumns>,
    /// Accepted as elsewhere; logs that deviate from SWF are always read here, and deviations counted
    #[arg(long, hide = true)]
    relaxed: bool,
}

impl LogArgs {
    /// Returns the options of reading the log. Memory does not matter here, so that its unit does not either.
    pub(crate) fn trace(&self) -> TraceArgs {
        TraceArgs {
            from: self.log_format,
            lenient: self.lenient,
            csv_columns: self.csv_columns.clone(),
            columns: None,
            relaxed: true,
            swf_memory_unit: MemoryUnit::B,
            swf_memory_per: MemoryPer::Job,
            memory_matters: false,
            processors: Processors::default(),
            memory: None,
            max_unpacked: None,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct WhenArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Forecast each job of a past period as it stood at its submission, and report how good the forecasts were
    #[arg(long, conflicts_with_all = ["shape", "job", "at", "user", "queue", "capacity"])]
    pub(crate) calibrate: bool,
    /// Job that could be submitted: how many times how much of the first resource, and a wall time: 4x16cpu,2h. Several times:
    /// which starts first
    #[arg(long, value_name = "SHAPE")]
    pub(crate) shape: Vec<String>,
    /// Job of the log, by its id there (4711, 100_2): how much longer it waits
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    pub(crate) job: Vec<String>,
    /// Instant of the forecast, in the forms of --from [default: the last submission; for one --job, its submission]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// User who would submit the shapes [default: one who is not in the log]
    #[arg(long, value_name = "NAME", requires = "shape")]
    pub(crate) user: Option<String>,
    /// Queue of the shapes [default: that of the latest job of that user, or of anyone]
    #[arg(long, value_name = "NAME", requires = "shape")]
    pub(crate) queue: Option<String>,
    /// How much of the first resource the site has; larger shapes are refused [default: MaxProcs of the log's header, else
    /// MaxNodes, else the most in use at once]
    #[arg(long, value_name = "NUMBER", requires = "shape", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capacity: Option<u32>,
    /// From when on jobs wait: from their submission, or from when they became eligible in the log, after dependencies, holds
    /// and begin times; the other options then count these instants as submissions [default: submit]
    #[arg(long, value_enum, value_name = "TIME")]
    pub(crate) release: Option<Release>,
    /// First submission: seconds of the log, a date or time in UTC (2026-01-31, 2026-01-31T12:00), or a time before the
    /// last submission (30d) [default: 28 days before the end of the period]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "calibrate")]
    pub(crate) from: Option<String>,
    /// End of the period, in the same forms [default: after the last submission]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "calibrate")]
    pub(crate) to: Option<String>,
}
