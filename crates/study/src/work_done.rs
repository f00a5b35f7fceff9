//! What users get done in a run: tasks and work in a given time, and when each user has finished.
//!
//! Where users react, waits alone do not compare policies: under the better one more is submitted in the same time.

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_simulator::{Simulated, UserTasks};
use serde::{Deserialize, Serialize};

use crate::compare_runs::{Change, change};
use crate::plan::per_resource;
use crate::record::{Estimate, PerResource, RunRecord};

/// What users get done in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkRecord {
    /// What determines submissions: `sessions` or `closed`.
    pub arrivals: String,
    /// From the first submission of the log to its last: the same for all runs.
    pub window_s: f64,
    /// Tasks that end in this time.
    pub tasks_in_window: u64,
    /// The same by day.
    pub tasks_per_day: f64,
    /// Amount times run time in this time, in the resource's unit times hours.
    pub work_in_window: PerResource,
    /// Mean over users of `finish_s`.
    pub users_mean_finish_s: Option<f64>,
}

/// What users get done in a run against the run that it is compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkComparison {
    /// tasks_in_window over that of the other run, less 1; absent if none end there.
    pub tasks_in_window_change: Option<f64>,
    /// The same of `work_in_window`, by resource.
    pub work_in_window_change: PerResource,
    /// Users who finish earlier.
    pub users_earlier: u64,
    /// Users who finish later.
    pub users_later: u64,
    /// Users who finish at the same time.
    pub users_same: u64,
    /// Mean over users who finish in both runs of the difference of `finish_s`.
    pub users_mean_finish_difference_s: Option<f64>,
    /// Those of `users_earlier` whose paired difference lies below zero with 95 % probability in another repeat; absent
    /// without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_earlier_beyond_noise: Option<u64>,
    /// Those of `users_later` whose paired difference lies above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_later_beyond_noise: Option<u64>,
    /// The difference of `users_mean_finish_difference_s`, repeat by repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_difference_s: Option<Estimate>,
    /// The change `tasks_in_window_change`, repeat by repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_change: Option<Estimate>,
}

/// Returns what users get done in a run of `workload` as submitted, and by user when it has finished: the time from its
/// first submission to its last end, or `None` if it has no task that ran or an accepted one that did not end.
pub(crate) fn work_done(
    workload: &Workload,
    tasks: &UserTasks,
    run: &Simulated,
    arrivals: &str,
    (first, last): (Time, Time),
) -> (WorkRecord, Vec<Option<f64>>) {
    let columns = workload.columns();
    let mut held = vec![0.0; workload.resources().len()];
    let mut tasks_in_window = 0;
    let mut finish_of = |user: u32| {
        let rows = tasks.of(UserId(user));
        let mut finish: Option<Time> = None;
        let mut is_done = true;
        for row in rows.iter().map(|row| *row as usize).filter(|row| !run.is_rejected(*row)) {
            if run.starts[row] == NO_TIME {
                is_done = false;
                continue;
            }
            let start = Time::from_nanos(run.starts[row]);
            let end = start + run.run_time(row, columns.duration[row]);
            is_done &= end <= run.end;
            finish = finish.max(Some(end));
            tasks_in_window += u64::from(end <= last);
            let inside = end.min(last).max(start) - start;
            for (held, amount) in held.iter_mut().zip(workload.amounts(row)) {
                *held += amount.0 as f64 * inside.secs_f64();
            }
        }
        let submitted = rows.first().map(|row| columns.submit[*row as usize])?;
        finish.filter(|_| is_done).map(|finish| (finish - submitted).secs_f64())
    };
    let finishes: Vec<Option<f64>> = (0..workload.users().len() as u32).map(&mut finish_of).collect();
    let window: Span = last - first;
    let days = window.secs_f64() / 86_400.0;
    let known: Vec<f64> = finishes.iter().copied().flatten().collect();
    let record = WorkRecord {
        arrivals: arrivals.to_string(),
        window_s: window.secs_f64(),
        tasks_in_window,
        tasks_per_day: if days > 0.0 { tasks_in_window as f64 / days } else { 0.0 },
        work_in_window: per_resource(workload, |r| held[r] / workload.resources()[r].steps() as f64 / 3600.0),
        users_mean_finish_s: mean(&known),
    };
    (record, finishes)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the mean over users of the differences of their finishes.
pub(crate) fn mean_difference(pairs: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Option<f64> {
    mean(&pairs.filter_map(|(now, then)| Some(now? - then?)).collect::<Vec<f64>>())
}

/// Returns the relative change of a number of tasks.
pub(crate) fn relative_change(now: f64, then: f64) -> Option<f64> {
    (then > 0.0).then(|| now / then - 1.0)
}

/// Compares what users get done in two runs; `None` where it was not measured.
pub(crate) fn compare_work(run: &RunRecord, base: &RunRecord) -> Option<WorkComparison> {
    let (now, then) = (run.work.as_ref()?, base.work.as_ref()?);
    let pairs = || run.users.iter().zip(&base.users).map(|(a, b)| (a.finish_s, b.finish_s));
    let changes = now.work_in_window.iter().filter_map(|(name, work)| {
        let change = relative_change(*work, *then.work_in_window.get(name)?)?;
        Some((name.clone(), change))
    });
    let mut record = WorkComparison {
        tasks_in_window_change: relative_change(now.tasks_in_window as f64, then.tasks_in_window as f64),
        work_in_window_change: changes.collect(),
        users_mean_finish_difference_s: mean_difference(pairs()),
        ..WorkComparison::default()
    };
    for (finish, other) in pairs().filter_map(|(a, b)| a.zip(b)) {
        match change(finish, other) {
            Change::Better => record.users_earlier += 1,
            Change::Worse => record.users_later += 1,
            Change::Same => record.users_same += 1,
        }
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Resource, Task, WorkloadBuilder};

    #[test]
    fn work_and_finishes_by_hand() {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        let hour = |h: u64| Time::from_secs(3600 * h);
        for (submit, user, hours, cpus) in [(0, "ann", 2, 1), (1, "bob", 4, 2), (3, "ann", 1, 1), (4, "cid", 1, 9)] {
            let (submit, duration) = (hour(submit), Span::from_secs(3600 * hours));
            b.push(&Task { submit, duration, user, amounts: &[cpus * 1_000_000_000], ..Task::default() });
        }
        let workload = b.finish().unwrap();
        let tasks = UserTasks::new(&workload);
        let run = Simulated {
            submissions: None,
            starts: vec![hour(0).nanos(), hour(2).nanos(), hour(3).nanos(), NO_TIME],
            rejections: vec![None; 4],
            end: hour(6),
            decisions: 0,
            order_events: 0,
            machines: None,
        };
        let (record, finishes) = work_done(&workload, &tasks, &run, "closed", (hour(0), hour(4)));
        // Bob's task is half done when the log's last task is submitted.
        assert_eq!((record.tasks_in_window, record.tasks_per_day), (2, 12.0));
        assert_eq!(record.work_in_window["cpu"], 2.0 + 4.0 + 1.0);
        assert_eq!(finishes, [Some(4.0 * 3600.0), Some(5.0 * 3600.0), None]);
        assert_eq!(record.users_mean_finish_s, Some(4.5 * 3600.0));
        let early = Simulated { end: hour(5), ..run };
        assert_eq!(work_done(&workload, &tasks, &early, "closed", (hour(0), hour(4))).1[1], None, "it still runs");
    }
}
