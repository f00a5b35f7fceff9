//! Results by class of users and tasks: who is served, sporadic users or heavy ones, small tasks or large ones.

use evenhand_model::{Amount, Capacity, Span, Weights, Workload, to_f64};
use evenhand_simulator::{Simulated, Sums, Totals};
use serde::{Deserialize, Serialize};

/// The results of one class of users or tasks. Means are absent if no task of it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassResults {
    /// What separates the class from its counterpart: `use`, `size` or `length`.
    pub by: String,
    /// Its name: `sporadic` or `heavy`, `small` or `large`, `short` or `long`.
    pub class: String,
    /// The bound between the two classes: 1 for `use` (use over entitlement), a fraction of the capacity for `size`,
    /// seconds for `length`. The first class is at most there, the second above.
    pub bound: f64,
    /// The users with a task in it.
    pub users: u64,
    /// The counts of its tasks.
    #[serde(flatten)]
    pub totals: Totals,
    /// Mean wait of its started tasks.
    pub mean_wait_s: Option<f64>,
    /// Mean bounded slowdown of its started tasks.
    pub mean_bounded_slowdown: Option<f64>,
    /// completed / submitted.
    pub completion_ratio: f64,
    /// The interval in which its mean wait lies with 95 % probability in another repeat of the run; absent without
    /// repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_interval_s: Option<[f64; 2]>,
    /// The same of its mean bounded slowdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_interval: Option<[f64; 2]>,
    /// The same of the difference from its mean wait in the run that all are compared with, repeat by repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_interval_s: Option<[f64; 2]>,
    /// Whether that difference, and the one in the log itself, are beyond the noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond_noise: bool,
}

/// The division of users by their use.
pub(crate) const BY_USE: &str = "use";

/// A division of tasks in two classes.
struct Division<'a> {
    by: &'static str,
    classes: [&'static str; 2],
    bound: f64,
    /// Whether the task of a row is in the second class.
    is_above: Box<dyn Fn(usize) -> bool + 'a>,
}

/// What divides the users and tasks of a workload in classes. It depends on the workload, the weights and the capacity,
/// and not on the policy. Variations of the workload are divided as the workload itself, so that repeats compare the same
/// users, sizes and lengths.
pub(crate) struct Classification {
    /// By user: whether it used more than its entitlement of some resource.
    heavy: Vec<bool>,
    capacity: Capacity,
    median_size: f64,
    median_length: Span,
}

impl Classification {
    pub(crate) fn new(workload: &Workload, weights: &Weights, capacity: &Capacity) -> Classification {
        let (columns, sizes) = (workload.columns(), sizes(workload, capacity));
        let size = |row: usize| sizes[columns.demand[row].index()];
        Classification {
            heavy: heavy_users(workload, weights),
            capacity: capacity.clone(),
            median_size: median((0..workload.len()).map(size).collect(), f64::total_cmp).unwrap_or(0.0),
            median_length: median(columns.duration.clone(), Span::cmp).unwrap_or(Span::ZERO),
        }
    }

    /// Returns the results of each class in a run of the workload, or of a variation of it.
    pub(crate) fn results(&self, workload: &Workload, run: &Simulated) -> Vec<ClassResults> {
        let columns = workload.columns();
        let sizes = sizes(workload, &self.capacity);
        let divisions = [
            Division {
                by: BY_USE,
                classes: ["sporadic", "heavy"],
                bound: 1.0,
                is_above: Box::new(|row| self.heavy[columns.user[row].index()]),
            },
            Division {
                by: "size",
                classes: ["small", "large"],
                bound: self.median_size,
                is_above: Box::new(|row| sizes[columns.demand[row].index()] > self.median_size),
            },
            Division {
                by: "length",
                classes: ["short", "long"],
                bound: self.median_length.secs_f64(),
                is_above: Box::new(|row| columns.duration[row] > self.median_length),
            },
        ];
        divisions.iter().flat_map(|division| results(workload, run, division)).collect()
    }
}

/// Returns the size of each distinct demand: the largest fraction that it takes of any resource.
fn sizes(workload: &Workload, capacity: &Capacity) -> Vec<f64> {
    let fraction = |r: usize, amount: u64| amount as f64 / workload.resources()[r].steps() as f64 / capacity.units(r);
    let size = |demand: &[Amount]| demand.iter().enumerate().map(|(r, a)| fraction(r, a.0)).fold(0.0, f64::max);
    workload.demands().rows().map(|(_, demand)| size(demand)).collect()
}

fn results(workload: &Workload, run: &Simulated, division: &Division<'_>) -> [ClassResults; 2] {
    [false, true].map(|above| {
        let rows = || (0..workload.len()).filter(|row| (division.is_above)(*row) == above);
        let sums = Sums::of(rows(), workload, run, None);
        let mut present = vec![false; workload.users().len()];
        rows().for_each(|row| present[workload.columns().user[row].index()] = true);
        ClassResults {
            by: division.by.to_string(),
            class: division.classes[usize::from(above)].to_string(),
            bound: division.bound,
            users: present.into_iter().filter(|is_present| *is_present).count() as u64,
            totals: sums.totals,
            mean_wait_s: sums.mean_wait_s(),
            mean_bounded_slowdown: sums.mean_bounded_slowdown(),
            completion_ratio: sums.completion_ratio(),
            ..ClassResults::default()
        }
    })
}

