//! Stores workloads, and the results of simulated tasks, as Parquet files, which pandas, polars and DuckDB read.
//!
//! The columns are flat; times are whole nanoseconds (`submit_ns`), amounts are exact decimals in the resource's unit.
//!
//! Without the feature `formats`, all that reads or writes Parquet returns [`StoreError::NotBuilt`].

#[cfg(feature = "formats")]
mod encode;
mod error;
#[cfg(feature = "formats")]
mod read;
#[cfg(feature = "formats")]
mod read_task_results;
mod task_results;
#[cfg(not(feature = "formats"))]
mod without_parquet;
#[cfg(feature = "formats")]
mod write;
#[cfg(feature = "formats")]
mod write_task_results;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::StoreError;
#[cfg(feature = "formats")]
pub use read::{read, rows};
#[cfg(feature = "formats")]
pub use read_task_results::{OwnedTaskResults, read_task_results};
pub use task_results::{TaskResults, TaskState, write_task_results_csv};
#[cfg(not(feature = "formats"))]
pub use without_parquet::{read, rows, write, write_large, write_task_results};
#[cfg(feature = "formats")]
pub use write::{write, write_large};
#[cfg(feature = "formats")]
pub use write_task_results::write_task_results;

/// Returns an error if this program was built without Parquet, so that nothing is computed that cannot be stored.
///
/// # Errors
/// Returns [`StoreError::NotBuilt`] without the feature `formats`.
pub fn check_is_built(path: &Path) -> Result<(), StoreError> {
    if cfg!(feature = "formats") { Ok(()) } else { Err(StoreError::NotBuilt { path: path.into() }) }
}

/// Returns whether `path` is a regular file with the magic number of Parquet. Of a pipe nothing is read.
pub fn is_parquet(path: &Path) -> bool {
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut magic = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok() && &magic == b"PAR1"
}

/// Returns whether a Parquet file with these columns is a stored workload.
#[cfg(feature = "formats")]
pub(crate) fn has_workload_columns(columns: &[String]) -> bool {
    [name::SUBMIT, name::DURATION, name::USER].iter().all(|needed| columns.iter().any(|column| column == needed))
}

/// The columns that are not resources; every other column of numbers is a resource.
#[cfg(feature = "formats")]
mod name {
    use evenhand_model::Detail;

    pub(super) const SUBMIT: &str = "submit_ns";
    pub(super) const START: &str = "start_ns";
    pub(super) const DURATION: &str = "duration_ns";
    pub(super) const REQUESTED: &str = "requested_ns";
    pub(super) const USER: &str = "user";
    pub(super) const ACCOUNT: &str = "account";
    pub(super) const QUEUE: &str = "queue";
    pub(super) const COUNT: &str = "count";
    pub(super) const NODES: &str = "nodes";
    pub(super) const ELIGIBLE: &str = "eligible_ns";
    /// What follows the name of a resource in the name of the column of its requested amounts.
    pub(super) const REQUESTED_AMOUNTS: &str = "_requested";
    /// The columns of format 2.
    pub(super) const ALL: [&str; 9] = [SUBMIT, START, DURATION, REQUESTED, USER, ACCOUNT, QUEUE, COUNT, NODES];

    /// Whether a column of a file of a format can be a resource by its name.
    pub(super) fn is_resource(name: &str, format: u32) -> bool {
        let is_new = || name == ELIGIBLE || Detail::ALL.iter().any(|detail| detail.name() == name);
        let since = match name {
            _ if name == Detail::Nice.name() => 7,
            _ if name == Detail::Array.name() => 6,
            _ if name == Detail::Licences.name() => 5,
            _ => 3,
        };
        !(ALL.contains(&name) || format >= since && is_new())
    }

    /// Returns the resource whose requested amounts a column of a file of a format has, if the file has that resource.
    pub(super) fn requested_of(name: &str, format: u32, exists: impl Fn(&str) -> bool) -> Option<&str> {
        let resource = name.strip_suffix(REQUESTED_AMOUNTS)?;
        (format >= 4 && is_resource(resource, format) && exists(resource)).then_some(resource)
    }
}

/// The version of the format that is written; all versions up to it are read.
#[cfg(feature = "formats")]
const FORMAT: u32 = 7;

/// The keys of the metadata of a file.
#[cfg(feature = "formats")]
mod key {
    pub(super) const VERSION: &str = "evenhand.version";
    /// The version of the format. Without the key it is 1 if the file has [`VERSION`], else the latest. Files of
    /// format 1 have no column of nodes; those of format 2 have no
    /// eligible times and no details, those of format 3 no requested amounts, those of format 4
    /// no licences, and those of format 5 no arrays.
    pub(super) const FORMAT: &str = "evenhand.format";
    pub(super) const UNITS: &str = "evenhand.units";
    pub(super) const HEADER: &str = "evenhand.header";
}
