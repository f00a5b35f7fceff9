//! The users of a study with very many users: those whose waits differ most are listed, the others are summed up.
//!
//! `users.csv` always has one row per run and user. A million objects of JSON a run are read by nobody, and take
//! gigabytes.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::record::{RunRecord, Series, StudyRecord, Totals, UserRecord};

/// Up to this number of users, all are listed everywhere.
pub const ALL_USERS_LISTED: usize = 10_000;
/// Of more users, this many are listed.
pub const MOST_AFFECTED: usize = 1000;

/// The users of a run that are not listed one by one, taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherUsersRecord {
    /// Their number.
    pub users: u64,
    /// The counts of their tasks.
    #[serde(flatten)]
    pub totals: Totals,
    /// Mean wait over their started tasks; `None` if none started.
    pub mean_wait_s: Option<f64>,
    /// Mean over them of their mean waits; `None` if no task of theirs started.
    pub users_mean_wait_s: Option<f64>,
}

impl OtherUsersRecord {
    /// Sums up users.
    pub fn of<'a>(users: impl Iterator<Item = &'a UserRecord>) -> OtherUsersRecord {
        let mut sum = OtherUsersRecord::default();
        let (mut total_wait_s, mut means, mut started_users) = (0.0, 0.0, 0u64);
        for user in users {
            sum.users += 1;
            sum.totals.add(&user.totals);
            let Some(mean) = user.mean_wait_s else { continue };
            total_wait_s += mean * user.totals.started as f64;
            means += mean;
            started_users += 1;
        }
        sum.mean_wait_s = (sum.totals.started > 0).then(|| total_wait_s / sum.totals.started as f64);
        sum.users_mean_wait_s = (started_users > 0).then(|| means / started_users as f64);
        sum
    }
}

/// Returns the `count` users whose mean wait differs most, in any run, from that in the run it is compared with: their
/// places in the workload's order, ascending. Without comparisons, and among equal differences, users with more tasks and
/// then those who come first in the workload go first.
pub fn most_affected_users(record: &StudyRecord, count: usize) -> Vec<usize> {
    let Some(first) = record.runs.first() else { return Vec::new() };
    let mut largest = vec![0.0_f64; first.users.len()];
    for comparison in &record.comparisons {
        let run = |id: &str| record.runs.iter().find(|run| run.id == id);
        let (Some(run), Some(against)) = (run(&comparison.run), run(&comparison.against)) else { continue };
        for (place, (now, then)) in run.users.iter().zip(&against.users).enumerate() {
            if let (Some(now), Some(then)) = (now.mean_wait_s, then.mean_wait_s) {
                largest[place] = largest[place].max((now - then).abs());
            }
        }
    }
    let mut users: Vec<usize> = (0..largest.len()).collect();
    let key = |user: &usize| (Reverse(first.users[*user].totals.submitted), *user);
    users.sort_by(|a, b| largest[*b].total_cmp(&largest[*a]).then_with(|| key(a).cmp(&key(b))));
    users.truncate(count);
    users.sort_unstable();
    users
}

impl StudyRecord {
    /// Returns the record as in `summary.json`: without the runs' time series, and of more than [`ALL_USERS_LISTED`] users
    /// only the [`MOST_AFFECTED`], unless all are asked for.
    pub fn summary(&self, list_all_users: bool) -> StudyRecord {
        let users = self.runs.first().map_or(0, |run| run.users.len());
        let listed = (!list_all_users && users > ALL_USERS_LISTED).then(|| most_affected_users(self, MOST_AFFECTED));
        let runs = self.runs.iter().map(|run| match &listed {
            Some(listed) => listing(run, listed),
            None => RunRecord { series: Series::default(), ..run.clone() },
        });
        StudyRecord { runs: runs.collect(), ..without_runs(self) }
    }
}

