//! Options of verbs that read traces.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use evenhand_workload::import::{CsvColumns, Format as TraceFormat, MemoryPer, MemoryUnit, Processors};

use super::named_value::size;

/// Parses the name of a format, and lists all for the completions of shells.
fn trace_format() -> impl TypedValueParser<Value = TraceFormat> {
    let names = PossibleValuesParser::new(TraceFormat::ALL.iter().map(|format| format.name()));
    names.try_map(|name| name.parse::<TraceFormat>())
}

/// Options that determine how a trace is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceArgs {
    /// Format of the trace: auto recognises it by its content; `evenhand workload formats` lists all
    #[arg(long, default_value = "auto", value_name = "FORMAT", value_parser = trace_format(), hide_possible_values = true)]
    pub(crate) from: TraceFormat,
    /// Count and skip malformed rows instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Columns of any table with a header. Fields: submit, start, end, duration, wait, requested, user, account, queue,
    /// count, nodes, per_node; every other field is a resource, with its unit: submit=created,end=done,start=begun,cpu=cores*0.001
    #[arg(long, value_name = "FIELD=COLUMN,…")]
    pub(crate) csv_columns: Option<CsvColumns>,
    /// Columns of sacct output or another table without a header line, in their order: JobID,User,Account,…
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// SWF: accept decimals, more than 18 columns and any order of job numbers
    #[arg(long)]
    pub(crate) relaxed: bool,
    /// SWF: unit of memory fields: B, KB or MB
    #[arg(long, default_value = "KB", value_name = "UNIT")]
    pub(crate) swf_memory_unit: MemoryUnit,
    /// SWF: what memory fields refer to: processor, node or job
    #[arg(long, default_value = "processor", value_name = "WHAT")]
    pub(crate) swf_memory_per: MemoryPer,
    /// Whether the two options before were for the user to give
    #[arg(skip = true)]
    pub(crate) memory_matters: bool,
    /// SWF, sacct, Slurm's JSON, PBS, tables with both, and workloads stored from them: which processors count, those that
    /// jobs were allocated or those that they requested
    #[arg(long, default_value = "allocated", value_name = "WHICH")]
    pub(crate) processors: Processors,
    /// Memory that may be used, such as 8Gi [default: 80 % of what is free, or of what limits leave]; a workload that needs
    /// more is refused, and a study starts fewer runs at a time
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// Text that one compressed file may hold, such as 20Gi [default: 200 times the file's size, at least 1Gi]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_unpacked: Option<u64>,
}
