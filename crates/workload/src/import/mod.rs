//! Imports traces of several formats to a [`Workload`].
//!
//! The reader of each format converts the lines of one stream to tasks of a [`WorkloadBuilder`]. Streams are read in
//! parallel, one per worker, and appended in the order of their names, so that the result does not depend on the number
//! of threads. Google's trace has state that crosses files, see `google2011`; files of Slurm's accounting have jobs in common,
//! see `each_beside_others`.
//!
//! Every deviation is reported: dropped rows are counted by reason, each assumption is a sentence of the
//! [`ImportSummary`], and a malformed row is an error with its place.

use std::num::NonZeroUsize;

use evenhand_model::memory::MemoryLimit;
use evenhand_model::{Overflow, Resource, Workload, WorkloadBuilder, WorkloadError, counted};
use rayon::prelude::*;

use crate::byte_source::{Meter, Progress, Shard, Source};
#[cfg(feature = "formats")]
use crate::store;

mod accounting;
mod batsim;
mod csv;
mod detect_format;
mod error;
mod format;
mod google2011;
mod google2019;
mod import_to_file;
mod job_id;
mod lines;
mod node_request;
mod nodes_stated;
mod other_files;
pub(crate) mod parse_number;
mod parse_time;
mod public_traces;
mod repeated_jobs;
mod sacct;
mod sdrf_csv;
mod summary;
mod swf;
mod trace_parts;

pub use csv::{AttributeKind, CsvColumns, CsvColumnsError, TaskTable, TaskTableError};
pub use error::{ImportError, RowError};
pub use format::{Format, MemoryPer, MemoryUnit, ParseNameError, Processors};
pub use import_to_file::{ImportToFileError, import_to_file};
pub use job_id::{IdMatch, JobId};
pub use other_files::is_slurm_configuration;
pub use summary::ImportSummary;

use nodes_stated::NodesStated;
use repeated_jobs::OtherFiles;
use summary::Tally;

/// Options of an import. The default detects the format and rejects malformed rows.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format of the trace.
    pub format: Format,
    /// Whether malformed rows are skipped and counted; otherwise the first is an error.
    pub lenient: bool,
    /// Whether SWF logs may deviate from the standard: decimals, more columns, any order of jobs.
    pub relaxed: bool,
    /// The unit of the memory fields of an SWF log.
    pub swf_memory_unit: MemoryUnit,
    /// What the memory fields of an SWF log refer to: a processor, a node or the job.
    pub swf_memory_per: MemoryPer,
    /// Whether the caller asked for these two; else they only keep large amounts from being errors, in any format.
    pub memory_matters: bool,
    /// Which amounts jobs hold, of logs that have both. With [`Processors::Allocated`] the workload keeps the requested
    /// ones apart, see [`Workload::requested_amounts`].
    pub processors: Processors,
    /// The meaning of the columns of a CSV table.
    pub csv_columns: Option<CsvColumns>,
    /// The names of the columns of a table without a header line, in their order.
    pub columns: Option<Vec<String>>,
    /// The number of threads; `None` leaves it to rayon. The result does not depend on it.
    pub threads: Option<NonZeroUsize>,
    /// The memory that the tasks may take; `None` is no limit.
    pub memory: Option<MemoryLimit>,
    /// The text that one compressed stream may hold, in bytes; `None` is 200 times its own size, and at least 1 GiB.
    pub max_unpacked: Option<u64>,
    /// Where tasks go that do not fit in memory. [`import_to_file()`] sets it; the other functions expect none.
    pub overflow: Option<Overflow>,
}

impl ImportOptions {
    /// Returns a builder for the tasks of one stream.
    fn builder(&self, resources: impl IntoIterator<Item = Resource>) -> WorkloadBuilder {
        let builder = WorkloadBuilder::new(resources);
        match &self.overflow {
            Some(overflow) => builder.with_overflow(overflow.clone()),
            None => builder,
        }
    }
}

