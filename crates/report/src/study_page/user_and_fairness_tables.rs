//! The tables of users, fairness indices and simulations as the page holds them before its script runs.

use std::collections::BTreeSet;

use evenhand_model::duration_text::interval;
use evenhand_study::record::{Estimate, OtherUsersRecord, RunNoise, RunRecord};
use serde::Serialize;

use super::answer_sentences::Verdict;
use super::script_data::six_digits;
use crate::format_numbers::{
    ABSENT, duration, duration_parts, grouped, percent, quotient, ratio, seconds_text, three_digits,
};
use crate::study_page::figures::is_within_noise;
use crate::study_page::grid::StudyGrid;

/// The table of users at one capacity, comparing one policy with the baseline.
#[derive(Serialize)]
pub(super) struct UserTable {
    rows: Vec<UserRow>,
    /// The users that are not in the page, if any.
    left_out: Option<LeftOut>,
    listed: String,
}

/// The users that are not listed, taken together.
#[derive(Serialize)]
struct LeftOut {
    users: String,
    tasks: String,
    /// The mean over them of their mean waits, for each policy.
    waits: Vec<LeftOutWait>,
}

#[derive(Serialize)]
struct LeftOutWait {
    policy: String,
    wait: String,
}

#[derive(Serialize)]
struct UserRow {
    name: String,
    tasks: String,
    /// One entry per policy.
    waits: Vec<Cell>,
    difference: Cell,
    p95: Cell,
    slowdown: String,
    nuwt: String,
    completion: Cell,
    /// Whether the difference is within the noise of a repeated study.
    noise: bool,
}

/// A table cell: a number with its unit, its value in seconds as a tooltip, and a mark.
#[derive(Clone, Default, Serialize)]
pub(super) struct Cell {
    text: String,
    unit: &'static str,
    title: String,
    mark: &'static str,
}

impl Cell {
    pub(super) fn absent() -> Cell {
        Cell { text: ABSENT.into(), ..Cell::default() }
    }

    /// A text with a mark: `better`, `worse` or none.
    pub(super) fn marked(text: String, mark: &'static str) -> Cell {
        Cell { text, mark, ..Cell::default() }
    }

    /// Formats a duration in a unit that suits its size.
    pub(super) fn duration(seconds: Option<f64>) -> Cell {
        let Some(seconds) = seconds.filter(|seconds| seconds.is_finite()) else { return Cell::absent() };
        let (text, unit) = duration_parts(seconds);
        Cell { text, unit, title: seconds_text(seconds), mark: "" }
    }

    /// Marks a number that differs by no more than the noise.
    pub(super) fn within_noise(self, is_noise: bool) -> Cell {
        if is_noise { Cell { mark: "noise", ..self } } else { self }
    }

    /// Adds an interval of repeats to the tooltip.
    pub(super) fn with_interval(mut self, interval: Option<[f64; 2]>) -> Cell {
        if let Some([low, high]) = interval {
            self.title += &interval_text(low, high);
        }
        self
    }

    /// Formats a difference with its sign, also a positive one.
    pub(super) fn difference(seconds: Option<f64>) -> Cell {
        let mut cell = Cell::duration(seconds);
        match seconds {
            Some(seconds) if seconds > 0.0 => {
                cell.text.insert(0, '+');
                cell.mark = "worse";
            }
            Some(seconds) if seconds < 0.0 => cell.mark = "better",
            _ => {}
        }
        cell
    }
}

/// Returns the end of a tooltip that states where 95 % of repeats lie.
fn interval_text(low: f64, high: f64) -> String {
    format!("; 95\u{a0}% of repeats: {}", interval_between(low, high))
}

/// Formats an interval of times.
pub(super) fn interval_between(low: f64, high: f64) -> String {
    interval([low, high].map(duration))
}

