//! Workloads in the formats of other tools: the CSV of the SDRF authors' simulator, the Standard
//! Workload Format, and Batsim's `jobs.csv`, which evalys draws.

mod evalys;
mod processors;
mod sdrf;
mod swf;
pub(crate) mod text;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use evenhand_model::files::replace_file;
use evenhand_model::{Workload, mean_use};
use thiserror::Error;

pub use evalys::evalys_csv;
pub use sdrf::sdrf_csv;
pub use swf::swf;

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Seven columns for the SDRF authors' simulator: see [`sdrf_csv`].
    SdrfCsv,
    /// The Standard Workload Format: see [`swf`].
    Swf,
    /// Batsim's `jobs.csv` for evalys: see [`evalys_csv`].
    EvalysCsv,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: [ExportFormat; 3] = [ExportFormat::SdrfCsv, ExportFormat::Swf, ExportFormat::EvalysCsv];

    /// As typed: `sdrf-csv`, `swf`, `evalys-csv`.
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

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many tasks were written.
    pub tasks: u64,
    /// What the format could not hold or what was assumed: one sentence each, for people.
    pub losses: Vec<String>,
}

/// Why a workload cannot be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// There is no such format.
    #[error("found {found:?}, expected sdrf-csv, swf or evalys-csv")]
    Unknown {
        /// The name as found.
        found: String,
    },
    /// The format needs resources that the workload does not have.
    #[error(
        "{format} needs {needed}, which this workload lacks (it has {}); rename a resource, or choose another format",
        has.join(", ")
    )]
    Resources {
        /// The format.
        format: ExportFormat,
        /// The resources it lacks.
        needed: String,
        /// The resources it has.
        has: Vec<String>,
    },
    /// Writing failed.
    #[error("{}{source}", path.as_ref().map_or(String::new(), |p| format!("{}: ", p.display())))]
    Io {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// What the system said.
        source: io::Error,
    },
}

impl From<io::Error> for ExportError {
    fn from(source: io::Error) -> ExportError {
        ExportError::Io { path: None, source }
    }
}

/// Writes `w` in a format.
///
/// # Errors
/// If the workload lacks a resource that the format needs, or writing fails.
pub fn export(w: &Workload, format: ExportFormat, out: &mut dyn Write) -> Result<Exported, ExportError> {
    match format {
        ExportFormat::SdrfCsv => sdrf_csv(w, out),
        ExportFormat::Swf => swf(w, out),
        ExportFormat::EvalysCsv => evalys_csv(w, out),
    }
}

/// Writes `w` in a format to a file, which appears whole or not at all.
///
/// # Errors
/// As [`export`]; nothing is left behind then.
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

/// The first resource with one of these names.
fn resource(w: &Workload, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|n| w.resources().iter().position(|r| r.name.eq_ignore_ascii_case(n)))
}

/// Where the processors are; the format cannot do without them.
fn processors(w: &Workload, format: ExportFormat) -> Result<usize, ExportError> {
    resource(w, &["cpu", "cpus", "cores", "processors", "nodes"])
        .ok_or_else(|| lacking(w, format, "a resource named cpu".to_string()))
}

fn lacking(w: &Workload, format: ExportFormat, needed: String) -> ExportError {
    ExportError::Resources { format, needed, has: w.resources().iter().map(|r| r.name.clone()).collect() }
}

/// Collects what is lost on the way.
#[derive(Default)]
struct Losses {
    times: u64,
    sentences: Vec<String>,
}

impl Losses {
    fn say(&mut self, sentence: impl Into<String>) {
        self.sentences.push(sentence.into());
    }

    /// Whole units of `unit_ns`, to the nearest; counts times that were not whole.
    fn rounded(&mut self, ns: u64, unit_ns: u64) -> u64 {
        self.times += u64::from(!ns.is_multiple_of(unit_ns));
        // Times are at most 2^63, so half a unit fits on top.
        (ns + unit_ns / 2) / unit_ns
    }

    /// Says which resources and columns of a workload a format has no place for.
    fn left_out(&mut self, w: &Workload, kept: &[usize], columns: &[(&str, bool)]) {
        let resources =
            w.resources().iter().enumerate().filter(|(i, _)| !kept.contains(i)).map(|(_, r)| r.name.as_str());
        let columns = columns.iter().filter(|c| c.1).map(|c| c.0);
        let all: Vec<&str> = resources.chain(columns).collect();
        if !all.is_empty() {
            self.say(format!("left out: {}", all.join(", ")));
        }
    }

    fn starts(&mut self, w: &Workload, instead: &str) {
        let unknown = (0..w.len()).filter(|&row| w.start(row).is_none()).count();
        if unknown > 0 {
            self.say(format!("{unknown} rows have no original start; {instead}"));
        }
    }

    fn finish(mut self, tasks: u64, unit: &str) -> Exported {
        if self.times > 0 {
            self.say(format!("{} times were rounded to whole {unit}", self.times));
        }
        Exported { tasks, losses: self.sentences }
    }
}

/// The end of the original run in whole seconds after the first submission, for headers.
fn last_finish_s(w: &Workload) -> u64 {
    mean_use(w).last_finish.nanos().div_ceil(1_000_000_000)
}