/// Returns by user whether it is in the class of heavy users: whether its part of all use of some resource is more than its
/// entitlement. The others are sporadic users.
pub fn heavy_users(workload: &Workload, weights: &Weights) -> Vec<bool> {
    let (columns, users) = (workload.columns(), workload.users().len());
    let width = workload.resources().len();
    let mut used = vec![0.0; users * width];
    for row in 0..workload.len() {
        let (user, seconds) = (columns.user[row].index(), columns.duration[row].secs_f64());
        for (r, amount) in workload.amounts(row).iter().enumerate() {
            used[user * width + r] += amount.0 as f64 * seconds;
        }
    }
    let total = |r: usize| (0..users).map(|user| used[user * width + r]).sum::<f64>();
    let totals: Vec<f64> = (0..width).map(total).collect();
    // Sums are rounded: exactly the entitlement is not above it.
    let is_above = |user: usize, entitlement: f64| {
        (0..width).any(|r| used[user * width + r] > entitlement * totals[r] * (1.0 + 1e-12))
    };
    (0..users).map(|user| is_above(user, to_f64(&weights.entitlement(user)))).collect()
}

/// Returns the lower median.
fn median<T: Copy>(mut values: Vec<T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<T> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, order).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Quantity, Rational, Resource, Task, WorkloadBuilder};
    use evenhand_policies::{PolicyContext, Registry};
    use evenhand_simulator::{PoolOptions, Progress, UserTasks, simulate};

    fn class_results(tasks: &[(&str, u64, u64)], weights: &[&str]) -> Vec<ClassResults> {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for (user, cpus, seconds) in tasks {
            b.push(&Task {
                duration: Span::from_secs(*seconds),
                user,
                amounts: &[u128::from(*cpus) * 1_000_000_000],
                ..Task::default()
            });
        }
        let workload = b.finish().unwrap();
        let capacity = Capacity::new(workload.resources(), vec![Rational::from(4)]).unwrap();
        let weights = Weights::new(weights.iter().map(|w| Quantity::parse(w).unwrap())).unwrap();
        let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(&capacity, &weights)).unwrap();
        let tasks = UserTasks::new(&workload);
        let options = PoolOptions::default();
        let run = simulate(&workload, &tasks, &capacity, policy.as_mut(), options, &Progress::default()).unwrap();
        Classification::new(&workload, &weights, &capacity).results(&workload, &run)
    }

    #[test]
    fn classes_by_hand() {
        // All submitted at once on 4 cpus: starts at 0, 0, 10, 15 and 15; the last is too large.
        let tasks = [("ann", 1, 10), ("bob", 3, 10), ("ann", 4, 5), ("bob", 1, 20), ("cid", 1, 5), ("cid", 9, 1)];
        let found = class_results(&tasks, &["1", "1", "1"]);
        let names: Vec<_> = found.iter().map(|c| (c.by.as_str(), c.class.as_str(), c.totals.submitted)).collect();
        // Of 94 cpu seconds ann used 30, bob 50 and cid 14.
        let expected = [
            ("use", "sporadic", 4),
            ("use", "heavy", 2),
            ("size", "small", 3),
            ("size", "large", 3),
            ("length", "short", 3),
            ("length", "long", 3),
        ];
        assert_eq!(names, expected);
        let waits: Vec<Option<f64>> = found.iter().map(|c| c.mean_wait_s).collect();
        // The lower median of 1, 1, 1, 3, 4, 9 cpus is 1, and of 1, 5, 5, 10, 10, 20 s is 5 s.
        assert_eq!(waits[..2], [Some(25.0 / 3.0), Some(7.5)]);
        assert_eq!(waits[2..4], [Some(10.0), Some(5.0)]);
        assert_eq!(waits[4..], [Some(12.5), Some(5.0)]);
        assert_eq!((found[0].users, found[1].users, found[0].totals.rejected), (2, 1, 1));
        assert_eq!((found[2].bound, found[4].bound), (0.25, 5.0));
        assert_eq!(found[3].completion_ratio, 2.0 / 3.0);
        // With four fifths of all weight bob is sporadic; ann and cid are above their tenth.
        let weighted = class_results(&tasks, &["1", "8", "1"]);
        assert_eq!(weighted[0].totals.submitted, 2);
    }

    #[test]
    fn every_task_is_in_one_class_of_each_division() {
        let tasks: Vec<(&str, u64, u64)> =
            (0..97).map(|i| (["ann", "bob", "cid"][i as usize * 7 % 5 % 3], 1 + i * 3 % 4, 1 + i * 11 % 40)).collect();
        let found = class_results(&tasks, &["1", "2", "1"]);
        for pair in found.chunks(2) {
            assert_eq!(pair[0].totals.submitted + pair[1].totals.submitted, 97);
            let sum: f64 = pair.iter().map(|c| c.mean_wait_s.unwrap_or(0.0) * c.totals.started as f64).sum();
            let all: f64 = found[..2].iter().map(|c| c.mean_wait_s.unwrap_or(0.0) * c.totals.started as f64).sum();
            assert!((sum - all).abs() < 1e-6 * all);
        }
    }
}
