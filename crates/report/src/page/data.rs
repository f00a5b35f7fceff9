//! The data that the page's script works on: what it needs to redraw the table and the bubbles.

use serde::Serialize;

use super::accounts::{AccountData, Tree, account_data};
use super::answer::completion_note;
use crate::ReportError;
use crate::figures::Figures;
use crate::view::View;

#[derive(Serialize)]
struct Data<'a> {
    policies: Vec<&'a str>,
    capacities: Vec<&'a str>,
    /// The place in the workload's order of each user of the page: the bubbles know users by it.
    subjects: Vec<usize>,
    users: Vec<&'a str>,
    /// By capacity, by policy; `null` if missing.
    runs: Vec<Vec<Option<Columns>>>,
    /// By capacity, by policy; `null` if there is nothing to compare.
    pairs: Vec<Vec<Option<PairText>>>,
    accounts: Option<AccountData<'a>>,
}

/// The users of a run, a column a quantity.
#[derive(Serialize)]
struct Columns {
    submitted: Vec<u64>,
    completed: Vec<u64>,
    ratio: Vec<f64>,
    wait: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    slowdown: Vec<Option<f64>>,
    nuwt: Vec<Option<f64>>,
}

/// What the page says of a pair of runs.
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
}

/// The data as JSON that can stand in a `script` element: no `<`, so no end of the element.
pub(super) fn json(view: &View<'_>, figures: &Figures, tree: &Tree<'_>) -> Result<String, ReportError> {
    let users = view.shown_users();
    let first = view.record.runs.first();
    let columns = |capacity: usize, policy: usize| {
        let run = view.run(capacity, policy)?;
        let records = || users.iter().map(|&user| &run.users[user]);
        Some(Columns {
            submitted: records().map(|user| user.totals.submitted).collect(),
            completed: records().map(|user| user.totals.completed).collect(),
            ratio: records().map(|user| user.completion_ratio).collect(),
            // All digits: which of two waits is longer must not depend on rounding.
            wait: records().map(|user| user.mean_wait_s).collect(),
            p95: records().map(|user| user.p95_wait_s).collect(),
            slowdown: records().map(|user| user.mean_bounded_slowdown.map(six_digits)).collect(),
            nuwt: records().map(|user| user.normalized.nuwt_per_pe.map(six_digits)).collect(),
        })
    };
    let pair = |capacity: usize, policy: usize| {
        let drawn = figures.pairs.iter().find(|pair| (pair.capacity, pair.policy) == (capacity, policy))?;
        let text =
            |figure: &crate::chart::Figure| FigureText { name: figure.name().into(), title: figure.title().into() };
        Some(PairText {
            waits: text(&drawn.waits.figure),
            completion: drawn.completion.as_ref().map(|drawn| text(&drawn.figure)),
            completion_note: completion_note(view, capacity, policy),
        })
    };
    let data = Data {
        policies: view.policies.iter().map(|policy| policy.label.as_str()).collect(),
        capacities: view.capacities.iter().map(|capacity| capacity.label.as_str()).collect(),
        users: first.map_or(Vec::new(), |run| users.iter().map(|&user| run.users[user].name.as_str()).collect()),
        runs: grid(view, columns),
        pairs: grid(view, pair),
        subjects: users.clone(),
        accounts: account_data(view, tree),
    };
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}

pub(super) fn grid<T>(view: &View<'_>, cell: impl Fn(usize, usize) -> T) -> Vec<Vec<T>> {
    let row = |capacity: usize| (0..view.policies.len()).map(|policy| cell(capacity, policy)).collect();
    (0..view.capacities.len()).map(row).collect()
}

/// Twice as many digits as are shown.
pub(super) fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}