/// Returns the table of users at one capacity under one policy.
pub(super) fn user_table(grid: &StudyGrid<'_>, capacity: usize, policy: usize) -> UserTable {
    let users = grid.listed_users();
    let all = grid.record.runs.first().map_or(0, |run| run.users.len());
    let rows: Vec<UserRow> = match grid.run(capacity, policy) {
        Some(_) => users.iter().filter_map(|&user| user_row(grid, capacity, policy, user)).collect(),
        None => Vec::new(),
    };
    let left_out = (all > users.len()).then(|| left_out(grid, capacity, &users));
    UserTable { listed: grouped(rows.len() as u64), rows, left_out }
}

fn left_out(grid: &StudyGrid<'_>, capacity: usize, listed: &[usize]) -> LeftOut {
    let listed: BTreeSet<usize> = listed.iter().copied().collect();
    let of_run = |run: &RunRecord| {
        let others = run.users.iter().enumerate().filter(|(user, _)| !listed.contains(user));
        OtherUsersRecord::of(others.map(|(_, user)| user))
    };
    let sums: Vec<(usize, OtherUsersRecord)> =
        grid.runs_at(capacity).map(|(policy, run)| (policy, of_run(run))).collect();
    let count = |of: fn(&OtherUsersRecord) -> u64| grouped(sums.first().map_or(0, |(_, sum)| of(sum)));
    LeftOut {
        users: count(|sum| sum.users),
        tasks: count(|sum| sum.totals.submitted),
        waits: sums
            .iter()
            .map(|(policy, sum)| LeftOutWait {
                policy: grid.policies[*policy].label.clone(),
                wait: sum.users_mean_wait_s.map_or(ABSENT.into(), duration),
            })
            .collect(),
    }
}

fn user_row(grid: &StudyGrid<'_>, capacity: usize, policy: usize, user: usize) -> Option<UserRow> {
    let record = grid.run(capacity, policy)?.users.get(user)?;
    let user_under = |policy: usize| grid.run(capacity, policy).map(|run| &run.users[user]);
    let waits: Vec<Option<f64>> =
        (0..grid.policies.len()).map(|policy| user_under(policy).and_then(|user| user.mean_wait_s)).collect();
    let intervals: Vec<Option<[f64; 2]>> =
        (0..grid.policies.len()).map(|policy| user_under(policy).and_then(|user| user.wait_interval_s)).collect();
    let known = || waits.iter().copied().flatten().filter(|wait| wait.is_finite());
    let shortest = known().fold(f64::INFINITY, f64::min);
    let longest = known().fold(f64::NEG_INFINITY, f64::max);
    let cell = |(wait, interval): (&Option<f64>, &Option<[f64; 2]>)| {
        let mut cell = Cell::duration(*wait).with_interval(interval.filter(|_| wait.is_some()));
        // If all policies are equal, none is marked.
        if shortest < longest {
            cell.mark = match *wait {
                Some(wait) if wait == shortest => "shortest",
                Some(wait) if wait == longest => "longest",
                _ => "",
            };
        }
        cell
    };
    let difference = waits[0].zip(record.mean_wait_s).filter(|_| policy > 0).map(|(old, new)| new - old);
    let is_noise = difference.is_some_and(|change| change != 0.0) && is_within_noise(grid, record);
    let interval = record.difference_interval_s.filter(|_| difference.is_some());
    let completed = format!("{} of {}", grouped(record.totals.completed), grouped(record.totals.submitted));
    Some(UserRow {
        name: record.name.clone(),
        tasks: grouped(record.totals.submitted),
        waits: waits.iter().zip(&intervals).map(cell).collect(),
        difference: Cell::difference(difference).within_noise(is_noise).with_interval(interval),
        noise: is_noise,
        p95: Cell::duration(record.p95_wait_s),
        slowdown: record.mean_bounded_slowdown.map(six_digits).map_or(ABSENT.into(), three_digits),
        nuwt: record.normalized.nuwt_per_pe.map_or(ABSENT.into(), |n| quotient(six_digits(n))),
        completion: Cell { text: ratio(record.completion_ratio), title: completed, ..Cell::default() },
    })
}

/// The fairness table at one capacity.
#[derive(Serialize)]
pub(super) struct FairnessGroup {
    capacity: String,
    rows: Vec<FairnessRow>,
}

