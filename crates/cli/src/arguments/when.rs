//! Arguments of `evenhand when`, and those that verbs about a log share.

use std::path::PathBuf;

use clap::Args;
use evenhand_workload::import::{CsvColumns, Format as TraceFormat, MemoryPer, MemoryUnit};

use super::TraceArgs;

/// A log with starts. The options that others call `--from` are named differently here, where `--from` is a time.
#[derive(Args, Debug)]
pub(crate) struct LogArgs {
    /// Log of a site with the starts of its jobs: a workload (Parquet), or a trace in any importable format
    #[arg(long, value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Format of the log: auto, swf, sacct, batsim or csv
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
            relaxed: true,
            swf_memory_unit: MemoryUnit::B,
            swf_memory_per: MemoryPer::Job,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct WhenArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Forecast each job of a past period as it stood at its submission, and report how good the forecasts were
    #[arg(long, required = true)]
    pub(crate) calibrate: bool,
    /// First submission: seconds of the log, a date or time in UTC (2026-01-31, 2026-01-31T12:00), or a time before the
    /// last submission (30d) [default: 28d]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<String>,
    /// End of the period, in the same forms (default: after the last submission)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<String>,
}
