//! Users' weights and accounts, for `study` and `audit --history`.

use std::path::Path;

use evenhand_model::{Weights, Workload};
use evenhand_study::{WorkloadWithAccounts, read_weights};

use crate::failure::Failure;
use crate::output::console::Console;

/// Reads the weights of a file; without a file, all weights are 1. Prints a note on users that are not in the workload.
pub(crate) fn read_weights_or_equal(
    path: Option<&Path>,
    workload: &Workload,
    console: &Console,
) -> Result<Weights, Failure> {
    let Some(path) = path else { return Ok(Weights::equal(workload.users().len())) };
    let (weights, unknown) = read_weights(path, workload.users()).map_err(Failure::document)?;
    if !unknown.is_empty() {
        console.note(&format!("{}: not in the workload: {}", path.display(), unknown.join(", ")));
    }
    Ok(weights)
}

/// Prints notes on mismatches between the file of accounts and the workload.
pub(crate) fn note_mismatches(path: &Path, placed: &WorkloadWithAccounts, console: &Console) {
    let note = |what: &str, names: &[String]| {
        if !names.is_empty() {
            console.note(&format!("{}: {what}: {}", path.display(), names.join(", ")));
        }
    };
    note("users that are not in the workload", &placed.unknown);
    note("accounts without a user of the workload", &placed.empty);
    note(
        "accounts of the workload that the file does not name, which get 1 share each directly under the root",
        &placed.added,
    );
}