/// Returns a run with these users and the sum of the others. Accounts have these users only, and are whole in
/// `accounts.csv`.
fn listing(run: &RunRecord, listed: &[usize]) -> RunRecord {
    let is_other = |(place, _): &(usize, &UserRecord)| listed.binary_search(place).is_err();
    let others = OtherUsersRecord::of(run.users.iter().enumerate().filter(is_other).map(|(_, user)| user));
    let users: Vec<UserRecord> = listed.iter().filter_map(|user| run.users.get(*user).cloned()).collect();
    let mut run = RunRecord { other_users: Some(others), users, series: Series::default(), ..run.clone() };
    let names: BTreeSet<&str> = run.users.iter().map(|user| user.name.as_str()).collect();
    for account in &mut run.accounts {
        account.users.retain(|user| names.contains(user.name.as_str()));
    }
    run
}

fn without_runs(record: &StudyRecord) -> StudyRecord {
    let StudyRecord { workload, method, comparisons, trust, repeats, missing, runs: _ } = record;
    StudyRecord {
        workload: workload.clone(),
        method: method.clone(),
        comparisons: comparisons.clone(),
        trust: trust.clone(),
        repeats: repeats.clone(),
        missing: missing.clone(),
        runs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;

    /// A user with as many tasks, of whose `started` ones the mean wait is given.
    fn user(place: usize, submitted: u64, mean_wait_s: Option<f64>) -> UserRecord {
        let started = if mean_wait_s.is_some() { submitted } else { 0 };
        let totals = Totals { submitted, started, ..Totals::default() };
        UserRecord { name: format!("u{place}"), totals, mean_wait_s, ..UserRecord::default() }
    }

    fn study(users: usize, wait: impl Fn(usize) -> Option<f64>) -> StudyRecord {
        let run = |id: &str, users: Vec<UserRecord>| RunRecord { id: id.into(), users, ..RunRecord::default() };
        let base = run("fifo-1", (0..users).map(|place| user(place, 2, Some(10.0))).collect());
        let other = run("drf-1", (0..users).map(|place| user(place, 2, wait(place))).collect());
        let comparisons = vec![compare(&other, &base)];
        StudyRecord { runs: vec![base, other], comparisons, ..StudyRecord::default() }
    }

    #[test]
    fn few_users_are_all_listed() {
        let record = study(ALL_USERS_LISTED, |_| Some(1.0));
        let summary = record.summary(false);
        assert_eq!(summary, record);
        assert!(!serde_json::to_string(&summary).unwrap().contains("other_users"));
    }

    #[test]
    fn of_many_users_the_most_affected_are_listed_and_the_others_are_summed_up() {
        let count = ALL_USERS_LISTED + 1;
        // Those of the last places lose, that of place 5 gains most, that of place 6 starts nothing.
        let wait = |place: usize| match place {
            5 => Some(0.0),
            6 => None,
            _ if place >= count - 2000 => Some(10.0 + (place + 2000 - count) as f64 / 1e4),
            _ => Some(10.0),
        };
        let record = study(count, wait);
        let summary = record.summary(false);
        for run in &summary.runs {
            assert_eq!(run.users.len(), MOST_AFFECTED);
            assert_eq!(run.users[0].name, "u5");
            assert_eq!(run.users[1].name, format!("u{}", count - MOST_AFFECTED + 1));
            assert_eq!(run.other_users.as_ref().unwrap().users as usize, count - MOST_AFFECTED);
        }
        let others = summary.runs[1].other_users.clone().unwrap();
        assert_eq!((others.totals.submitted, others.totals.started), (2 * 9001, 2 * 9000));
        let sum: f64 = (0..count - 999).filter(|place| *place != 5).filter_map(wait).sum();
        assert!((others.users_mean_wait_s.unwrap() - sum / 9000.0).abs() < 1e-9);
        assert!((others.mean_wait_s.unwrap() - sum / 9000.0).abs() < 1e-9);
        assert_eq!(record.summary(true), record);
    }

    #[test]
    fn without_comparisons_users_with_more_tasks_go_first() {
        let mut record = study(4, |_| Some(1.0));
        record.comparisons.clear();
        record.runs[0].users[2].totals.submitted = 9;
        assert_eq!(most_affected_users(&record, 2), [0, 2]);
        assert!(most_affected_users(&StudyRecord::default(), 2).is_empty());
    }
}
