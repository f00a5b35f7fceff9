//! What can be wrong with a stored file.

use std::io;
use std::path::PathBuf;

use evenhand_model::WorkloadError;
use thiserror::Error;

/// Why a workload cannot be stored or read back.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not Parquet, or is damaged.
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the decoder found.
        reason: String,
    },
    /// The file's metadata under one of our keys cannot be understood.
    #[error("{}: metadata {key:?}: {reason}; remove the key, or write the file anew with `evenhand workload import`", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A column that every workload has is absent.
    #[error("{}: no column {column:?}; expected {expected}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A column holds something of the wrong kind.
    #[error("{}: column {column:?} holds {found}; expected {expected}", path.display())]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// Its Parquet type.
        found: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// One value is impossible.
    #[error("{}: column {column:?}, row {row}: found {found}; expected {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// The row, from 0 as data frames count.
        row: usize,
        /// The value.
        found: String,
        /// What it should be.
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
    /// The rows make no workload.
    #[error("{}: {source}", path.display())]
    Workload {
        /// The file.
        path: PathBuf,
        /// Why.
        source: WorkloadError,
    },
}
