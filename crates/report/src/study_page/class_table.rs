//! The table of results by class of users and tasks.

use serde::Serialize;

use super::user_and_fairness_tables::Cell;
use crate::format_numbers::{ABSENT, duration, grouped, percent, three_digits};
use crate::study_page::grid::StudyGrid;

/// The classes at one capacity.
#[derive(Serialize)]
pub(super) struct ClassGroup {
    capacity: String,
    /// Where the classes are divided.
    bounds: String,
    rows: Vec<ClassRow>,
}

#[derive(Serialize)]
struct ClassRow {
    class: String,
    policy: String,
    users: String,
    tasks: String,
    wait: Cell,
    slowdown: String,
    completed: String,
}

/// Returns the table, class by class so that policies stand below each other; empty if no run has classes.
pub(super) fn classes(grid: &StudyGrid<'_>) -> Vec<ClassGroup> {
    let group = |capacity: usize| {
        let first = grid.runs_at(capacity).map(|(_, run)| &run.classes).find(|classes| !classes.is_empty())?;
        let bounds = first.iter().filter_map(|class| match class.class.as_str() {
            "small" => Some(format!("small up to {} of the capacity", percent(class.bound))),
            "short" => Some(format!("short up to {}", duration(class.bound))),
            _ => None,
        });
        let rows = first.iter().flat_map(|class| {
            grid.runs_at(capacity).filter_map(move |(policy, run)| {
                let results =
                    run.classes.iter().find(|other| (&other.by, &other.class) == (&class.by, &class.class))?;
                Some(ClassRow {
                    class: class.class.clone(),
                    policy: grid.policies[policy].label.clone(),
                    users: grouped(results.users),
                    tasks: grouped(results.totals.submitted),
                    wait: Cell::duration(results.mean_wait_s),
                    slowdown: results.mean_bounded_slowdown.map_or(ABSENT.into(), three_digits),
                    completed: grouped(results.totals.completed),
                })
            })
        });
        Some(ClassGroup {
            capacity: grid.capacities[capacity].label.clone(),
            bounds: bounds.collect::<Vec<_>>().join(", "),
            rows: rows.collect(),
        })
    };
    (0..grid.capacities.len()).filter_map(group).collect()
}
