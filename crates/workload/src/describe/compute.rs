//! Computes the statistics of a workload.

use evenhand_model::{Amount, NO_TIME, Workload, mean_use, to_f64};
use rayon::prelude::*;

use super::statistics::{Gaps, Sorted, concentration, spearman, tail};
use super::{Bursts, CommonVector, Description, Distribution, ResourceDescription};

/// The nanoseconds in a second.
const SECOND: f64 = 1e9;
/// The longest time between consecutive tasks of a burst, in nanoseconds.
const BURST_GAP: u64 = 1_000_000;

/// Computes the statistics of a workload, in O(n log n) for n rows, in parallel.
pub fn describe(w: &Workload) -> Description {
    let c = w.columns();
    let r = mean_use(w);
    let r_steps: Vec<f64> = w.resources().iter().zip(&r.units).map(|(res, u)| to_f64(u) * res.steps() as f64).collect();
    let per_demand = tasks_per(w, w.demands().len(), |row| c.demand[row].index());
    let per_user = tasks_per(w, w.users().len(), |row| c.user[row].index());
    let held = held_per_user(w);
    let first = c.submit.first().copied().unwrap_or_default();
    let tasks = w.tasks();
    let dominant_tasks = dominant(
        w.resources().len(),
        &r_steps,
        w.demands().rows().map(|(id, row)| (row.iter().map(|a| a.0 as f64).collect(), per_demand[id.index()] as f64)),
    );
    let dominant_users = dominant(w.resources().len(), &r_steps, held.iter().map(|h| (h.clone(), 1.0)));
    let peak = peak_use(w);
    let resources = w.resources().iter().enumerate().map(|(i, res)| {
        let demands = w.demands().rows().map(|(id, row)| (row[i].0, per_demand[id.index()])).collect();
        ResourceDescription {
            name: res.name.clone(),
            unit: res.unit.clone(),
            mean_use: to_f64(&r.units[i]),
            peak_use: peak[i] as f64 / res.steps() as f64,
            demand: Sorted::weighted(demands).distribution(res.steps() as f64),
            dominant_tasks: dominant_tasks[i],
            dominant_users: dominant_users[i],
        }
    });
    let pairs: Vec<(u64, u64, u64)> = match w.resources().len() {
        0 | 1 => Vec::new(),
        _ => w.demands().rows().map(|(id, row)| (row[0].0, row[1].0, per_demand[id.index()])).collect(),
    };
    Description {
        tasks,
        rows: w.len() as u64,
        users: w.users().len() as u64,
        accounts: w.accounts().len() as u64,
        queues: w.queues().len() as u64,
        demand_vectors: w.demands().len() as u64,
        first_submit_s: first.secs_f64(),
        span_s: (r.last_finish.max(c.submit.last().copied().unwrap_or_default()) - first).secs_f64(),
        starts_known: c.start.is_some(),
        resources: resources.collect(),
        demand_correlation: spearman(&pairs),
        common_vectors: common_vectors(w, &per_demand, 10),
        tasks_per_user: tail(&per_user),
        task_shares: concentration(per_user.iter().map(|&n| n as f64).collect()),
        use_shares: concentration(largest_shares(&held)),
        duration_s: sorted(w, |row| Some(c.duration[row].nanos())).distribution(SECOND),
        wait_s: known(
            w,
            c.start.as_ref().map(|s| {
                move |row: usize| {
                    Some(s[row]).filter(|&s| s != NO_TIME).map(|s| s.saturating_sub(c.submit[row].nanos()))
                }
            }),
        ),
        requested_s: known(w, c.requested.as_ref().map(|q| move |row: usize| Some(q[row]).filter(|&q| q != NO_TIME))),
        task_interarrival: {
            let mut gaps = Gaps::default();
            c.submit.iter().enumerate().for_each(|(row, t)| gaps.add(t.nanos(), u64::from(w.count(row))));
            gaps.finish()
        },
        bursts: bursts(w),
    }
}

/// Counts the tasks of each of `ids` ids.
fn tasks_per(w: &Workload, ids: usize, id: impl Fn(usize) -> usize) -> Vec<u64> {
    let mut tasks = vec![0; ids];
    (0..w.len()).for_each(|row| tasks[id(row)] += u64::from(w.count(row)));
    tasks
}

/// Returns the values of the rows that have one, sorted.
pub(super) fn sorted(w: &Workload, value: impl Fn(usize) -> Option<u64>) -> Sorted {
    let rows = 0..w.len();
    if w.columns().count.is_none() {
        return Sorted::single(rows.filter_map(value).collect());
    }
    Sorted::weighted(rows.filter_map(|row| Some((value(row)?, u64::from(w.count(row))))).collect())
}

fn known(w: &Workload, value: Option<impl Fn(usize) -> Option<u64>>) -> Option<Distribution> {
    Some(sorted(w, value?)).filter(|s| s.tasks() > 0).map(|s| s.distribution(SECOND))
}

