//! Tables of waits against use and of what lay idle, a row a run.

use evenhand_study::record::{NuwtSpread, RunRecord};
use serde::Serialize;

use super::tables::Cell;
use crate::format::{ABSENT, grouped, percent, quotient};
use crate::view::View;

/// The runs at one capacity.
#[derive(Serialize)]
pub(super) struct Group<Row> {
    capacity: String,
    rows: Vec<Row>,
}

fn groups<Row>(view: &View<'_>, row: impl Fn(String, &RunRecord) -> Row) -> Vec<Group<Row>> {
    (0..view.capacities.len())
        .map(|capacity| Group {
            capacity: view.capacities[capacity].label.clone(),
            rows: view.runs_at(capacity).map(|(policy, run)| row(view.policies[policy].label.clone(), run)).collect(),
        })
        .collect()
}

/// NUWT in a run: mean, standard deviation, variance and F, over areas in equivalents and in CPUs.
#[derive(Serialize)]
pub(super) struct NormalizedRow {
    policy: String,
    users: String,
    per_pe: [String; 4],
    per_cpu: [String; 4],
}

/// Empty if no run says what processors are.
pub(super) fn normalized(view: &View<'_>) -> Vec<Group<NormalizedRow>> {
    let spread = |spread: &Option<NuwtSpread>| match spread {
        Some(s) => [s.mean, s.standard_deviation, s.variance, s.fairness].map(quotient),
        None => [ABSENT; 4].map(String::from),
    };
    if view.record.runs.iter().all(|run| run.nuwt_per_pe.is_none()) {
        return Vec::new();
    }
    groups(view, |policy, run| NormalizedRow {
        policy,
        users: run.nuwt_per_pe.map_or(ABSENT.into(), |s| grouped(s.users)),
        per_pe: spread(&run.nuwt_per_pe),
        per_cpu: spread(&run.nuwt_per_cpu),
    })
}

/// What lay idle in a run while tasks waited.
#[derive(Serialize)]
pub(super) struct WasteRow {
    policy: String,
    queued: Cell,
    /// By resource.
    idle: Vec<String>,
    /// By pair.
    stranded: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct WasteTable {
    resources: Vec<String>,
    /// What lies idle, what is gone.
    pairs: Vec<(String, String)>,
    groups: Vec<Group<WasteRow>>,
}

/// `None` if no run was measured.
pub(super) fn waste(view: &View<'_>) -> Option<WasteTable> {
    let first = view.record.runs.iter().find_map(|run| run.waste.as_ref())?;
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
    let groups = groups(view, row);
    Some(WasteTable { resources, pairs, groups })
}
