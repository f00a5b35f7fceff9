//! The axis of workloads of a sweep: reads it from the grid, estimates sizes, and loads workloads.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{AccountsFile, Digest, Prepared};
use evenhand_documents::{DocumentError, Node, Table};
use evenhand_model::Workload;
use evenhand_workload::Source;
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
use evenhand_workload::import::{Format, ImportOptions, MemoryPer, MemoryUnit, Processors, import};
use evenhand_workload::store::{self, StoreError};

use crate::sweep::grid::{axis, distinct, file};
use crate::sweep::run_point::Problem;

/// The version of readers and generators; changes when the same file or parameters give another workload, so that older
/// results become invalid.
const READING: &str = "workloads 2";

/// One workload of the grid.
#[derive(Clone, Debug)]
pub enum WorkloadAxis {
    /// A stored workload, or a trace in a format that can be imported.
    File {
        /// The path as written in the grid.
        name: String,
        /// The resolved path.
        path: PathBuf,
        /// The options of the import of a trace.
        options: Box<ImportOptions>,
    },
    /// A workload that is generated when needed.
    Generated(GenerateOptions),
}

/// The number of tasks of a workload, as far as it is known before loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of tasks.
    pub tasks: u64,
    /// Whether the number is known; otherwise it is estimated from the size of a file.
    pub exact: bool,
}

/// Low estimates of the bytes of a trace's line, plain and compressed, so that the number of tasks is not
/// underestimated.
const LINE_BYTES: u64 = 40;
const PACKED_LINE_BYTES: u64 = 8;

impl WorkloadAxis {
    /// Returns the name in results: the file as written, or the parameters of the generator.
    pub fn name(&self) -> String {
        match self {
            WorkloadAxis::File { name, .. } => name.clone(),
            WorkloadAxis::Generated(g) => {
                format!("{}, {} tasks, {} users, {} days", g.model, g.tasks, g.users, g.days)
            }
        }
    }

    /// Returns the seed of a generated workload.
    pub fn seed(&self) -> Option<u64> {
        match self {
            WorkloadAxis::File { .. } => None,
            WorkloadAxis::Generated(g) => Some(g.seed),
        }
    }

    /// Returns the digest of its source: all bytes of the file, or the parameters of the generator.
    pub(crate) fn digest(&self) -> io::Result<String> {
        let mut d = Digest::new();
        d.text(READING);
        match self {
            WorkloadAxis::File { path, options, .. } => {
                let ImportOptions {
                    format,
                    lenient,
                    relaxed,
                    swf_memory_unit,
                    swf_memory_per,
                    memory_matters: _,
                    processors,
                    ref csv_columns,
                    ref columns,
                    threads: _,
                    memory: _,
                    max_unpacked: _,
                    overflow: _,
                } = **options;
                if let Some(columns) = csv_columns {
                    d.text(&format!("{columns:?}"));
                }
                if let Some(columns) = columns {
                    d.text(&columns.join(","));
                }
                d.text(format.name()).text(swf_memory_unit.name()).text(swf_memory_per.name()).text(processors.name());
                d.number(u64::from(lenient)).number(u64::from(relaxed));
                for part in parts(path)? {
                    d.file(&part)?;
                }
            }
            WorkloadAxis::Generated(g) => {
                d.text(g.model.name()).number(g.tasks).number(u64::from(g.users)).number(g.days.to_bits());
                d.number(g.seed);
            }
        }
        Ok(d.hex())
    }

    /// Returns its size without loading it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn size(&self) -> io::Result<Size> {
        match self {
            WorkloadAxis::Generated(g) => Ok(Size { tasks: g.tasks, exact: true }),
            WorkloadAxis::File { path, .. } if store::is_parquet(path) => {
                let tasks = store::rows(path).map_err(|e| io::Error::other(e.to_string()))?;
                Ok(Size { tasks, exact: true })
            }
            WorkloadAxis::File { path, .. } => {
                let mut tasks = 0;
                for part in parts(path)? {
                    let packed = part.extension().is_some_and(|e| e == "gz" || e == "zst");
                    tasks += fs::metadata(&part)?.len() / if packed { PACKED_LINE_BYTES } else { LINE_BYTES };
                }
                Ok(Size { tasks: tasks.max(1), exact: false })
            }
        }
    }

    /// Loads it, with its users in the accounts of a file if there is one, and prepares it for runs.
    pub(crate) fn load(&self, accounts: Option<&Path>, threads: Option<NonZeroUsize>) -> Result<Prepared, Problem> {
        let workload = self.read(threads)?;
        let Some(path) = accounts else { return Ok(Prepared::new(workload)) };
        let document = |e: DocumentError| Problem { environment: e.is_environment(), sentence: e.to_string() };
        let placed = AccountsFile::read(path).and_then(|file| file.place(workload)).map_err(document)?;
        Ok(Prepared::in_accounts(placed.workload, placed.tree))
    }

    fn read(&self, threads: Option<NonZeroUsize>) -> Result<Workload, Problem> {
        match self {
            WorkloadAxis::Generated(options) => generate(options).map_err(Problem::input),
            WorkloadAxis::File { path, options, .. } if store::is_parquet(path) => {
                let workload = store::read(path).map_err(|e| {
                    let environment =
                        matches!(&e, StoreError::Io { source, .. } if source.kind() != io::ErrorKind::NotFound);
                    Problem { sentence: e.to_string(), environment }
                })?;
                options.processors.of(workload).map_err(Problem::input)
            }
            WorkloadAxis::File { path, options, .. } => {
                let sources = [Source::Path(path.clone())];
                let options = ImportOptions { threads, ..ImportOptions::clone(options) };
                import(&sources, &options)
                    .map(|imported| imported.workload)
                    .map_err(|e| Problem { environment: e.is_environment(), sentence: e.to_string() })
            }
        }
    }
}

