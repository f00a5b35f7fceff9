//! Compares two runs user by user.

use crate::record::{ComparisonRecord, RunRecord};
use crate::work_done::compare_work;

/// Mean waits whose difference relative to the larger is at most this count as equal: they differ only by rounding.
const ROUNDING: f64 = 1e-12;

/// How a user's mean wait changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Better,
    Worse,
    Same,
}

/// Returns how a mean wait differs from the one under another policy.
pub(crate) fn change(wait: f64, base_wait: f64) -> Change {
    if (wait - base_wait).abs() <= ROUNDING * wait.max(base_wait) {
        Change::Same
    } else if wait < base_wait {
        Change::Better
    } else {
        Change::Worse
    }
}

/// Returns the mean over users of 1 - wait / other wait, over those who wait under the other policy.
pub(crate) fn mean_reduction(waits: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let waits = waits.filter(|(_, base_wait)| *base_wait > 0.0);
    let (sum, n) = waits.fold((0.0, 0u64), |(sum, n), (wait, base_wait)| (sum + (1.0 - wait / base_wait), n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// Compares `run` with `base`, user by user. Both must have the same users in the same order.
pub fn compare(run: &RunRecord, base: &RunRecord) -> ComparisonRecord {
    let mut record = ComparisonRecord { run: run.id.clone(), against: base.id.clone(), ..ComparisonRecord::default() };
    let mut waits = Vec::new();
    for (user, other) in run.users.iter().zip(&base.users) {
        match (user.totals.completed, other.totals.completed) {
            (a, b) if a > b => record.complete_more += 1,
            (a, b) if a < b => record.complete_fewer += 1,
            _ => {}
        }
        let (Some(wait), Some(base_wait)) = (user.mean_wait_s, other.mean_wait_s) else { continue };
        match change(wait, base_wait) {
            Change::Same => record.users_same += 1,
            Change::Better => record.users_better += 1,
            Change::Worse => record.users_worse += 1,
        }
        waits.push((wait, base_wait));
    }
    record.work = compare_work(run, base);
    let compared = record.users_better + record.users_worse + record.users_same;
    record.share_worse = (compared > 0).then(|| record.users_worse as f64 / compared as f64);
    record.mean_user_wait_reduction = mean_reduction(waits.into_iter());
    record.users_mean_wait_reduction = match (run.users_mean_wait_s, base.users_mean_wait_s) {
        (Some(wait), Some(base_wait)) if base_wait > 0.0 => Some(1.0 - wait / base_wait),
        _ => None,
    };
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Totals, UserRecord};

    fn run(id: &str, users: &[(Option<f64>, u64)]) -> RunRecord {
        let users: Vec<UserRecord> = users
            .iter()
            .map(|&(mean_wait_s, completed)| UserRecord {
                mean_wait_s,
                totals: Totals { completed, ..Totals::default() },
                ..UserRecord::default()
            })
            .collect();
        let waits: Vec<f64> = users.iter().filter_map(|u| u.mean_wait_s).collect();
        let mean = (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64);
        RunRecord { id: id.into(), users, users_mean_wait_s: mean, ..RunRecord::default() }
    }

    #[test]
    fn users_with_shorter_and_longer_waits_are_counted_and_both_reductions_computed() {
        let base = run("fifo", &[(Some(10.0), 5), (Some(4.0), 5), (Some(0.0), 5), (None, 0), (Some(2.0), 3)]);
        let other = run("drf", &[(Some(5.0), 5), (Some(6.0), 4), (Some(0.0), 5), (Some(1.0), 1), (Some(2.0), 3)]);
        let c = compare(&other, &base);
        assert_eq!((c.users_better, c.users_worse, c.users_same), (1, 1, 2));
        assert_eq!((c.complete_more, c.complete_fewer), (1, 1));
        assert_eq!(c.share_worse, Some(0.25));
        assert_eq!(c.mean_user_wait_reduction, Some((0.5 - 0.5 + 0.0) / 3.0));
        assert_eq!(c.users_mean_wait_reduction, Some(1.0 - (14.0 / 5.0) / 4.0));
    }

    #[test]
    fn runs_without_waits_have_no_reduction() {
        let c = compare(&run("a", &[(Some(0.0), 1)]), &run("b", &[(Some(0.0), 1)]));
        assert_eq!((c.users_same, c.mean_user_wait_reduction, c.users_mean_wait_reduction), (1, None, None));
        assert_eq!(compare(&run("a", &[]), &run("b", &[])).share_worse, None);
    }
}
