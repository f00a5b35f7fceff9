//! Workloads: stored ones, and traces to import.

use std::io;
use std::path::{Path, PathBuf};

use evenhand_model::Workload;
use evenhand_workload::Source;
use evenhand_workload::import::{Format as TraceFormat, ImportOptions, ImportSummary, Imported, import_with_progress};
use evenhand_workload::store;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Common, TraceArgs};
use crate::failure::Failure;
use crate::output::console::Console;

/// Reads a stored workload, or imports a trace and prints a note with the assumptions.
pub(crate) fn read_workload(
    path: &Path,
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<Workload, Failure> {
    Ok(read_workload_with_summary(path, trace, common, console)?.0)
}

/// Does the same; also returns a summary of the import, if the workload was imported.
pub(crate) fn read_workload_with_summary(
    path: &Path,
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, Option<String>), Failure> {
    // A Parquet file is a stored workload, unless its columns are said to be, or are, those of a public trace.
    let of_trace = trace.from != TraceFormat::Auto || trace.csv_columns.is_some();
    if store::is_parquet(path) && !of_trace {
        match store::read(path) {
            Ok(workload) => return Ok((workload, None)),
            Err(e @ store::StoreError::MissingColumn { .. }) => {
                let imported = import_trace(&[path.to_path_buf()], trace, common, console);
                let (workload, summary) = imported.map_err(|_| stored_failure(&e))?;
                console.note(&summary.to_string());
                return Ok((workload, Some(summary.to_string())));
            }
            Err(e) => return Err(stored_failure(&e)),
        }
    }
    let (workload, summary) = import_trace(std::slice::from_ref(&path.to_path_buf()), trace, common, console)?;
    console.note(&summary.to_string());
    Ok((workload, Some(summary.to_string())))
}

fn stored_failure(error: &store::StoreError) -> Failure {
    let environment = matches!(error, store::StoreError::Io { source, .. } if source.kind() != io::ErrorKind::NotFound);
    Failure::new(error, environment)
}

/// Imports a trace of several files, with progress.
pub(crate) fn import_trace(
    inputs: &[PathBuf],
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, ImportSummary), Failure> {
    let imported = import_files(inputs, trace, common, console)?;
    Ok((imported.workload, imported.summary))
}

/// Reads a workload as [`read_workload`] does, and the numbers by which its source calls the jobs, if it has any.
pub(crate) fn read_numbered_workload(
    path: &Path,
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, Vec<u64>), Failure> {
    if store::is_parquet(path) {
        return Ok((store::read(path).map_err(|e| stored_failure(&e))?, Vec::new()));
    }
    let imported = import_files(std::slice::from_ref(&path.to_path_buf()), trace, common, console)?;
    console.note(&imported.summary.to_string());
    Ok((imported.workload, imported.job_numbers))
}

fn import_files(
    inputs: &[PathBuf],
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<Imported, Failure> {
    let sources: Vec<Source> = inputs.iter().map(Source::from_argument).collect();
    let options = ImportOptions {
        format: trace.from,
        lenient: trace.lenient,
        relaxed: trace.relaxed,
        swf_memory_unit: trace.swf_memory_unit,
        swf_memory_per: trace.swf_memory_per,
        processors: trace.processors,
        csv_columns: trace.csv_columns.clone(),
        columns: trace.columns.clone(),
        threads: common.threads,
    };
    let bar = if console.shows_progress() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}") {
        bar.set_style(style);
    }
    let imported = import_with_progress(&sources, &options, &|progress| {
        bar.set_length(progress.total.unwrap_or(progress.read));
        bar.set_position(progress.read);
    });
    bar.finish_and_clear();
    imported.map_err(|e| Failure::new(&e, e.is_environment()))
}

/// Stores a workload as Parquet.
pub(crate) fn store_workload(path: &Path, workload: &Workload) -> Result<(), Failure> {
    store::write(path, workload).map_err(|e| Failure::new(&e, matches!(e, store::StoreError::Io { .. })))
}
