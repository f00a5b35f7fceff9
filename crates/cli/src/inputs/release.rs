//! From when on the jobs of a log wait.

use evenhand_model::{Workload, counted};

use crate::arguments::Release;
use crate::output::console::Console;

/// Returns the workload as its jobs begin to wait, with the note of [`note_release`].
pub(crate) fn released(workload: Workload, release: Release, is_given: bool, console: &Console) -> Workload {
    let rows = workload.len();
    let (workload, moved) = match release {
        Release::Submit => {
            let moved = workload.eligible_later();
            (workload, moved)
        }
        Release::Eligible => workload.submitted_when_eligible(),
    };
    note_release(release, is_given, moved, rows, console);
    workload
}

/// Prints how many rows became eligible after their submission, and from when on their waits count. There is no note
/// where --release submit is given.
pub(crate) fn note_release(release: Release, is_given: bool, moved: u64, rows: usize, console: &Console) {
    if moved == 0 || is_given && release == Release::Submit {
        return;
    }
    let jobs = counted(rows, "job", "jobs");
    let consequence = match release {
        Release::Submit => {
            "their waits count from the submission. --release eligible counts from when they became eligible."
        }
        Release::Eligible => {
            "such a job is considered, and its wait counts, from then on. --release submit counts from the submission."
        }
    };
    console.note(&format!(
        "{moved} of {jobs} became eligible after the submission (dependencies, holds, begin times); {consequence}"
    ));
}

/// Returns from when on jobs wait, in words.
pub(crate) fn wait_from(release: Release) -> &'static str {
    match release {
        Release::Submit => "their submission",
        Release::Eligible => "when they became eligible",
    }
}
