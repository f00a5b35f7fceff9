//! The table of results by class of users and tasks.

use evenhand_study::record::ClassComparison;
use serde::Serialize;

use super::user_and_fairness_tables::{Cell, interval_between};
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
    /// Where 95 % of repeats lie.
    interval: String,
    slowdown: String,
    completed: String,
    /// Its users who wait less, and longer, than under the compared policy, beyond the noise if that is known.
    better: String,
    worse: String,
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
                let compared = grid.pair(capacity, policy).and_then(|pair| {
                    let mut compared = pair.comparison.classes.iter();
                    compared.find(|other| (&other.by, &other.class) == (&class.by, &class.class))
                });
                let count =
                    |of: fn(&ClassComparison) -> Option<u64>| compared.and_then(of).map_or(ABSENT.into(), grouped);
                let interval = results.wait_interval_s;
                Some(ClassRow {
                    class: class.class.clone(),
                    policy: grid.policies[policy].label.clone(),
                    users: grouped(results.users),
                    tasks: grouped(results.totals.submitted),
                    wait: Cell::duration(results.mean_wait_s)
                        .within_noise(results.difference_interval_s.is_some() && !results.beyond_noise),
                    interval: interval.map_or(ABSENT.into(), |[low, high]| interval_between(low, high)),
                    slowdown: results.mean_bounded_slowdown.map_or(ABSENT.into(), three_digits),
                    completed: grouped(results.totals.completed),
                    better: count(|class| class.users_better_beyond_noise.or(class.users_better)),
                    worse: count(|class| class.users_worse_beyond_noise.or(class.users_worse)),
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
