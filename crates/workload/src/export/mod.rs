//! Exports workloads to the formats of other tools: the CSV of the SDRF authors' simulator, the Standard Workload
//! Format, and Batsim's `jobs.csv`, which evalys reads.

mod assign_processors;
mod evalys;
mod sdrf_csv;
mod swf;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use evenhand_model::files::replace_file;
use evenhand_model::{Detail, Workload, counted, mean_use};
use thiserror::Error;

pub use evalys::evalys_csv;
pub use sdrf_csv::sdrf_csv;
pub use swf::swf;

/// A format for exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Seven columns for the SDRF authors' simulator; see [`sdrf_csv()`].
    SdrfCsv,
    /// The Standard Workload Format; see [`swf()`].
    Swf,
    /// Batsim's `jobs.csv` for evalys; see [`evalys_csv`].
    EvalysCsv,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [ExportFormat; 3] = [ExportFormat::SdrfCsv, ExportFormat::Swf, ExportFormat::EvalysCsv];

    /// Returns the name on the command line: `sdrf-csv`, `swf`, `evalys-csv`.
    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::SdrfCsv => "sdrf-csv",
            ExportFormat::Swf => "swf",
            ExportFormat::EvalysCsv => "evalys-csv",
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ExportFormat {
    type Err = ExportError;

    fn from_str(text: &str) -> Result<ExportFormat, ExportError> {
        ExportFormat::ALL
            .into_iter()
            .find(|f| f.name() == text)
            .ok_or_else(|| ExportError::Unknown { found: text.to_string() })
    }
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of tasks written.
    pub tasks: u64,
    /// The information that the format does not hold and the assumptions, one sentence each.
    pub losses: Vec<String>,
}

/// An error in exporting a workload.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The format is unknown.
    #[error("found {found:?}, expected sdrf-csv, swf or evalys-csv")]
    Unknown {
        /// The name.
        found: String,
    },
    /// The workload does not have the resources that the format needs.
    #[error(
        "{format} needs {needed}, which this workload lacks (it has {}); rename a resource, or choose another format",
        has.join(", ")
    )]
    Resources {
        /// The format.
        format: ExportFormat,
        /// The missing resources.
        needed: String,
        /// The resources of the workload.
        has: Vec<String>,
    },
    /// The output cannot be written.
    #[error("{}{source}", path.as_ref().map_or(String::new(), |p| format!("{}: ", p.display())))]
    Io {
        /// The file, if the output is one.
        path: Option<PathBuf>,
        /// The cause.
        source: io::Error,
    },
}

impl From<io::Error> for ExportError {
    fn from(source: io::Error) -> ExportError {
        ExportError::Io { path: None, source }
    }
}

/// Writes a workload in a format.
///
/// # Errors
/// Returns an error if the workload does not have a resource that the format needs, or if writing fails.
pub fn export(w: &Workload, format: ExportFormat, out: &mut dyn Write) -> Result<Exported, ExportError> {
    match format {
        ExportFormat::SdrfCsv => sdrf_csv(w, out),
        ExportFormat::Swf => swf(w, out),
        ExportFormat::EvalysCsv => evalys_csv(w, out),
    }
}

/// Writes a workload in a format to a file, atomically.
///
/// # Errors
/// Returns an error as [`export`] does; the file is unchanged then.
pub fn export_file(w: &Workload, format: ExportFormat, path: &Path) -> Result<Exported, ExportError> {
    replace_file(path, |file| {
        let mut out = BufWriter::new(file);
        let done = export(w, format, &mut out)?;
        out.flush()?;
        Ok(done)
    })
    .map_err(|e| match e {
        ExportError::Io { path: None, source } => ExportError::Io { path: Some(path.into()), source },
        other => other,
    })
}

/// Returns the first resource with one of these names.
fn resource(w: &Workload, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|n| w.resources().iter().position(|r| r.name.eq_ignore_ascii_case(n)))
}

/// Returns the resource of processors, which the format needs.
fn processors(w: &Workload, format: ExportFormat) -> Result<usize, ExportError> {
    resource(w, &["cpu", "cpus", "cores", "processors", "nodes"])
        .ok_or_else(|| missing_resources(w, format, "a resource named cpu".to_string()))
}

fn missing_resources(w: &Workload, format: ExportFormat, needed: String) -> ExportError {
    ExportError::Resources { format, needed, has: w.resources().iter().map(|r| r.name.clone()).collect() }
}

/// Collects the sentences on lost information.
#[derive(Default)]
struct Losses {
    times: u64,
    sentences: Vec<String>,
}

impl Losses {
    fn add(&mut self, sentence: impl Into<String>) {
        self.sentences.push(sentence.into());
    }

    /// Rounds a time to the nearest multiple of `unit_ns`, in that unit, and counts times that were not multiples.
    fn rounded(&mut self, ns: u64, unit_ns: u64) -> u64 {
        self.times += u64::from(!ns.is_multiple_of(unit_ns));
        // Times are at most 2^63, so half a unit fits on top.
        (ns + unit_ns / 2) / unit_ns
    }

    /// Adds a sentence on what the workload has and the format does not hold: all resources but those at the indexes
    /// `kept`, the columns that are true, eligible times, numbers of nodes, and all details but `kept_details`.
    fn left_out(&mut self, w: &Workload, kept: &[usize], columns: &[(&str, bool)], kept_details: &[Detail]) {
        let c = w.columns();
        let resources =
            w.resources().iter().enumerate().filter(|(i, _)| !kept.contains(i)).map(|(_, r)| r.name.as_str());
        let of_no_format = [("eligible times", c.eligible.is_some()), ("numbers of nodes", c.nodes.is_some())];
        let columns = columns.iter().copied().chain(of_no_format).filter(|c| c.1).map(|c| c.0);
        let details = c.details.iter().filter(|(detail, ids)| ids.is_some() && !kept_details.contains(detail));
        let all: Vec<&str> = resources.chain(columns).chain(details.map(|(detail, _)| detail.name())).collect();
        if !all.is_empty() {
            self.add(format!("not exported: {}", all.join(", ")));
        }
    }

    /// Adds a sentence if original starts are unknown.
    fn unknown_starts(&mut self, w: &Workload, instead: &str) {
        let unknown = (0..w.len()).filter(|&row| w.start(row).is_none()).count();
        if unknown > 0 {
            self.add(format!("{} no original start; {instead}", counted(unknown, "row has", "rows have")));
        }
    }

    fn finish(mut self, tasks: u64, unit: &str) -> Exported {
        if self.times > 0 {
            self.add(format!("{} rounded to whole {unit}", counted(self.times, "time is", "times are")));
        }
        Exported { tasks, losses: self.sentences }
    }
}

/// Returns the last original finish, rounded up to whole seconds.
fn last_finish_s(w: &Workload) -> u64 {
    mean_use(w).last_finish.nanos().div_ceil(1_000_000_000)
}
