//! Metrics of a simulation, per user and in total.

use evenhand_model::{Capacity, Span, UserId, Workload};
use serde::{Deserialize, Serialize};

use crate::normalized_wait::{AcceptedTask, NormalizedWait, NuwtSpread, Sums, TaskProcessors};
use crate::series::{Series, SeriesBuilder};
use crate::{Simulated, UserTasks};

/// Run times below this count as this in the bounded slowdown, as is customary.
const BOUND: Span = Span::from_secs(10);

/// Counts of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Submitted, rejected ones included.
    pub submitted: u64,
    /// Larger than the capacity, so never queued.
    pub rejected: u64,
    /// Started.
    pub started: u64,
    /// Finished by the end of the run.
    pub completed: u64,
}

impl Totals {
    /// Adds the counts of other tasks.
    pub fn add(&mut self, other: &Totals) {
        self.submitted += other.submitted;
        self.rejected += other.rejected;
        self.started += other.started;
        self.completed += other.completed;
    }
}

/// Metrics of one user in one run. Numbers are absent for a user none of whose tasks started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserRecord {
    /// The user's name.
    pub name: String,
    /// The counts of its tasks.
    #[serde(flatten)]
    pub totals: Totals,
    /// Mean wait of its started tasks, from submission to start.
    pub mean_wait_s: Option<f64>,
    /// The smallest wait that at least 95 % of its started tasks do not exceed (nearest rank).
    pub p95_wait_s: Option<f64>,
    /// Mean of max(1, (wait + run) / max(run, 10 s)) over its started tasks.
    pub mean_bounded_slowdown: Option<f64>,
    /// completed / submitted.
    pub completion_ratio: f64,
    /// Its waits against what it used.
    #[serde(flatten)]
    pub normalized: NormalizedWait,
    /// From its first submission to the end of its last task; absent if one did not end, and where submissions are those of
    /// the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_s: Option<f64>,
    /// The interval in which its mean wait lies with 95 % probability in another repeat of the run; absent without
    /// repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_interval_s: Option<[f64; 2]>,
    /// The same of the difference from its mean wait under the policy that all are compared with, repeat by repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_interval_s: Option<[f64; 2]>,
    /// Whether that difference, and the one in the log itself, are beyond the noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond_noise: bool,
}

/// Everything measured of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// One entry a user, in the workload's order of users.
    pub users: Vec<UserRecord>,
    /// All users together.
    pub totals: Totals,
    /// Mean wait over all started tasks; `None` if none started.
    pub mean_wait_s: Option<f64>,
    /// Mean bounded slowdown over all started tasks; `None` if none started.
    pub mean_bounded_slowdown: Option<f64>,
    /// Mean over users of their mean waits (users with a started task).
    pub users_mean_wait_s: Option<f64>,
    /// Jain's index over users' mean waits: (sum x)^2 / (n sum x^2); 1 if no user waits.
    pub jain_wait: Option<f64>,
    /// Largest over smallest of the users' mean waits; `None` if the smallest is 0.
    pub max_min_wait_ratio: Option<f64>,
    /// Time mean of what was held over capacity, by resource, from the first submission to the end.
    pub utilization: Vec<f64>,
    /// From the first submission to the last instant simulated.
    pub makespan: Span,
    /// Spread of the users' NUWT over CPU areas; `None` if no user has one.
    pub nuwt_per_cpu: Option<NuwtSpread>,
    /// The same over areas in processor equivalents.
    pub nuwt_per_pe: Option<NuwtSpread>,
    /// Curves over time.
    pub series: Series,
}

impl Metrics {
    /// Measures a run. Without `processors` nothing is known of areas.
    pub fn measure(
        workload: &Workload,
        tasks: &UserTasks,
        capacity: &Capacity,
        run: &Simulated,
        processors: Option<&TaskProcessors<'_>>,
    ) -> Metrics {
        let origin = workload.columns().submit.first().copied().unwrap_or_default();
        let mut series = SeriesBuilder::new(workload, origin, run.end);
        let mut waits = Vec::new();
        let mut all = Sums::default();
        let users: Vec<UserRecord> = workload
            .users()
            .iter()
            .enumerate()
            .map(|(u, name)| {
                let rows = tasks.of(UserId(u as u32));
                let mut sums = Sums::default();
                waits.clear();
                for row in rows.iter().map(|row| *row as usize) {
                    let Some(ran) = sums.task(row, workload, run, processors) else { continue };
                    let AcceptedTask { submit, start, .. } = ran;
                    match start {
                        None => series.task_still_pending(submit),
                        Some(start) => {
                            waits.push((start - submit).nanos());
                            series.task(row, submit, start, ran.duration);
                        }
                    }
                }
                all.add(&sums);
                user_record(name, &sums, &mut waits, processors)
            })
            .collect();
        let means: Vec<f64> = users.iter().filter_map(|u| u.mean_wait_s).collect();
        let spread = |nuwt: fn(&NormalizedWait) -> Option<f64>| {
            NuwtSpread::of(&users.iter().filter_map(|u| nuwt(&u.normalized)).collect::<Vec<_>>())
        };
        let (nuwt_per_cpu, nuwt_per_pe) = (spread(|n| n.nuwt_per_cpu), spread(|n| n.nuwt_per_pe));
        let makespan = run.end - origin;
        let (series, utilization) = series.finish(capacity);
        Metrics {
            totals: all.totals,
            mean_wait_s: all.mean_wait_s(),
            mean_bounded_slowdown: all.mean_bounded_slowdown(),
            users_mean_wait_s: (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64),
            jain_wait: jain(&means),
            max_min_wait_ratio: max_min_ratio(&means),
            utilization,
            makespan,
            users,
            nuwt_per_cpu,
            nuwt_per_pe,
            series,
        }
    }
}