/// An imported workload with its summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The tasks.
    pub workload: Workload,
    /// The counts of rows read, kept and dropped, and the assumptions.
    pub summary: ImportSummary,
    /// The id by which the source calls the job of each row, in the order of the workload's rows. Empty for formats without
    /// ids.
    pub job_ids: Vec<JobId>,
}

/// Imports the trace that `sources` hold together. Takes time proportional to its size.
///
/// ```
/// use evenhand_workload::Source;
/// use evenhand_workload::import::{ImportOptions, import};
///
/// let log = "; MaxProcs: 64\n1 0 5 10 4 -1 -1 4 60 -1 1 7 1 -1 1 -1 -1 -1\n2 3 0 -1 4 -1 -1 4 60 -1 0 7 1 -1 1 -1 -1 -1\n";
/// let source = Source::Bytes { name: "log.swf".to_string(), data: log.as_bytes().to_vec() };
/// let imported = import(&[source], &ImportOptions::default()).unwrap();
/// assert_eq!(imported.workload.users(), ["7"]);
/// assert_eq!(imported.summary.dropped, [("unknown run time".to_string(), 1)]);
/// ```
///
/// # Errors
/// Returns an error if a source cannot be read or is damaged, if a row is malformed (unless `lenient`), or if no task
/// is left. Every [`ImportError`] prints the place, what was found and expected, and a remedy.
pub fn import(sources: &[Source], options: &ImportOptions) -> Result<Imported, ImportError> {
    run(sources, options, None)
}

/// Imports a trace as [`import`] does, and calls `report` from the reading threads with the progress.
///
/// # Errors
/// Returns an error as [`import`] does.
pub fn import_with_progress(
    sources: &[Source],
    options: &ImportOptions,
    report: &(dyn Fn(Progress) + Sync),
) -> Result<Imported, ImportError> {
    run(sources, options, Some(report))
}

fn run(
    sources: &[Source],
    options: &ImportOptions,
    report: Option<&(dyn Fn(Progress) + Sync)>,
) -> Result<Imported, ImportError> {
    let options = &ImportOptions { overflow: None, ..options.clone() };
    in_pool(options, || read(sources, options, report)?.finish())
}

