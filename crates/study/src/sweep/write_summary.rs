//! Writes the summary files of a sweep from the results of its points alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::RunRecord;
use crate::{Backfill, compare};
use evenhand_documents::{Cell, Csv};

use crate::sweep::grid::Grid;
use crate::sweep::point::Point;
use crate::sweep::record::{AgainstRecord, AxesRecord, PointRecord, SweepRecord};
use crate::sweep::sweep_folder::{Folder, StoredResult, SweepError};

/// Writes `results.csv`, `sweep.json` and `timing.csv` from the results that the folder holds.
/// All but `timing.csv` are byte-equal whichever engine ran the points.
///
/// # Errors
/// Returns an error if a file cannot be written, or if results of one workload have different contents.
pub fn summarize(
    grid: &Grid,
    points: &[Point],
    digests: &[String],
    folder: &Folder,
) -> Result<SweepRecord, SweepError> {
    let mut record = SweepRecord { version: env!("CARGO_PKG_VERSION").to_string(), ..SweepRecord::default() };
    // By workload: the digest of its content, and the first point that has it.
    let mut contents: BTreeMap<usize, (String, usize)> = BTreeMap::new();
    let mut timing = Csv::new(&["point", "elapsed_s"]);
    // The first policy's run of the current group; the points of a group are adjacent.
    let mut base: Option<(usize, RunRecord)> = None;
    for (point, digest) in points.iter().zip(digests) {
        let axes = axes(grid, point);
        let Some(StoredResult { workload, run, .. }) = folder.stored_result(digest) else {
            record.missing.push(axes);
            continue;
        };
        match contents.get(&point.workload) {
            None => {
                contents.insert(point.workload, (workload.digest.clone(), point.number));
                record.workloads.push(workload_named(workload, &axes));
            }
            Some((content, first)) if *content != workload.digest => {
                return Err(SweepError::Mixed {
                    workload: axes.workload,
                    dir: folder.dir().to_path_buf(),
                    first: *first,
                    second: point.number,
                });
            }
            Some(_) => {}
        }
        timing.row(&[Cell::Count(point.number as u64), Cell::Number(Some(run.elapsed_s))]);
        let other = base.as_ref().filter(|(number, _)| *number == point.base && point.number != point.base);
        let against = other.map(|(number, other)| against(*number, &run, other));
        record.points.push(point_record(axes, &run, against));
        if point.number == point.base {
            base = Some((point.number, run));
        }
    }
    folder.write("results.csv", results(&record).as_bytes())?;
    folder.write_json("sweep.json", &record)?;
    folder.write("timing.csv", timing.finish().as_bytes())?;
    Ok(record)
}

fn workload_named(mut workload: crate::record::WorkloadRecord, axes: &AxesRecord) -> crate::record::WorkloadRecord {
    workload.source = match axes.seed {
        Some(seed) => format!("{}, seed {seed}", axes.workload),
        None => axes.workload.clone(),
    };
    workload
}

/// The option that was the first axis of settings; it has a field and a column of its own.
const FIRST_AXIS: &str = "sdrf-key";

fn axes(grid: &Grid, point: &Point) -> AxesRecord {
    let workload = &grid.workloads[point.workload];
    AxesRecord {
        point: point.number,
        workload: workload.name(),
        seed: workload.seed(),
        weights: grid.weights[point.weights].name().to_string(),
        until: if point.until_trace_end { "trace-end" } else { "finished" }.to_string(),
        no_blocking: point.no_blocking,
        scheduler: (grid.schedulers[point.scheduler] != Backfill::None).then(|| point.scheduler(grid)),
        capacity: grid.capacities[point.capacity].name().to_string(),
        policy: grid.policies[point.policy].name.to_string(),
        sdrf_key: point.setting(grid, FIRST_AXIS).map(String::from),
        decay: point.decay(grid).map(|d| d.name.clone()),
        settings: (grid.setting_axes.iter())
            .filter(|axis| axis.option.option != FIRST_AXIS)
            .filter_map(|axis| {
                Some((axis.option.option.to_string(), point.setting(grid, axis.option.option)?.to_string()))
            })
            .collect(),
    }
}

fn point_record(axes: AxesRecord, run: &RunRecord, against: Option<AgainstRecord>) -> PointRecord {
    PointRecord {
        axes,
        capacity_units: run.capacity.clone(),
        delta: run.delta,
        tau_s: run.tau_s,
        mean_wait_s: run.mean_wait_s,
        users_mean_wait_s: run.users_mean_wait_s,
        jain_wait: run.jain_wait,
        max_min_wait_ratio: run.max_min_wait_ratio,
        utilization: run.utilization.clone(),
        makespan_s: run.makespan_s,
        totals: run.totals,
        decisions: run.decisions,
        order_events: run.order_events,
        against,
    }
}

