//! The table of `--classes`: results by class of users and tasks.

use evenhand_study::record::{RunRecord, StudyRecord};

use crate::output::numbers::rounded;
use crate::output::table::Table;

/// Returns the table of all runs, with two lines on what the classes are.
pub(super) fn table(
    record: &StudyRecord,
    names: impl Fn(&RunRecord) -> [String; 2],
    wait: impl Fn(f64) -> String,
) -> String {
    let mut table =
        Table::new(3, ["capacity", "policy", "class", "users", "tasks", "mean wait", "slowdown", "completed"]);
    for run in &record.runs {
        for class in &run.classes {
            let [capacity, policy] = names(run);
            table.row(vec![
                capacity,
                policy,
                class.class.clone(),
                class.users.to_string(),
                class.totals.submitted.to_string(),
                class.mean_wait_s.map_or("-".into(), &wait),
                class.mean_bounded_slowdown.map_or("-".into(), rounded),
                class.totals.completed.to_string(),
            ]);
        }
    }
    format!(
        "\n\n{}\n\nsporadic, heavy: tasks of users who use at most, or more than, their entitlement of some resource\n\
         small, large; short, long: tasks up to the median size, or run time, and above it",
        table.render()
    )
}
