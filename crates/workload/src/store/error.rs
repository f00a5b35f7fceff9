//! Errors of stored files.

use std::io;
use std::path::PathBuf;

use evenhand_model::WorkloadError;
use thiserror::Error;

/// An error in storing or reading a workload.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The program was built without Parquet.
    #[error(
        "{}: this evenhand was built without Parquet; use one with the feature `formats`, or text: a trace instead of a \
         stored workload, `--tasks-csv` for the tasks of a study",
        path.display()
    )]
    NotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not Parquet, or is damaged.
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The message of the decoder.
        reason: String,
    },
    /// The metadata under a key of evenhand is invalid.
    #[error("{}: metadata {key:?}: {reason}; remove the key, or write the file again with `evenhand workload import`", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The error.
        reason: String,
    },
    /// The file has a later format.
    #[error("{}: found format {found}, expected at most {known}; read it with a later version of evenhand", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest format that is known.
        known: u32,
    },
    /// A required column is missing.
    #[error("{}: no column {column:?}; expected {expected}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// The expected content.
        expected: &'static str,
    },
    /// A column has another type than expected.
    #[error("{}: column {column:?} holds {found}; expected {expected}", path.display())]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// The Parquet type.
        found: String,
        /// The expected content.
        expected: &'static str,
    },
    /// A value is invalid.
    #[error("{}: column {column:?}, row {row}: found {found}; expected {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// The row, counted from 0 as in data frames.
        row: usize,
        /// The value.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A resource has the name of another column.
    #[error("{}: a resource named {name:?} cannot be stored: the name is taken by another column; rename it", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The resource's name.
        name: String,
    },
    /// The rows cannot form a workload.
    #[error("{}: {source}", path.display())]
    Workload {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: WorkloadError,
    },
}