fn against(number: usize, run: &RunRecord, other: &RunRecord) -> AgainstRecord {
    let compared = compare(run, other);
    AgainstRecord {
        point: number,
        users_better: compared.users_better,
        users_worse: compared.users_worse,
        users_same: compared.users_same,
        mean_user_wait_reduction: compared.mean_user_wait_reduction,
        users_mean_wait_reduction: compared.users_mean_wait_reduction,
    }
}

/// Returns `results.csv`, with one row per point.
fn results(record: &SweepRecord) -> String {
    // The resources of all workloads, in the order of their first occurrence.
    let mut resources: Vec<&str> = Vec::new();
    for name in record.points.iter().flat_map(|p| p.utilization.keys()) {
        if !resources.contains(&name.as_str()) {
            resources.push(name);
        }
    }
    let column = |what: &str| resources.iter().map(|r| format!("{what}_{r}")).collect::<Vec<_>>();
    let (capacities, utilizations) = (column("capacity"), column("utilization"));
    let mut columns: Vec<&str> = vec![
        "point",
        "workload",
        "seed",
        "weights",
        "until",
        "no_blocking",
        "capacity",
        "policy",
        "sdrf_key",
        "decay",
        "delta",
        "tau_s",
    ];
    columns.extend(capacities.iter().map(String::as_str));
    columns.extend(["mean_wait_s", "users_mean_wait_s", "jain_wait", "max_min_wait_ratio"]);
    columns.extend(utilizations.iter().map(String::as_str));
    columns.extend(["makespan_s", "submitted", "rejected", "started", "completed", "decisions", "order_events"]);
    columns.extend(["against", "users_better", "users_worse", "users_same"]);
    columns.extend(["mean_user_wait_reduction", "users_mean_wait_reduction"]);
    let settings: BTreeSet<&str> =
        record.points.iter().flat_map(|p| p.axes.settings.keys()).map(String::as_str).collect();
    columns.extend(&settings);
    let has_schedulers = record.points.iter().any(|p| p.axes.scheduler.is_some());
    columns.extend(has_schedulers.then_some("scheduler"));
    let mut csv = Csv::new(&columns);
    for p in &record.points {
        let a = &p.axes;
        let (count, number) = (|n: u64| Cell::Count(n), |n: Option<f64>| Cell::Number(n));
        let text = |t: &'static str| Cell::Text(t);
        let maybe = |n: Option<u64>| n.map_or(Cell::Number(None), Cell::Count);
        let mut row = vec![
            count(a.point as u64),
            Cell::Text(&a.workload),
            maybe(a.seed),
            Cell::Text(&a.weights),
            Cell::Text(&a.until),
            text(if a.no_blocking { "true" } else { "false" }),
            Cell::Text(&a.capacity),
            Cell::Text(&a.policy),
            Cell::Text(a.sdrf_key.as_deref().unwrap_or_default()),
            Cell::Text(a.decay.as_deref().unwrap_or_default()),
            number(p.delta),
            number(p.tau_s),
        ];
        row.extend(resources.iter().map(|r| number(p.capacity_units.get(*r).copied())));
        row.extend([p.mean_wait_s, p.users_mean_wait_s, p.jain_wait, p.max_min_wait_ratio].map(number));
        row.extend(resources.iter().map(|r| number(p.utilization.get(*r).copied())));
        row.push(number(Some(p.makespan_s)));
        let t = &p.totals;
        row.extend([t.submitted, t.rejected, t.started, t.completed, p.decisions, p.order_events].map(count));
        let against = p.against.as_ref();
        row.push(maybe(against.map(|x| x.point as u64)));
        row.extend([against.map(|x| x.users_better), against.map(|x| x.users_worse)].map(maybe));
        row.push(maybe(against.map(|x| x.users_same)));
        row.push(number(against.and_then(|x| x.mean_user_wait_reduction)));
        row.push(number(against.and_then(|x| x.users_mean_wait_reduction)));
        row.extend(settings.iter().map(|name| Cell::Text(a.settings.get(*name).map_or("", String::as_str))));
        row.extend(has_schedulers.then(|| Cell::Text(a.scheduler.as_deref().unwrap_or("strict"))));
        csv.row(&row);
    }
    csv.finish()
}