#[derive(Serialize)]
struct FairnessRow {
    policy: String,
    users_mean_wait: Cell,
    mean_wait: Cell,
    jain: String,
    max_min: String,
    better: String,
    /// Those who differ by no more than the noise, of a repeated study.
    noise: String,
    same: String,
    worse: String,
    /// The part of the compared users who count as worse.
    share_worse: String,
    complete_more: String,
    complete_fewer: String,
    /// One entry per resource.
    utilization: Vec<String>,
}

/// Returns the fairness indices of all runs.
pub(super) fn fairness(grid: &StudyGrid<'_>) -> Vec<FairnessGroup> {
    let or_absent = |number: Option<f64>, text: fn(f64) -> String| number.map_or(ABSENT.into(), text);
    let row = |capacity: usize, (policy, run): (usize, &evenhand_study::record::RunRecord)| {
        let comparison = grid.pair(capacity, policy).map(|pair| pair.comparison);
        let count = |number: Option<u64>| number.map_or(ABSENT.into(), grouped);
        let interval = |estimate: fn(&RunNoise) -> Option<Estimate>| {
            run.noise.as_ref().and_then(estimate).map(|estimate| estimate.interval)
        };
        let verdict = comparison.map(Verdict::of);
        FairnessRow {
            policy: grid.policies[policy].label.clone(),
            users_mean_wait: Cell::duration(run.users_mean_wait_s)
                .within_noise(comparison.and_then(|c| c.noise.as_ref()).is_some_and(|noise| {
                    noise.users_mean_wait_difference_s.is_none_or(|difference| difference.includes_zero())
                }))
                .with_interval(interval(|noise| noise.users_mean_wait_s)),
            mean_wait: Cell::duration(run.mean_wait_s).with_interval(interval(|noise| noise.mean_wait_s)),
            jain: or_absent(run.jain_wait, ratio),
            max_min: or_absent(run.max_min_wait_ratio, three_digits),
            better: count(verdict.map(|verdict| verdict.better)),
            noise: count(verdict.and_then(|verdict| verdict.noise)),
            same: count(verdict.map(|verdict| verdict.same)),
            worse: count(verdict.map(|verdict| verdict.worse)),
            share_worse: or_absent(verdict.and_then(|verdict| verdict.share_worse()), percent),
            complete_more: count(comparison.map(|comparison| comparison.complete_more)),
            complete_fewer: count(comparison.map(|comparison| comparison.complete_fewer)),
            utilization: grid
                .resources()
                .iter()
                .map(|name| or_absent(run.utilization.get(*name).copied(), percent))
                .collect(),
        }
    };
    (0..grid.capacities.len())
        .map(|capacity| FairnessGroup {
            capacity: grid.capacities[capacity].label.clone(),
            rows: grid.runs_at(capacity).map(|run| row(capacity, run)).collect(),
        })
        .collect()
}

/// One simulation: its counts and its computing time.
#[derive(Serialize)]
pub(super) struct Simulation {
    id: String,
    submitted: String,
    rejected: String,
    started: String,
    completed: String,
    makespan: Cell,
    decisions: String,
    order_events: String,
    elapsed: Cell,
}

/// Returns all simulations in the record's order.
pub(super) fn simulations(grid: &StudyGrid<'_>) -> Vec<Simulation> {
    let row = |run: &evenhand_study::record::RunRecord| Simulation {
        id: run.id.clone(),
        submitted: grouped(run.totals.submitted),
        rejected: grouped(run.totals.rejected),
        started: grouped(run.totals.started),
        completed: grouped(run.totals.completed),
        makespan: Cell::duration(Some(run.makespan_s)),
        decisions: grouped(run.decisions),
        order_events: grouped(run.order_events),
        elapsed: Cell::duration(Some(run.elapsed_s)),
    };
    grid.record.runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_whose_ends_read_the_same_is_one_time() {
        assert_eq!(interval_between(60.0, 60.001), duration(60.0));
        assert!(interval_between(60.0, 90.0).contains(" to "));
    }
}