fn in_pool<T: Send>(
    options: &ImportOptions,
    read: impl FnOnce() -> Result<T, ImportError> + Send,
) -> Result<T, ImportError> {
    let Some(threads) = options.threads else { return read() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
    let pool = pool.map_err(|e| ImportError::Threads { threads: threads.get(), detail: e.to_string() })?;
    pool.install(read)
}

fn read(
    sources: &[Source],
    options: &ImportOptions,
    report: Option<&(dyn Fn(Progress) + Sync)>,
) -> Result<ReadRows, ImportError> {
    let mut shards = Shard::of(sources, options.format.extensions())?;
    let aside = trace_parts::set_aside(&mut shards);
    let files = shards.len();
    let first = shards.first_mut().ok_or(ImportError::NoSource)?;
    let name = first.name.clone();
    let (format, head) = match options.format {
        // Columns are defined only for CSV tables.
        Format::Auto if options.csv_columns.is_some() => (Format::Csv, None),
        Format::Auto => {
            let head = first.head()?;
            match head.starts_with(b"PAR1") {
                true => (format_of_parquet(first)?, None),
                false => (detect_format::detect(&name, &head, options)?, None),
            }
        }
        // The head of a stream that cannot be read here fails below.
        known => (known, first.head().ok()),
    };
    if head.as_ref().is_some_and(|head| head.starts_with(b"PAR1")) && !format.may_be_parquet() {
        return Err(ImportError::Shape {
            file: name,
            found: "a Parquet file".to_string(),
            expected: format.description().to_string(),
            remedy: "leave --from out, or name the format of the table".to_string(),
        });
    }
    refuse_unused(format, options)?;
    let aside = trace_parts::sentences(aside, format)?;
    trace_parts::refuse_repeated(&mut shards, format)?;
    let in_memory = ImportOptions { overflow: None, ..options.clone() };
    let options = if format.can_overflow() { options } else { &in_memory };
    let meter = Meter::new(report, &shards, options);
    if format.is_line_per_task() {
        meter.check_before_reading(&mut shards)?;
    }
    let part = read_as(format, shards, options, &meter);
    // A file of another format than the one that was named: naming its own helps more than its first malformed row.
    let other = |head: Vec<u8>| detect_format::detect(&name, &head, options).ok().filter(|found| *found != format);
    let part = match part {
        Err(error @ (ImportError::Row(_) | ImportError::Shape { .. } | ImportError::LongLine { .. })) => {
            return Err(match head.and_then(other) {
                Some(found) => ImportError::OtherFormat { file: name, found, named: format },
                None => error,
            });
        }
        part => part?,
    };
    let Part { mut builder, mut tally } = part;
    // Stable, as the builder sorts rows.
    tally.job_ids.sort_by_key(|(submit, _)| *submit);
    let job_ids: Vec<JobId> = std::mem::take(&mut tally.job_ids).into_iter().map(|(_, id)| id).collect();
    let job_ids = if job_ids.iter().any(JobId::is_known) { job_ids } else { Vec::new() };
    let mut assumptions = assumptions(format, &mut builder, &tally, options);
    assumptions.extend(aside);
    assumptions.extend(tally.keys.sentence(format.remedy_for_repeated_jobs()));
    let dropped = tally.dropped.0.into_iter().map(|(reason, n)| (reason.into_owned(), n)).collect();
    let summary = ImportSummary { format, files, rows_read: tally.rows_read, tasks: 0, dropped, assumptions };
    Ok(ReadRows { name, builder, summary, job_ids })
}

/// Rejects an option that does nothing for the format. `lenient` and `relaxed` only permit, and are never refused.
fn refuse_unused(format: Format, options: &ImportOptions) -> Result<(), ImportError> {
    let table = format == Format::Csv || csv::Preset::of(format).is_some();
    let is_swf = format == Format::Swf;
    let matters = options.memory_matters && !is_swf;
    let of_swf = "a log in the Standard Workload Format";
    let unused = [
        ("--swf-memory-unit", options.swf_memory_unit != MemoryUnit::default() && matters, of_swf),
        ("--swf-memory-per", options.swf_memory_per != MemoryPer::default() && matters, of_swf),
        (
            "--processors",
            options.processors != Processors::default()
                && !format.has_requested_amounts()
                && !csv::has_requested_amounts(format, options),
            "a log in the Standard Workload Format, output of sacct, a log of PBS, or a table with requested amounts \
             (--csv-columns cpu=COLUMN,cpu_requested=COLUMN)",
        ),
        (
            "--columns",
            options.columns.is_some() && !table && format != Format::Sacct && format != Format::Google2019,
            "a text with columns: output of sacct or a table",
        ),
        (
            "--csv-columns",
            options.csv_columns.is_some() && format != Format::Csv,
            "a table without --from, or with --from csv",
        ),
    ];
    match unused.into_iter().find(|(_, is_unused, _)| *is_unused) {
        Some((option, _, expected)) => Err(ImportError::UnusedOption { option, found: format, expected }),
        None => Ok(()),
    }
}

/// Returns the name of a trace of several streams for messages, by its first.
fn file_of(first: &str, files: usize) -> String {
    match files.saturating_sub(1) as u64 {
        0 => first.to_string(),
        more => format!("{first} and {}", counted(more, "more file", "more files")),
    }
}

/// What was read of all streams, before it is sorted.
pub(super) struct ReadRows {
    /// The name of the first stream.
    name: String,
    builder: WorkloadBuilder,
    summary: ImportSummary,
    job_ids: Vec<JobId>,
}

impl ReadRows {
    fn finish(self) -> Result<Imported, ImportError> {
        let ReadRows { name, builder, mut summary, job_ids } = self;
        match builder.finish() {
            Ok(workload) => {
                let mut stated = NodesStated::default();
                stated.add(&workload);
                summary.tasks = workload.tasks();
                summary.assumptions.extend(stated.sentences());
                Ok(Imported { workload, summary, job_ids })
            }
            Err(cause) => Err(no_workload(cause, &name, summary)),
        }
    }
}

/// Returns the error that the rows of files, the first of which has this name, form no workload.
fn no_workload(cause: WorkloadError, name: &str, summary: ImportSummary) -> ImportError {
    let file = file_of(name, summary.files);
    match cause {
        WorkloadError::Empty => ImportError::NothingLeft { file, summary: Box::new(summary) },
        cause => ImportError::Workload { file, cause },
    }
}

#[cfg(not(feature = "formats"))]
fn format_of_parquet(shard: &mut Shard) -> Result<Format, ImportError> {
    Err(ImportError::not_built(&shard.name, "a Parquet file"))
}

/// Returns the public trace whose columns a Parquet file has.
#[cfg(feature = "formats")]
fn format_of_parquet(shard: &mut Shard) -> Result<Format, ImportError> {
    let data = shard.whole()?;
    let columns = csv::columns_of_parquet(&shard.name, &data)?;
    if store::has_workload_columns(&columns) {
        let remedy = match shard.is_file() {
            true => "it needs no import: give it to a verb that takes a workload, as in evenhand study",
            false => {
                "give the path of its file to a verb that takes a workload, as in evenhand study: it is not read from standard input or a pipe"
            }
        };
        return Err(ImportError::NotATrace {
            file: shard.name.clone(),
            found: "a workload that evenhand stored".to_string(),
            remedy: remedy.to_string(),
        });
    }
    detect_format::of_columns(&columns).ok_or_else(|| ImportError::Shape {
        file: shard.name.clone(),
        found: "a Parquet file with columns of no known trace".to_string(),
        expected: "a workload that evenhand stored, or a table of a public trace".to_string(),
        remedy: "define its columns with --csv-columns".to_string(),
    })
}

fn read_as(
    format: Format,
    shards: Vec<Shard>,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Part, ImportError> {
    if let Some(preset) = csv::Preset::of(format) {
        return each(shards, |shard| csv::read_preset(shard, preset, options, meter));
    }
    let read: fn(Shard, &ImportOptions, &Meter<'_>) -> Result<Part, ImportError> = match format {
        // Its state crosses files.
        Format::Google2011 => return google2011::read(shards, options, meter),
        Format::Google2019 => return google2019::read(shards, options, meter),
        Format::AlibabaGpu2020 => return public_traces::alibaba_gpu_2020::read(shards, options, meter),
        Format::Sacct if shards.len() > 1 => {
            return each_beside_others(shards, |shard, tally| sacct::read(shard, options, meter, tally));
        }
        Format::SlurmJson if shards.len() > 1 => {
            return each_beside_others(shards, |shard, tally| {
                accounting::slurm_json::read(shard, options, meter, tally)
            });
        }
        Format::Swf => swf::read,
        Format::Frontier => public_traces::frontier::read,
        Format::Philly => public_traces::philly::read,
        Format::Supercloud => public_traces::supercloud::read,
        Format::SdrfCsv => sdrf_csv::read,
        Format::Sacct => |shard, options, meter| sacct::read(shard, options, meter, Tally::default()),
        Format::SlurmJson => {
            |shard, options, meter| accounting::slurm_json::read(shard, options, meter, Tally::default())
        }
        Format::Pbs => accounting::pbs::read,
        Format::GridEngine => accounting::grid_engine::read,
        Format::Lsf => accounting::lsf::read,
        Format::HtCondor => accounting::htcondor::read,
        Format::Oar => accounting::oar::read,
        Format::Flux => accounting::flux::read,
        Format::SlurmSimulator => accounting::slurm_simulator::read,
        Format::Batsim => batsim::read,
        // The presets of tables were read above, and the format was detected.
        _ => csv::read,
    };
    each(shards, |shard| read(shard, options, meter))
}

fn assumptions(format: Format, builder: &mut WorkloadBuilder, tally: &Tally, options: &ImportOptions) -> Vec<String> {
    let of_format = match format {
        Format::Swf => return swf::assumptions(builder, tally, options),
        Format::Google2011 => return google2011::assumptions(tally),
        Format::Google2019 => return google2019::assumptions(tally),
        Format::SdrfCsv => return sdrf_csv::assumptions(tally),
        Format::AlibabaGpu2020 => return public_traces::alibaba_gpu_2020::assumptions(tally),
        Format::Frontier => public_traces::frontier::ASSUMED,
        Format::Philly => public_traces::philly::ASSUMED,
        Format::Supercloud => public_traces::supercloud::ASSUMED,
        Format::Sacct => return sacct::assumptions(builder, tally, options),
        Format::Batsim => return batsim::assumptions(tally),
        Format::SlurmJson => accounting::slurm_json::ASSUMED,
        Format::Pbs => accounting::pbs::ASSUMED,
        Format::GridEngine => accounting::grid_engine::ASSUMED,
        Format::Lsf => accounting::lsf::ASSUMED,
        Format::HtCondor => accounting::htcondor::ASSUMED,
        Format::Oar => accounting::oar::ASSUMED,
        Format::Flux => accounting::flux::ASSUMED,
        Format::SlurmSimulator => accounting::slurm_simulator::ASSUMED,
        _ => return csv::assumptions(tally),
    };
    accounting::assumptions(builder, tally, of_format)
}

/// Returns the sentence about jobs whose start is before their submission, if there are any.
fn started_early(jobs: u64) -> Option<String> {
    match jobs {
        0 => None,
        1 => Some("1 job started before it was submitted; its start is taken as its submission.".into()),
        n => Some(format!("{n} jobs started before they were submitted; their start is taken as their submission.")),
    }
}

/// The tasks of one stream, or of several.
struct Part {
    builder: WorkloadBuilder,
    tally: Tally,
}

/// Reads every shard separately, in parallel, and appends them in their order. Of several errors, the first in that
/// order is returned.
fn each(
    shards: Vec<Shard>,
    read: impl Fn(Shard) -> Result<Part, ImportError> + Sync + Send,
) -> Result<Part, ImportError> {
    let read = |shard| {
        let mut part = read(shard)?;
        part.builder.rest();
        Ok::<Part, ImportError>(part)
    };
    let parts: Vec<_> = shards.into_par_iter().map(read).collect();
    sum_of(parts.into_iter())
}

/// Appends the parts in their order, or returns the first error.
fn sum_of(mut parts: impl Iterator<Item = Result<Part, ImportError>>) -> Result<Part, ImportError> {
    let mut sum = parts.next().ok_or(ImportError::NoSource)??;
    for part in parts {
        let part = part?;
        sum.builder.append(part.builder);
        sum.tally.merge(part.tally);
    }
    Ok(sum)
}

/// Reads every shard after those that follow it, and appends them in their order; a job that several have is kept from the
/// last. Reads them one after the other, so that what is kept does not depend on the number of threads; from the last, because
/// a later export knows more: a job that ran at the end of one has ended in the next. Of several errors, the first in the
/// order of the shards is returned, as [`each`] does.
fn each_beside_others(
    shards: Vec<Shard>,
    read: impl Fn(Shard, Tally) -> Result<Part, ImportError>,
) -> Result<Part, ImportError> {
    let mut others = OtherFiles::default();
    let mut parts = Vec::with_capacity(shards.len());
    for shard in shards.into_iter().rev() {
        let part = read(shard, Tally::beside(&others)).map(|mut part| {
            part.builder.rest();
            part.tally.keys = others.add(std::mem::take(&mut part.tally.keys));
            part
        });
        parts.push(part);
    }
    sum_of(parts.into_iter().rev())
}
