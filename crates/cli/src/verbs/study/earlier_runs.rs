//! The note on finished runs of earlier studies in the folder of a study.

use std::path::Path;

use evenhand_model::counted;
use evenhand_model::printable::printable;
use evenhand_study::Plan;

use crate::output::console::Console;

/// How many runs are listed.
const LISTED: usize = 5;

/// Prints a note if the folder has finished runs that the report does not show.
pub(super) fn note_earlier_runs(plan: &Plan, folder: &Path, console: &Console) {
    let others = plan.other_runs(folder);
    if others.is_empty() {
        return;
    }
    let listed: Vec<_> = others.iter().take(LISTED).map(|id| printable(id)).collect();
    let more = others.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    console.note(&format!(
        "{} also has {} that this study does not ask for, with tasks and repeats: {}{more}. The report, its figures and tables \
         leave {} out; a study that asks for {} does not simulate again. To keep studies apart, give another --out.",
        folder.display(),
        counted(others.len(), "finished run", "finished runs"),
        listed.join(", "),
        if others.len() == 1 { "it" } else { "them" },
        if others.len() == 1 { "it" } else { "them" },
    ));
}