/// Returns the resource-time of each user, in steps times seconds, one entry per resource.
fn held_per_user(w: &Workload) -> Vec<Vec<f64>> {
    let c = w.columns();
    let mut held = vec![vec![0.0; w.resources().len()]; w.users().len()];
    for row in 0..w.len() {
        let time = c.duration[row].nanos() as f64 / SECOND * f64::from(w.count(row));
        for (sum, amount) in held[c.user[row].index()].iter_mut().zip(w.amounts(row)) {
            *sum += time * amount.0 as f64;
        }
    }
    held
}

/// Returns the largest fraction of the resource-time of each user, over all resources.
fn largest_shares(held: &[Vec<f64>]) -> Vec<f64> {
    let width = held.first().map_or(0, Vec::len);
    let totals: Vec<f64> = (0..width).map(|r| held.iter().map(|h| h[r]).sum()).collect();
    let share = |(h, &total): (&f64, &f64)| if total > 0.0 { h / total } else { 0.0 };
    held.iter().map(|h| h.iter().zip(&totals).map(share).fold(0.0, f64::max)).collect()
}

/// Returns, for each resource, the fraction of the weight of vectors whose dominant resource (the largest entry
/// relative to R) it is. Ties go to the first resource.
fn dominant(width: usize, r: &[f64], vectors: impl Iterator<Item = (Vec<f64>, f64)>) -> Vec<f64> {
    let mut on = vec![0.0; width];
    for (vector, weight) in vectors {
        let relative = |i: usize| if r[i] > 0.0 { vector[i] / r[i] } else { 0.0 };
        let largest = (1..width).fold(0, |best, i| if relative(i) > relative(best) { i } else { best });
        on[largest] += weight;
    }
    let sum: f64 = on.iter().sum();
    on.into_iter().map(|w| if sum > 0.0 { w / sum } else { 0.0 }).collect()
}

/// Returns the most common vectors, at most `limit`; ties go to the smaller id.
pub(super) fn common_vectors(w: &Workload, per_demand: &[u64], limit: usize) -> Vec<CommonVector> {
    let mut order: Vec<usize> = (0..per_demand.len()).collect();
    order.sort_by_key(|&id| (std::cmp::Reverse(per_demand[id]), id));
    let value = |row: &[Amount]| w.resources().iter().zip(row).map(|(r, &a)| r.value(a)).collect();
    let all = w.tasks().max(1) as f64;
    order
        .into_iter()
        .take(limit)
        .map(|id| CommonVector {
            amounts: value(w.demands().row(evenhand_model::DemandId(id as u32))),
            share: per_demand[id] as f64 / all,
        })
        .collect()
}

/// Returns the interval in which a row held its amounts, in nanoseconds.
pub(super) fn held_from_to(w: &Workload, row: usize) -> (u64, u64) {
    let c = w.columns();
    let start = w.start(row).unwrap_or(c.submit[row]);
    (start.nanos(), (start + c.duration[row]).nanos())
}

/// Returns the largest amount of each resource held at one time, in steps. At the same instant, tasks finish before
/// others start.
fn peak_use(w: &Workload) -> Vec<u128> {
    let mut starts: Vec<(u64, u32)> = Vec::with_capacity(w.len());
    let mut ends: Vec<(u64, u32)> = Vec::with_capacity(w.len());
    for row in 0..w.len() {
        let (from, to) = held_from_to(w, row);
        if from < to {
            starts.push((from, row as u32));
            ends.push((to, row as u32));
        }
    }
    rayon::join(|| starts.par_sort_unstable(), || ends.par_sort_unstable());
    let mut held = vec![0u128; w.resources().len()];
    let mut peak = held.clone();
    let mut ended = ends.into_iter().peekable();
    for (from, row) in starts {
        while let Some((_, done)) = ended.next_if(|e| e.0 <= from) {
            let n = u128::from(w.count(done as usize));
            held.iter_mut().zip(w.amounts(done as usize)).for_each(|(h, a)| *h -= n * u128::from(a.0));
        }
        let n = u128::from(w.count(row as usize));
        for ((h, p), a) in held.iter_mut().zip(&mut peak).zip(w.amounts(row as usize)) {
            *h += n * u128::from(a.0);
            *p = (*p).max(*h);
        }
    }
    peak
}

fn bursts(w: &Workload) -> Bursts {
    let c = w.columns();
    // The current burst of each user: last submission, vector, tasks.
    let mut open: Vec<Option<(u64, u32, u64)>> = vec![None; w.users().len()];
    let mut sizes = Vec::new();
    let mut gaps = Gaps::default();
    for row in 0..w.len() {
        let (t, demand, count) = (c.submit[row].nanos(), c.demand[row].0, u64::from(w.count(row)));
        match &mut open[c.user[row].index()] {
            Some((last, vector, tasks)) if *vector == demand && t - *last <= BURST_GAP => {
                *last = t;
                *tasks += count;
            }
            slot => {
                sizes.extend(slot.replace((t, demand, count)).map(|(_, _, tasks)| tasks));
                gaps.add(t, 1);
            }
        }
    }
    sizes.extend(open.into_iter().flatten().map(|(_, _, tasks)| tasks));
    let single = sizes.iter().filter(|&&s| s == 1).count() as f64 / sizes.len().max(1) as f64;
    let (bursts, tasks) = (sizes.len() as u64, Sorted::single(sizes).distribution(1.0));
    Bursts { bursts, single, tasks, interarrival: gaps.finish() }
}
