//! What a program without the feature `formats` has in the place of Parquet: errors that say so.

use std::path::Path;

use evenhand_model::{LargeWorkload, Workload};

use super::{StoreError, TaskResults};

fn refuse<T>(path: &Path) -> Result<T, StoreError> {
    Err(StoreError::NotBuilt { path: path.into() })
}

/// Returns an error.
///
/// # Errors
/// Returns [`StoreError::NotBuilt`].
pub fn rows(path: &Path) -> Result<u64, StoreError> {
    refuse(path)
}

/// Returns an error.
///
/// # Errors
/// Returns [`StoreError::NotBuilt`].
pub fn read(path: &Path) -> Result<Workload, StoreError> {
    refuse(path)
}

/// Returns an error.
///
/// # Errors
/// Returns [`StoreError::NotBuilt`].
pub fn write(path: &Path, _: &Workload) -> Result<(), StoreError> {
    refuse(path)
}

/// Returns an error.
///
/// # Errors
/// Returns [`StoreError::NotBuilt`].
pub fn write_large(path: &Path, _: &mut LargeWorkload, _: usize, _: impl FnMut(&Workload)) -> Result<(), StoreError> {
    refuse(path)
}

/// Returns an error.
///
/// # Errors
/// Returns [`StoreError::NotBuilt`].
pub fn write_task_results(path: &Path, _: &TaskResults<'_>) -> Result<(), StoreError> {
    refuse(path)
}
