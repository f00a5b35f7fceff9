//! Capacities, for `study` and `audit --history`: multiples of a workload's mean use, or files.

use std::path::{Path, PathBuf};

use evenhand_model::{Quantity, Workload};
use evenhand_study::{RequestedCapacity, read_cluster, read_pool};

use crate::failure::Failure;
use crate::output::console::Console;

/// Value of `--capacity`.
pub(crate) enum CapacityArgument {
    /// As typed, and as a multiple of the workload's mean use.
    Multiple(String, Quantity),
    /// A file with a `[pool]` or `[[machines]]`.
    File(PathBuf),
}

/// Parses a value of `--capacity`.
pub(crate) fn parse_capacity(text: &str) -> Result<CapacityArgument, Failure> {
    match Quantity::parse(text) {
        Ok(factor) if !factor.is_zero() => Ok(CapacityArgument::Multiple(text.to_string(), factor)),
        Err(_) if Path::new(text).exists() => Ok(CapacityArgument::File(text.into())),
        _ => {
            let expected = "a number greater than 0 (a multiple of the workload's mean use) or a file with a [pool] or [[machines]]";
            Err(Failure::Input(format!("--capacity: found {text:?}, expected {expected}")))
        }
    }
}

/// Reads the file of a capacity, if it is one.
pub(crate) fn read_capacity(
    argument: CapacityArgument,
    workload: &Workload,
    console: &Console,
) -> Result<RequestedCapacity, Failure> {
    let path = match argument {
        CapacityArgument::Multiple(text, factor) => return Ok(RequestedCapacity::Multiple(text, factor)),
        CapacityArgument::File(path) => path,
    };
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if let Some(cluster) = read_cluster(&path).map_err(Failure::document)? {
        return Ok(RequestedCapacity::Machines(name, cluster));
    }
    let (units, unknown) = read_pool(&path, workload.resources()).map_err(Failure::document)?;
    if !unknown.is_empty() {
        console.note(&format!(
            "{}: the workload has no {}, so that part of the pool stays unused",
            path.display(),
            unknown.join(", ")
        ));
    }
    Ok(RequestedCapacity::Pool(name, units))
}