fn user_record(name: &str, sums: &Sums, waits: &mut [u64], processors: Option<&TaskProcessors<'_>>) -> UserRecord {
    UserRecord {
        name: name.to_string(),
        totals: sums.totals,
        mean_wait_s: sums.mean_wait_s(),
        p95_wait_s: percentile(waits, 95).map(|ns| Span::from_nanos(ns).secs_f64()),
        mean_bounded_slowdown: sums.mean_bounded_slowdown(),
        completion_ratio: sums.completion_ratio(),
        normalized: sums.normalized(processors),
        finish_s: None,
        wait_interval_s: None,
        difference_interval_s: None,
        beyond_noise: false,
    }
}

pub(crate) fn bounded_slowdown(wait: Span, run: Span) -> f64 {
    let response = (wait.nanos() + run.nanos()) as f64;
    (response / run.max(BOUND).nanos() as f64).max(1.0)
}

/// A mean of whole nanoseconds, in seconds: the sum is exact, so only the last step rounds.
pub(crate) fn mean_s(sum_ns: u128, n: u64) -> Option<f64> {
    (n > 0).then(|| {
        let n = u128::from(n);
        (sum_ns / n) as f64 / 1e9 + (sum_ns % n) as f64 / (n as f64 * 1e9)
    })
}

/// Returns the smallest value that at least `percent` % of the values do not exceed (nearest rank). Reorders them.
fn percentile(values: &mut [u64], percent: usize) -> Option<u64> {
    let rank = (values.len() * percent).div_ceil(100);
    let at = rank.checked_sub(1)?;
    Some(*values.select_nth_unstable(at).1)
}

fn jain(x: &[f64]) -> Option<f64> {
    let (sum, squares) = (x.iter().sum::<f64>(), x.iter().map(|v| v * v).sum::<f64>());
    match x.len() {
        0 => None,
        _ if squares == 0.0 => Some(1.0),
        n => Some(sum * sum / (n as f64 * squares)),
    }
}

fn max_min_ratio(x: &[f64]) -> Option<f64> {
    let (min, max) = x.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), &v| (lo.min(v), hi.max(v)));
    (min > 0.0 && min.is_finite()).then(|| max / min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        assert_eq!(percentile(&mut [], 95), None);
        assert_eq!(percentile(&mut [7], 95), Some(7));
        let mut hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentile(&mut hundred, 95), Some(95));
        let mut twenty_one: Vec<u64> = (1..=21).collect();
        assert_eq!(percentile(&mut twenty_one, 95), Some(20));
    }

    #[test]
    fn indices_at_their_ends() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(max_min_ratio(&[2.0, 8.0]), Some(4.0));
        assert_eq!(max_min_ratio(&[0.0, 8.0]), None);
        assert_eq!(max_min_ratio(&[]), None);
    }

    #[test]
    fn means_keep_their_digits() {
        assert_eq!(mean_s(3_000_000_000, 2), Some(1.5));
        assert_eq!(mean_s(10, 0), None);
        assert_eq!(mean_s(u128::from(u64::MAX) * 3, 3), Some(u64::MAX as f64 / 1e9));
    }

    #[test]
    fn slowdown_is_bounded_below_by_one_and_short_runs_count_as_ten_seconds() {
        let s = Span::from_secs;
        assert_eq!(bounded_slowdown(s(0), s(1)), 1.0);
        assert_eq!(bounded_slowdown(s(19), s(1)), 2.0);
        assert_eq!(bounded_slowdown(s(100), s(100)), 2.0);
        assert_eq!(bounded_slowdown(s(20), s(0)), 2.0);
    }
}