/// Returns the file, or the files of a folder ordered by name.
fn parts(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        if entry.is_file() {
            files.push(entry);
        }
    }
    files.sort();
    Ok(files)
}

const FILE_FIELDS: [&str; 9] =
    ["file", "from", "lenient", "relaxed", "swf-memory-unit", "swf-memory-per", "processors", "csv-columns", "columns"];
const GENERATE_FIELDS: [&str; 5] = ["like", "tasks", "users", "days", "seeds"];

/// Reads the axis of workloads.
pub(crate) fn read_workloads(root: &Table<'_>, base: &Path, seed: u64) -> Result<Vec<WorkloadAxis>, DocumentError> {
    let mut workloads = match axis(root, "workload")? {
        Some(nodes) => distinct(nodes, |node| trace(node, base), WorkloadAxis::name)?,
        None => Vec::new(),
    };
    let mut seen: Vec<(String, u64)> = Vec::new();
    for node in axis(root, "generate")?.unwrap_or_default() {
        for options in generated(&node, seed)? {
            let workload = WorkloadAxis::Generated(options);
            let key = (workload.name(), options.seed);
            if seen.contains(&key) {
                return Err(node.error(format!("{} with seed {} occurs a second time, expected once", key.0, key.1)));
            }
            seen.push(key);
            workloads.push(workload);
        }
    }
    if workloads.is_empty() {
        return Err(root.error(
            "found no workload, expected a list of files as workload, or generate = { like = \"google2011\", tasks = 200000 }",
        ));
    }
    Ok(workloads)
}

fn trace(node: &Node<'_>, base: &Path) -> Result<WorkloadAxis, DocumentError> {
    let mut options = ImportOptions::default();
    let (name, path) = if node.is_text() {
        file(node, base)?
    } else {
        let table = node.table()?;
        table.deny_unknown(&FILE_FIELDS)?;
        let flag = |key| table.get(key).map_or(Ok(false), |n| n.flag());
        (options.lenient, options.relaxed) = (flag("lenient")?, flag("relaxed")?);
        options.format = named(&table, "from")?.unwrap_or(Format::Auto);
        options.swf_memory_unit = named::<MemoryUnit>(&table, "swf-memory-unit")?.unwrap_or(options.swf_memory_unit);
        options.swf_memory_per = named::<MemoryPer>(&table, "swf-memory-per")?.unwrap_or(options.swf_memory_per);
        options.processors = named::<Processors>(&table, "processors")?.unwrap_or_default();
        options.csv_columns = named(&table, "csv-columns")?;
        let names = table.get("columns").map(|n| n.text().map(|t| t.split(',').map(str::to_string).collect()));
        options.columns = names.transpose()?;
        file(&table.required("file", "the path of a workload or a trace")?, base)?
    };
    Ok(WorkloadAxis::File { name, path, options: Box::new(options) })
}

fn named<T: FromStr<Err: std::fmt::Display>>(table: &Table<'_>, key: &str) -> Result<Option<T>, DocumentError> {
    let Some(node) = table.get(key) else { return Ok(None) };
    node.text()?.parse().map(Some).map_err(|e: T::Err| node.error(e.to_string()))
}

/// Reads the options of a generated workload, once for each seed.
fn generated(node: &Node<'_>, seed: u64) -> Result<Vec<GenerateOptions>, DocumentError> {
    let table = node.table()?;
    table.deny_unknown(&GENERATE_FIELDS)?;
    let whole = |key: &str, default: u64, low: u64, high: u64| match table.get(key) {
        Some(node) => whole_number(&node, low, high),
        None => Ok(default),
    };
    // The defaults of `evenhand workload generate`.
    let like = named(&table, "like")?.unwrap_or(TraceModel::Google2011);
    let tasks = whole("tasks", 200_000, 1, u64::from(u32::MAX))?;
    let users = whole("users", 100, 1, tasks)?;
    let days = match table.get("days") {
        Some(node) => {
            let days = node.positive()?.to_f64();
            if days > 36_525.0 {
                return Err(node.error(format!("found {days}, expected at most 36525 days")));
            }
            days
        }
        None => 29.0,
    };
    let seeds = match axis(&table, "seeds")? {
        Some(nodes) => distinct(nodes, |node| whole_number(node, 0, u64::MAX), u64::to_string)?,
        None => vec![seed],
    };
    let users = u32::try_from(users).unwrap_or(u32::MAX);
    Ok(seeds.into_iter().map(|seed| GenerateOptions { model: like, tasks, users, days, seed }).collect())
}

fn whole_number(node: &Node<'_>, low: u64, high: u64) -> Result<u64, DocumentError> {
    let text = node.written()?;
    let number = text.parse().ok().filter(|n| (low..=high).contains(n));
    let range = if high == u64::MAX { format!("{low} or more") } else { format!("{low} to {high}") };
    number.ok_or_else(|| node.error(format!("found {text}, expected a whole number, {range}")))
}
