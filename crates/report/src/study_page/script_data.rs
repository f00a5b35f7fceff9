//! The data of the page's script: all that it needs to redraw the tables and the bubbles.

use serde::Serialize;

use super::account_table::{AccountData, Tree, account_data};
use super::answer_sentences::completion_note;
use crate::ReportError;
use crate::chart::ScatterParts;
use crate::study_page::figures::{FigureWithData, Figures};
use crate::study_page::grid::StudyGrid;

#[derive(Serialize)]
struct Data<'a> {
    policies: Vec<&'a str>,
    capacities: Vec<&'a str>,
    /// Each listed user's index in the workload; the bubbles refer to users by it.
    subjects: Vec<usize>,
    users: Vec<&'a str>,
    /// Indexed by capacity, then by policy; `null` if the run is missing.
    runs: Vec<Vec<Option<Columns>>>,
    /// Indexed by capacity, then by policy; `null` if there is no comparison.
    pairs: Vec<Vec<Option<PairText>>>,
    accounts: Option<AccountData<'a>>,
}

/// The results of the users in one run, one array per column.
#[derive(Serialize)]
struct Columns {
    submitted: Vec<u64>,
    completed: Vec<u64>,
    ratio: Vec<f64>,
    wait: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    slowdown: Vec<Option<f64>>,
    nuwt: Vec<Option<f64>>,
    /// Of a repeated study: the intervals of the mean waits and of their differences, and whether these are beyond the
    /// noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseColumns>,
}

#[derive(Serialize)]
struct NoiseColumns {
    wait: Vec<Option<[f64; 2]>>,
    difference: Vec<Option<[f64; 2]>>,
    beyond: Vec<bool>,
}

/// The texts that depend on the chosen pair of runs.
#[derive(Serialize)]
struct PairText {
    waits: FigureText,
    completion: Option<FigureText>,
    completion_note: String,
}

#[derive(Serialize)]
struct FigureText {
    name: String,
    title: String,
    /// The parts of the drawing that the script replaces, and the scales by which it moves the bubbles.
    view: String,
    frame: String,
    names: String,
    x: String,
    y: String,
}

/// Returns the data as JSON without `<`, so that it cannot end the `script` element that contains it.
pub(super) fn to_json(grid: &StudyGrid<'_>, figures: &Figures, tree: &Tree<'_>) -> Result<String, ReportError> {
    let users = grid.listed_users();
    let first = grid.record.runs.first();
    let columns = |capacity: usize, policy: usize| {
        let run = grid.run(capacity, policy)?;
        let records = || users.iter().map(|&user| &run.users[user]);
        Some(Columns {
            submitted: records().map(|user| user.totals.submitted).collect(),
            completed: records().map(|user| user.totals.completed).collect(),
            ratio: records().map(|user| user.completion_ratio).collect(),
            // Unrounded: rounding must not decide which of two waits is longer.
            wait: records().map(|user| user.mean_wait_s).collect(),
            p95: records().map(|user| user.p95_wait_s).collect(),
            slowdown: records().map(|user| user.mean_bounded_slowdown.map(six_digits)).collect(),
            nuwt: records().map(|user| user.normalized.nuwt_per_pe.map(six_digits)).collect(),
            noise: grid.record.repeats.as_ref().map(|_| NoiseColumns {
                wait: records().map(|user| user.wait_interval_s).collect(),
                difference: records().map(|user| user.difference_interval_s).collect(),
                beyond: records().map(|user| user.beyond_noise).collect(),
            }),
        })
    };
    let pair = |capacity: usize, policy: usize| {
        let drawn = figures.pairs.iter().find(|pair| (pair.capacity, pair.policy) == (capacity, policy))?;
        let text = |drawn: &FigureWithData| {
            let ScatterParts { view, frame, names, x, y } = drawn.parts.clone()?;
            let (name, title) = (drawn.figure.name().into(), drawn.figure.title().into());
            Some(FigureText { name, title, view, frame, names, x, y })
        };
        Some(PairText {
            waits: text(&drawn.waits)?,
            completion: drawn.completion.as_ref().and_then(text),
            completion_note: completion_note(grid, capacity, policy),
        })
    };
    let data = Data {
        policies: grid.policies.iter().map(|policy| policy.label.as_str()).collect(),
        capacities: grid.capacities.iter().map(|capacity| capacity.label.as_str()).collect(),
        users: first.map_or(Vec::new(), |run| users.iter().map(|&user| run.users[user].name.as_str()).collect()),
        runs: by_capacity_and_policy(grid, columns),
        pairs: by_capacity_and_policy(grid, pair),
        subjects: users.clone(),
        accounts: account_data(grid, tree),
    };
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}

/// Returns `cell(capacity, policy)` for every cell of the grid.
pub(super) fn by_capacity_and_policy<T>(grid: &StudyGrid<'_>, cell: impl Fn(usize, usize) -> T) -> Vec<Vec<T>> {
    let row = |capacity: usize| (0..grid.policies.len()).map(|policy| cell(capacity, policy)).collect();
    (0..grid.capacities.len()).map(row).collect()
}

/// Rounds to six significant digits, twice as many as the page shows.
pub(super) fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}
