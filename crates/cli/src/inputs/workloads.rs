//! Workloads: stored ones, and traces to import.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use evenhand_model::Workload;
use evenhand_workload::import::{
    Format as TraceFormat, ImportOptions, ImportSummary, ImportToFileError, Imported, JobId, MemoryPer, MemoryUnit,
    Processors, import_to_file, import_with_progress,
};
use evenhand_workload::store::{self, StoreError};
use evenhand_workload::{Progress, Source};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Common, TraceArgs};
use crate::failure::Failure;
use crate::inputs::memory::{check_workload, memory_limit};
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
    let (workload, imported) = read_or_import(path, trace, common, console)?;
    Ok((workload, imported.map(|imported| imported.summary)))
}

/// Reads a workload as [`read_workload`] does, and the ids by which its source calls the jobs, if it has any.
#[cfg(feature = "analysis")]
pub(crate) fn read_workload_with_ids(
    path: &Path,
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, Vec<JobId>), Failure> {
    let (workload, imported) = read_or_import(path, trace, common, console)?;
    Ok((workload, imported.map_or(Vec::new(), |imported| imported.job_ids)))
}

/// What an import has beside the workload.
struct OfImport {
    summary: String,
    #[cfg_attr(not(feature = "analysis"), expect(dead_code, reason = "questions about single jobs ask for them"))]
    job_ids: Vec<JobId>,
}

fn read_or_import(
    path: &Path,
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<(Workload, Option<OfImport>), Failure> {
    // A Parquet file is a stored workload, unless its columns are, or are declared to be, those of a public trace.
    let of_trace = trace.from != TraceFormat::Auto || trace.csv_columns.is_some();
    // A file that is called - is not read: - is standard input.
    let is_file = Source::from_argument(path) != Source::Stdin;
    let mut lacks_column = None;
    if is_file && store::is_parquet(path) && !of_trace {
        check_rows(path, trace)?;
        match store::read(path) {
            Ok(workload) => {
                note_without_effect(path, trace, console);
                return Ok((stored_amounts(workload, path, trace, console)?, None));
            }
            Err(e @ StoreError::MissingColumn { .. }) => lacks_column = Some(e),
            Err(e) => return Err(stored_failure(&e)),
        }
    }
    let imported = import_files(std::slice::from_ref(&path.to_path_buf()), trace, common, console);
    let imported = match lacks_column {
        Some(error) => imported.map_err(|_| stored_failure(&error))?,
        None => imported?,
    };
    let summary = imported.summary.to_string();
    console.note(&summary);
    Ok((imported.workload, Some(OfImport { summary, job_ids: imported.job_ids })))
}

/// Prints a note on options that change how a log is read, of a stored workload. Options that only permit deviations are
/// not named: they change nothing of a log without deviations either.
fn note_without_effect(path: &Path, trace: &TraceArgs, console: &Console) {
    let of_memory = trace.memory_matters;
    let given = [
        ("--columns", trace.columns.is_some()),
        ("--swf-memory-unit", of_memory && trace.swf_memory_unit != MemoryUnit::default()),
        ("--swf-memory-per", of_memory && trace.swf_memory_per != MemoryPer::default()),
    ];
    let given: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect();
    if !given.is_empty() {
        let (verb, whose) = if given.len() == 1 { ("changes", "it says") } else { ("change", "they say") };
        console.note(&format!(
            "{} {verb} nothing: {} is a stored workload, and {whose} how a log is read; to read the log otherwise, import \
             it again.",
            given.join(" and "),
            path.display()
        ));
    }
}

/// Checks that a stored workload fits in memory, by the number of its rows.
fn check_rows(path: &Path, trace: &TraceArgs) -> Result<(), Failure> {
    let rows = store::rows(path).map_err(|e| stored_failure(&e))?;
    check_workload(&path.display().to_string(), rows, memory_limit(trace.memory))
}

/// Returns a stored workload whose tasks hold the amounts that the command line asks for.
fn stored_amounts(workload: Workload, path: &Path, trace: &TraceArgs, console: &Console) -> Result<Workload, Failure> {
    if trace.processors == Processors::Requested && workload.rows_with_requested_amounts() == 0 {
        console.note(&format!(
            "{} keeps no requested amounts apart, so --processors requested changes nothing; if its log states other \
             amounts, import the log again",
            path.display()
        ));
    }
    trace.processors.of(workload).map_err(|e| Failure::input(format!("{}: {e}", path.display())))
}

fn stored_failure(error: &StoreError) -> Failure {
    let environment = matches!(error, StoreError::Io { source, .. } if source.kind() != io::ErrorKind::NotFound);
    Failure::new(error, environment)
}

/// Imports a trace of several files to a workload file, with progress. The trace may be larger than memory.
pub(crate) fn import_to(
    output: &Path,
    inputs: &[PathBuf],
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<ImportSummary, Failure> {
    with_progress(inputs, trace, common, console, |sources, options, report| {
        import_to_file(sources, options, output, report).map_err(|e| match e {
            ImportToFileError::Import(e) => Failure::new(&e, e.is_environment()),
            ImportToFileError::Store(e) => Failure::new(&e, matches!(e, StoreError::Io { .. })),
        })
    })
}

fn import_files(
    inputs: &[PathBuf],
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
) -> Result<Imported, Failure> {
    with_progress(inputs, trace, common, console, |sources, options, report| {
        import_with_progress(sources, options, report).map_err(|e| Failure::new(&e, e.is_environment()))
    })
}

/// Imports with the options of the command line, and shows the progress.
fn with_progress<T>(
    inputs: &[PathBuf],
    trace: &TraceArgs,
    common: &Common,
    console: &Console,
    import: impl FnOnce(&[Source], &ImportOptions, &(dyn Fn(Progress) + Sync)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let sources: Vec<Source> = inputs.iter().map(Source::from_argument).collect();
    for pipe in inputs.iter().filter(|path| is_pipe(path)) {
        console.note(&format!("{} is a pipe; reading it waits for what writes to it.", pipe.display()));
    }
    let options = ImportOptions {
        format: trace.from,
        lenient: trace.lenient,
        relaxed: trace.relaxed,
        swf_memory_unit: trace.swf_memory_unit,
        swf_memory_per: trace.swf_memory_per,
        memory_matters: trace.memory_matters,
        processors: trace.processors,
        csv_columns: trace.csv_columns.clone(),
        columns: trace.columns.clone(),
        threads: common.threads,
        memory: Some(memory_limit(trace.memory)),
        max_unpacked: trace.max_unpacked,
        ..ImportOptions::default()
    };
    let bar = if console.shows_progress() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}") {
        bar.set_style(style);
    }
    let imported = import(&sources, &options, &|progress: Progress| {
        bar.set_length(progress.total.unwrap_or(progress.read));
        bar.set_position(progress.read);
    });
    bar.finish_and_clear();
    imported
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Stores a workload as Parquet.
pub(crate) fn store_workload(path: &Path, workload: &Workload) -> Result<(), Failure> {
    store::write(path, workload).map_err(|e| Failure::new(&e, matches!(e, StoreError::Io { .. })))
}
