//! A site's trace, in the format it has, to a [`Workload`].
//!
//! Each format is one file that turns the lines of one stream into tasks of a
//! [`WorkloadBuilder`]; streams are read in parallel, one a worker, and added up in the order of
//! their names, so that the result does not depend on the number of threads. Google's trace has
//! state that crosses files, see `google2011`.
//!
//! Nothing is guessed silently: what is dropped is counted by reason, what is assumed is a
//! sentence in the [`ImportSummary`], and what is malformed is an error that names its place.

use std::num::NonZeroUsize;

use evenhand_model::{Workload, WorkloadBuilder, WorkloadError};
use rayon::prelude::*;

use crate::input::{Meter, Progress, Shard, Source};

mod batsim;
mod csv;
mod detect;
mod error;
mod google2011;
mod names;
pub(crate) mod number;
mod rows;
mod sacct;
mod sdrf_csv;
mod summary;
mod swf;

pub use csv::{CsvColumns, CsvColumnsError};
pub use error::{ImportError, RowError};
pub use names::{Format, MemoryPer, MemoryUnit, ParseNameError};
pub use summary::ImportSummary;

use summary::Tally;

/// How to import. The default detects the format and accepts nothing malformed.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The trace's format.
    pub format: Format,
    /// Count and skip malformed rows instead of failing on the first.
    pub lenient: bool,
    /// Accept SWF logs that bend the standard: decimals, more columns, any job order.
    pub relaxed: bool,
    /// What the memory fields of an SWF log count.
    pub swf_memory_unit: MemoryUnit,
    /// What the memory fields of an SWF log are for.
    pub swf_memory_per: MemoryPer,
    /// What the columns of a table are.
    pub csv_columns: Option<CsvColumns>,
    /// Threads to read with; as many as rayon likes when absent. The result is the same.
    pub threads: Option<NonZeroUsize>,
}

/// A trace as a workload, and what became of it on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The tasks.
    pub workload: Workload,
    /// What was read, kept, dropped and assumed.
    pub summary: ImportSummary,
}

/// Imports the trace that `sources` hold together.
///
/// ```
/// use evenhand_workload::Source;
/// use evenhand_workload::import::{ImportOptions, import};
///
/// let log = "; MaxProcs: 64\n1 0 5 10 4 -1 -1 4 60 -1 1 7 1 -1 1 -1 -1 -1\n2 3 0 -1 4 -1 -1 4 60 -1 0 7 1 -1 1 -1 -1 -1\n";
/// let source = Source::Bytes { name: "log.swf".to_string(), data: log.as_bytes().to_vec() };
/// let imported = import(&[source], &ImportOptions::default()).unwrap();
/// assert_eq!(imported.workload.users(), ["7"]);
/// assert_eq!(imported.summary.dropped, [("without a known run time".to_string(), 1)]);
/// ```
///
/// # Errors
/// If a source cannot be read, is damaged, has a malformed row (unless `lenient`), or nothing is
/// left; every [`ImportError`] is a sentence with the place and the remedy.
pub fn import(sources: &[Source], options: &ImportOptions) -> Result<Imported, ImportError> {
    run(sources, options, None)
}

/// As [`import`], and calls `tell` from the reading threads now and then.
///
/// # Errors
/// As [`import`].
pub fn import_with_progress(
    sources: &[Source],
    options: &ImportOptions,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Imported, ImportError> {
    run(sources, options, Some(tell))
}

fn run(
    sources: &[Source],
    options: &ImportOptions,
    tell: Option<&(dyn Fn(Progress) + Sync)>,
) -> Result<Imported, ImportError> {
    let Some(threads) = options.threads else { return read(sources, options, tell) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
    let pool = pool.map_err(|e| ImportError::Threads { threads: threads.get(), detail: e.to_string() })?;
    pool.install(|| read(sources, options, tell))
}

fn read(
    sources: &[Source],
    options: &ImportOptions,
    tell: Option<&(dyn Fn(Progress) + Sync)>,
) -> Result<Imported, ImportError> {
    let mut shards = Shard::of(sources, options.format.extensions())?;
    let files = shards.len();
    let first = shards.first_mut().ok_or(ImportError::NoSource)?;
    let format = match options.format {
        // Who says what the columns are says that it is a table.
        Format::Auto if options.csv_columns.is_some() => Format::Csv,
        Format::Auto => detect::detect(&first.name.clone(), &first.head()?)?,
        known => known,
    };
    let meter = Meter::new(tell, &shards);
    let part = match format {
        Format::Google2011 => google2011::read(shards, options, &meter)?,
        Format::Swf => each(shards, |shard| swf::read(shard, options, &meter))?,
        Format::SdrfCsv => each(shards, |shard| sdrf_csv::read(shard, options, &meter))?,
        Format::Csv => each(shards, |shard| csv::read(shard, options, &meter))?,
        Format::Sacct => each(shards, |shard| sacct::read(shard, options, &meter))?,
        Format::Batsim | Format::Auto => each(shards, |shard| batsim::read(shard, options, &meter))?,
    };
    let Part { mut builder, tally } = part;
    let assumptions = match format {
        Format::Swf => swf::assumptions(&mut builder, &tally, options),
        Format::Google2011 => google2011::assumptions(&tally),
        Format::SdrfCsv => sdrf_csv::assumptions(&tally),
        Format::Csv => csv::assumptions(&tally),
        Format::Sacct => sacct::assumptions(&mut builder, &tally),
        Format::Batsim | Format::Auto => batsim::assumptions(&tally),
    };
    let dropped = tally.dropped.0.into_iter().map(|(reason, n)| (reason.into_owned(), n)).collect();
    let mut summary = ImportSummary { format, files, rows_read: tally.rows_read, tasks: 0, dropped, assumptions };
    match builder.finish() {
        Ok(workload) => {
            summary.tasks = workload.tasks();
            Ok(Imported { workload, summary })
        }
        Err(WorkloadError::Empty) => Err(ImportError::NothingLeft(Box::new(summary))),
        Err(e) => Err(e.into()),
    }
}

/// The tasks of one stream, or of several added up.
struct Part {
    builder: WorkloadBuilder,
    tally: Tally,
}

/// Reads every shard on its own, in parallel, and adds them up in their order; of several errors
/// the first in that order is the one reported.
fn each(
    shards: Vec<Shard>,
    read: impl Fn(Shard) -> Result<Part, ImportError> + Sync + Send,
) -> Result<Part, ImportError> {
    let parts: Vec<_> = shards.into_par_iter().map(read).collect();
    let mut parts = parts.into_iter();
    let mut sum = parts.next().ok_or(ImportError::NoSource)??;
    for part in parts {
        let part = part?;
        sum.builder.append(part.builder);
        sum.tally.merge(part.tally);
    }
    Ok(sum)
}

/// `"1 row"`, `"2 rows"`.
fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
