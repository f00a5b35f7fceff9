//! Imports traces that are larger than memory: their tasks go to disk, sorted, and from there to the workload file.

use std::path::{Path, PathBuf};

use evenhand_model::Overflow;
use evenhand_model::memory::MemoryLimit;
use thiserror::Error;

use super::{ImportError, ImportOptions, ImportSummary, NodesStated, ReadRows, in_pool, no_workload, read};
use crate::byte_source::{Progress, Source};
use crate::store::{self, StoreError};

/// The memory of a task while it is read: its columns, which grow by doubling, and what sorting needs.
const READ_BYTES: u64 = 160;
/// The memory of a task while it is written: its columns, and those of its row group before and after compression.
const WRITTEN_BYTES: u64 = 256;
/// The part of the memory for reading back what was put on disk.
const BUFFERS: u64 = 8;

/// An error of [`import_to_file`].
#[derive(Debug, Error)]
pub enum ImportToFileError {
    /// The trace cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The workload cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Imports a trace as [`import`](super::import) does, and stores it. Tasks of text formats that do not fit in
/// `options.memory` are kept in a temporary file beside `path` meanwhile; row groups are then as small as the memory. Names
/// of users, accounts and queues and the distinct demands stay in memory.
///
/// # Errors
/// Returns an error as [`import`](super::import) does, if `path` is what a source reads, or if a file cannot be written.
pub fn import_to_file(
    sources: &[Source],
    options: &ImportOptions,
    path: &Path,
    report: &(dyn Fn(Progress) + Sync),
) -> Result<ImportSummary, ImportToFileError> {
    store::check_is_built(path)?;
    sources.iter().try_for_each(|source| source.check_output(path, options.format))?;
    let overflow = options.memory.map(|limit| Overflow::new(folder_beside(path), rows(limit, READ_BYTES)));
    let options = ImportOptions { overflow, ..options.clone() };
    let found = in_pool(&options, || {
        let found = read(sources, &options, Some(report))?;
        Ok(if found.builder.has_spilled() { Err(found) } else { Ok(found.finish()?) })
    })?;
    match (found, options.memory) {
        (Ok(imported), _) => {
            store::write(path, &imported.workload)?;
            Ok(imported.summary)
        }
        (Err(large), limit) => {
            let limit = limit.unwrap_or_else(MemoryLimit::of_this_process);
            store_large(large, path, limit)
        }
    }
}

fn store_large(found: ReadRows, path: &Path, limit: MemoryLimit) -> Result<ImportSummary, ImportToFileError> {
    let ReadRows { name, builder, mut summary, .. } = found;
    let buffers = usize::try_from(limit.bytes / BUFFERS).unwrap_or(usize::MAX);
    let large = builder.finish_large(buffers).map_err(|source| ImportError::Overflow { source })?;
    let mut large = match large {
        Ok(large) => large,
        Err(cause) => return Err(no_workload(cause, &name, summary).into()),
    };
    let mut stated = NodesStated::default();
    store::write_large(path, &mut large, rows(limit, WRITTEN_BYTES), |some| {
        summary.tasks += some.tasks();
        stated.add(some);
    })?;
    summary.assumptions.extend(stated.sentences());
    Ok(summary)
}

fn rows(limit: MemoryLimit, bytes_each: u64) -> usize {
    usize::try_from(limit.bytes / bytes_each).unwrap_or(usize::MAX).max(1)
}

/// Returns the folder for temporary files: that of a result that is, or will be, a regular file.
fn folder_beside(path: &Path) -> PathBuf {
    let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    match path.parent() {
        _ if special => std::env::temp_dir(),
        Some(folder) if folder != Path::new("") => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
