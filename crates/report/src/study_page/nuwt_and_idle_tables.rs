//! The tables of normalized wait times (NUWT) and of idle capacity, one row per run.

use evenhand_study::record::{NuwtSpread, RunRecord};
use serde::Serialize;

use super::user_and_fairness_tables::Cell;
use crate::format_numbers::{ABSENT, grouped, percent, quotient};
use crate::study_page::grid::StudyGrid;

/// The runs at one capacity.
#[derive(Serialize)]
pub(super) struct Group<Row> {
    capacity: String,
    rows: Vec<Row>,
}

fn groups<Row>(grid: &StudyGrid<'_>, row: impl Fn(String, &RunRecord) -> Row) -> Vec<Group<Row>> {
    (0..grid.capacities.len())
        .map(|capacity| Group {
            capacity: grid.capacities[capacity].label.clone(),
            rows: grid.runs_at(capacity).map(|(policy, run)| row(grid.policies[policy].label.clone(), run)).collect(),
        })
        .collect()
}

/// NUWT over the users of one run, by processor equivalents and by CPUs: mean, standard deviation, variance, F.
#[derive(Serialize)]
pub(super) struct NormalizedRow {
    policy: String,
    users: String,
    per_pe: [String; 4],
    per_cpu: [String; 4],
}

/// Returns the NUWT table, empty if no run has processors.
pub(super) fn normalized(grid: &StudyGrid<'_>) -> Vec<Group<NormalizedRow>> {
    let spread = |spread: &Option<NuwtSpread>| match spread {
        Some(s) => [s.mean, s.standard_deviation, s.variance, s.fairness].map(quotient),
        None => [ABSENT; 4].map(String::from),
    };
    if grid.record.runs.iter().all(|run| run.nuwt_per_pe.is_none()) {
        return Vec::new();
    }
    groups(grid, |policy, run| NormalizedRow {
        policy,
        users: run.nuwt_per_pe.map_or(ABSENT.into(), |s| grouped(s.users)),
        per_pe: spread(&run.nuwt_per_pe),
        per_cpu: spread(&run.nuwt_per_cpu),
    })
}

/// Idle capacity in one run while tasks waited.
#[derive(Serialize)]
pub(super) struct WasteRow {
    policy: String,
    queued: Cell,
    /// One entry per resource.
    idle: Vec<String>,
    /// One entry per pair of [`WasteTable::pairs`].
    stranded: Vec<String>,
}

/// The table of idle capacity.
#[derive(Serialize)]
pub(super) struct WasteTable {
    resources: Vec<String>,
    /// Pairs of (idle resource, lacking resource).
    pairs: Vec<(String, String)>,
    groups: Vec<Group<WasteRow>>,
}

/// Returns the table of idle capacity, or `None` if no run measured it.
pub(super) fn waste(grid: &StudyGrid<'_>) -> Option<WasteTable> {
    let first = grid.record.runs.iter().find_map(|run| run.waste.as_ref())?;
    let resources: Vec<String> = first.idle_while_queued.keys().cloned().collect();
    let pairs: Vec<(String, String)> =
        first.stranded.iter().map(|pair| (pair.resource.clone(), pair.lacking.clone())).collect();
    let row = |policy, run: &RunRecord| {
        let waste = run.waste.clone().unwrap_or_default();
        let shown = |share: Option<f64>| share.map_or(ABSENT.into(), percent);
        let stranded = |(resource, lacking): &(String, String)| {
            let pair = waste.stranded.iter().find(|pair| pair.resource == *resource && pair.lacking == *lacking);
            shown(pair.map(|pair| pair.share))
        };
        WasteRow {
            policy,
            queued: Cell::duration(run.waste.as_ref().map(|waste| waste.queued_s)),
            idle: resources.iter().map(|r| shown(waste.idle_while_queued.get(r).copied())).collect(),
            stranded: pairs.iter().map(stranded).collect(),
        }
    };
    let groups = groups(grid, row);
    Some(WasteTable { resources, pairs, groups })
}
