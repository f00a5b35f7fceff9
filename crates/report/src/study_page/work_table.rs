//! The table of what users get done, in a study in which they react.

use evenhand_study::record::{RunRecord, WorkComparison};
use serde::Serialize;

use super::user_and_fairness_tables::Cell;
use crate::format_numbers::{ABSENT, duration, grouped, percent, three_digits};
use crate::study_page::grid::StudyGrid;

/// What users get done, at each capacity.
#[derive(Serialize)]
pub(super) struct WorkTable {
    /// When users submit.
    rule: &'static str,
    window: String,
    groups: Vec<WorkGroup>,
}

#[derive(Serialize)]
struct WorkGroup {
    capacity: String,
    rows: Vec<WorkRow>,
}

#[derive(Serialize)]
struct WorkRow {
    policy: String,
    tasks_per_day: String,
    tasks_change: Cell,
    work_change: String,
    finish: Cell,
    finish_change: Cell,
    earlier: String,
    later: String,
}

/// Returns the table; `None` if submissions are those of the log.
pub(super) fn work(grid: &StudyGrid<'_>) -> Option<WorkTable> {
    let first = grid.record.runs.iter().find_map(|run| run.work.as_ref())?;
    let group = |capacity: usize| WorkGroup {
        capacity: grid.capacities[capacity].label.clone(),
        rows: grid
            .runs_at(capacity)
            .filter_map(|(policy, run)| row(grid, grid.policies[policy].label.clone(), run))
            .collect(),
    };
    Some(WorkTable {
        rule: match first.arrivals.as_str() {
            "sessions" => {
                "Users come as in the log; within a session they wait for their tasks and think as in the log."
            }
            _ => "Users wait for their tasks and think as in the log, also between sessions.",
        },
        window: duration(first.window_s),
        groups: (0..grid.capacities.len()).map(group).collect(),
    })
}

fn row(grid: &StudyGrid<'_>, policy: String, run: &RunRecord) -> Option<WorkRow> {
    let done = run.work.as_ref()?;
    let comparison = grid.record.comparisons.iter().find(|c| c.run == run.id).and_then(|c| c.work.as_ref());
    let count = |number: Option<u64>| number.map_or(ABSENT.into(), grouped);
    let work_change = comparison.map_or(ABSENT.into(), |c| {
        let changes = c.work_in_window_change.iter();
        changes.map(|(name, change)| format!("{name} {}", signed_percent(*change))).collect::<Vec<_>>().join(", ")
    });
    Some(WorkRow {
        policy,
        tasks_per_day: three_digits(done.tasks_per_day),
        tasks_change: tasks_change(comparison),
        work_change,
        finish: Cell::duration(done.users_mean_finish_s),
        finish_change: finish_change(comparison),
        earlier: count(comparison.map(|c| c.users_earlier_beyond_noise.unwrap_or(c.users_earlier))),
        later: count(comparison.map(|c| c.users_later_beyond_noise.unwrap_or(c.users_later))),
    })
}

/// More tasks are better.
fn tasks_change(comparison: Option<&WorkComparison>) -> Cell {
    let Some(change) = comparison.and_then(|c| c.tasks_in_window_change) else { return Cell::absent() };
    let is_noise = comparison.and_then(|c| c.tasks_change).is_some_and(|estimate| estimate.includes_zero());
    let mark = if change > 0.0 { "better" } else { "worse" };
    Cell::marked(signed_percent(change), if change == 0.0 { "" } else { mark }).within_noise(is_noise)
}

fn finish_change(comparison: Option<&WorkComparison>) -> Cell {
    let estimate = comparison.and_then(|c| c.finish_difference_s);
    Cell::difference(comparison.and_then(|c| c.users_mean_finish_difference_s))
        .with_interval(estimate.map(|estimate| estimate.interval))
        .within_noise(estimate.is_some_and(|estimate| estimate.includes_zero()))
}

fn signed_percent(change: f64) -> String {
    if change > 0.0 { format!("+{}", percent(change)) } else { percent(change) }
}
