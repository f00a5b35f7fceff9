//! Computes the points of the figures of a description; the report crate draws them.

use evenhand_model::Workload;
use serde::Serialize;

use super::compute::{common_vectors, held_from_to, sorted};

/// The number of bins in [`DescriptionPlots::use_over_time`].
const BINS: usize = 400;
/// The largest number of points of a curve over users or tasks.
const POINTS: usize = 400;
/// The largest number of vectors in the figure of demands.
const VECTORS: usize = 500;

/// The data of the figures of a description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescriptionPlots {
    /// The rank of a user, from 1, and its tasks, in decreasing order; evenly spaced in log rank if there are many
    /// users.
    pub tasks_by_rank: Vec<(u64, u64)>,
    /// The start of the first bin, which is the first start of a task, in seconds.
    pub use_start_s: f64,
    /// The width of a bin of [`use_over_time`](DescriptionPlots::use_over_time), in seconds.
    pub use_bin_s: f64,
    /// For each resource, the time mean of the amount held in each bin, in its unit.
    pub use_over_time: Vec<Vec<f64>>,
    /// The most common demand vectors.
    pub vectors: Vec<VectorPoint>,
    /// The cumulative distribution of run times: seconds, and the fraction of tasks that run at most that long.
    pub duration_cdf: Vec<(f64, f64)>,
}

/// A demand vector in the figure of demands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorPoint {
    /// The amounts, in the order of the resources.
    pub amounts: Vec<f64>,
    /// The number of tasks with this vector.
    pub tasks: u64,
}

/// Computes the data of the figures of a workload.
pub fn describe_plots(w: &Workload) -> DescriptionPlots {
    let c = w.columns();
    let (mut per_user, mut per_demand) = (vec![0u64; w.users().len()], vec![0u64; w.demands().len()]);
    for row in 0..w.len() {
        per_user[c.user[row].index()] += u64::from(w.count(row));
        per_demand[c.demand[row].index()] += u64::from(w.count(row));
    }
    per_user.sort_unstable_by(|a, b| b.cmp(a));
    let durations = sorted(w, |row| Some(c.duration[row].nanos()));
    let (use_start_s, use_bin_s, use_over_time) = use_over_time(w);
    DescriptionPlots {
        tasks_by_rank: log_spaced(per_user.len()).map(|i| (i as u64 + 1, per_user[i])).collect(),
        use_start_s,
        use_bin_s,
        use_over_time,
        vectors: common_vectors(w, &per_demand, VECTORS)
            .into_iter()
            .map(|v| VectorPoint { tasks: (v.share * w.tasks() as f64).round() as u64, amounts: v.amounts })
            .collect(),
        duration_cdf: (1..=POINTS)
            .map(|i| i as f64 / POINTS as f64)
            .map(|p| (durations.quantile(p) as f64 / 1e9, p))
            .collect(),
    }
}

/// Returns about [`POINTS`] indexes below `n`, evenly spaced in their logarithm, among them the first and the last.
fn log_spaced(n: usize) -> impl Iterator<Item = usize> {
    let step = (n.max(2) as f64).ln() / POINTS as f64;
    let mut last = None;
    (0..=POINTS)
        .map(move |i| if n <= POINTS { i } else { ((i as f64 * step).exp().round() as usize).min(n) - 1 })
        .filter(move |&i| i < n && last.replace(i) != Some(i))
}

fn use_over_time(w: &Workload) -> (f64, f64, Vec<Vec<f64>>) {
    let (first, last) =
        (0..w.len()).map(|row| held_from_to(w, row)).fold((u64::MAX, 0), |(a, b), (from, to)| (a.min(from), b.max(to)));
    let width = last.saturating_sub(first).div_ceil(BINS as u64).max(1);
    let demands = w.demands().len();
    // The area of a bin is (tasks that run throughout the bin) x width + (parts of tasks that start or end in it). So a
    // row changes at most two bins and one running sum.
    let m = w.resources().len();
    let (mut area, mut lasting) = (vec![0.0; BINS * m], vec![0.0; (BINS + 1) * m]);
    let values: Vec<f64> =
        w.demands().rows().flat_map(|(_, row)| w.resources().iter().zip(row).map(|(r, &a)| r.value(a))).collect();
    debug_assert_eq!(values.len(), demands * m);
    for row in 0..w.len() {
        let (from, to) = held_from_to(w, row);
        let (from, to) = (from - first, to - first);
        let bin = |t: u64| ((t / width) as usize).min(BINS - 1);
        let (b0, b1) = (bin(from), bin(to));
        let vector = &values[w.columns().demand[row].index() * m..][..m];
        let count = f64::from(w.count(row));
        for (r, value) in vector.iter().map(|v| v * count).enumerate() {
            if b0 == b1 {
                area[b0 * m + r] += value * (to - from) as f64;
                continue;
            }
            area[b0 * m + r] += value * ((b0 as u64 + 1) * width - from) as f64;
            area[b1 * m + r] += value * (to - b1 as u64 * width) as f64;
            lasting[(b0 + 1) * m + r] += value;
            lasting[b1 * m + r] -= value;
        }
    }
    let series = (0..m)
        .map(|r| {
            let mut running = 0.0;
            (0..BINS)
                .map(|b| {
                    running += lasting[b * m + r];
                    // Cancellation can leave a small negative number.
                    (running + area[b * m + r] / width as f64).max(0.0)
                })
                .collect()
        })
        .collect();
    (first as f64 / 1e9, width as f64 / 1e9, series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_thinned_but_keep_both_ends() {
        for n in [1, 2, 400, 401, 10_000, 1_000_000] {
            let ranks: Vec<usize> = log_spaced(n).collect();
            assert_eq!((ranks[0], *ranks.last().unwrap()), (0, n - 1));
            assert!(ranks.is_sorted_by(|a, b| a < b) && ranks.len() <= POINTS + 1);
        }
    }
}
