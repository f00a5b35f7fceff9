//! Records the results of a run by account: the accounts of an accounts file, otherwise those of the workload's tasks.

use std::collections::BTreeMap;

use evenhand_model::{AccountTree, NO_ID, UserId, Workload, to_f64};
use evenhand_simulator::{NormalizedWait, Simulated, Sums, TaskProcessors, Totals, UserTasks};
use serde::{Deserialize, Serialize};

/// The results of an account, including those of the accounts within it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its name; absent for the root, which comes first and contains all users.
    pub name: Option<String>,
    /// The index in the list of the parent account; absent for the root.
    pub parent: Option<usize>,
    /// Its share of the whole, if an accounts file gives one.
    pub entitlement: Option<f64>,
    /// The results of its tasks.
    #[serde(flatten)]
    pub results: AccountResults,
    /// The users directly in it, in the workload's order.
    pub users: Vec<AccountUserRecord>,
}

/// The results of a user's tasks under one account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccountUserRecord {
    /// The user's name.
    pub name: String,
    /// The user's share of the whole, if an accounts file gives one.
    pub entitlement: Option<f64>,
    /// The results of the tasks.
    #[serde(flatten)]
    pub results: AccountResults,
}

/// The results of the tasks of an account, or of a user under it. Means are absent if no task started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccountResults {
    /// The counts of its tasks.
    #[serde(flatten)]
    pub totals: Totals,
    /// Mean wait of its started tasks.
    pub mean_wait_s: Option<f64>,
    /// Mean bounded slowdown of its started tasks.
    pub mean_bounded_slowdown: Option<f64>,
    /// completed / submitted.
    pub completion_ratio: f64,
    /// Its share of the total squashed area in processor equivalents; absent if the total is 0 or unknown.
    pub use_share: Option<f64>,
    /// Its waits in relation to its use.
    #[serde(flatten)]
    pub normalized: NormalizedWait,
}

/// Returns the accounts of a run, each after its parent; empty if neither `tree` nor the workload has accounts.
pub(crate) fn by_account(
    workload: &Workload,
    tasks: &UserTasks,
    tree: Option<&AccountTree>,
    run: &Simulated,
    processors: Option<&TaskProcessors<'_>>,
) -> Vec<AccountRecord> {
    let mut records = vec![AccountRecord { entitlement: tree.map(|_| 1.0), ..AccountRecord::default() }];
    match tree {
        Some(tree) => records.extend(tree.accounts().iter().enumerate().map(|(i, account)| AccountRecord {
            name: Some(account.name.clone()),
            parent: Some(place(account.parent)),
            entitlement: Some(to_f64(tree.account_entitlement(i))),
            ..AccountRecord::default()
        })),
        None if workload.accounts().is_empty() => return Vec::new(),
        None => records.extend(workload.accounts().iter().map(|name| AccountRecord {
            name: Some(name.clone()),
            parent: Some(0),
            ..AccountRecord::default()
        })),
    }
    let mut sums = vec![Sums::default(); records.len()];
    for (user, name) in workload.users().iter().enumerate() {
        let entitlement = tree.map(|tree| to_f64(tree.user_entitlement(user)));
        for (account, rows) in rows_by_account(workload, tasks, tree, user) {
            let own = Sums::of(rows, workload, run, processors);
            sums[account].add(&own);
            let results = results(&own, processors);
            records[account].users.push(AccountUserRecord { name: name.clone(), entitlement, results });
        }
    }
    // Every account comes after its parent, so the reverse order adds children first.
    for account in (1..records.len()).rev() {
        let own = sums[account];
        sums[records[account].parent.unwrap_or_default()].add(&own);
    }
    let all = sums[0].normalized(processors).squashed_area_pe_s.filter(|all| *all > 0.0);
    let share = |results: &mut AccountResults| {
        results.use_share = results.normalized.squashed_area_pe_s.zip(all).map(|(own, all)| own / all);
    };
    for (record, sums) in records.iter_mut().zip(&sums) {
        record.results = results(sums, processors);
        share(&mut record.results);
        record.users.iter_mut().for_each(|user| share(&mut user.results));
    }
    records
}

/// Returns an account's index in the records, where 0 is the root.
fn place(account: Option<usize>) -> usize {
    account.map_or(0, |a| a + 1)
}

/// Returns a user's rows by the index of the account that is charged.
fn rows_by_account(
    workload: &Workload,
    tasks: &UserTasks,
    tree: Option<&AccountTree>,
    user: usize,
) -> BTreeMap<usize, Vec<usize>> {
    let rows = tasks.of(UserId(user as u32)).iter().map(|row| *row as usize);
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    match (tree, &workload.columns().account) {
        (Some(tree), _) => {
            found.insert(place(tree.account_of(user)), rows.collect());
        }
        (None, Some(column)) => rows.for_each(|row| {
            let account = Some(column[row]).filter(|id| *id != NO_ID).map(|id| id as usize);
            found.entry(place(account)).or_default().push(row);
        }),
        (None, None) => {
            found.insert(0, rows.collect());
        }
    }
    found
}

fn results(sums: &Sums, processors: Option<&TaskProcessors<'_>>) -> AccountResults {
    AccountResults {
        totals: sums.totals,
        mean_wait_s: sums.mean_wait_s(),
        mean_bounded_slowdown: sums.mean_bounded_slowdown(),
        completion_ratio: sums.completion_ratio(),
        use_share: None,
        normalized: sums.normalized(processors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Account, Capacity, Rational, Resource, Span, Task, Time, Weights, WorkloadBuilder};
    use evenhand_policies::{PolicyContext, Registry};
    use evenhand_simulator::{PoolOptions, Progress, simulate};

    /// Each task holds all of the memory for so many seconds, so that each waits for all before it.
    fn run(tasks: &[(&str, Option<&str>, u64)], tree: Option<AccountTree>) -> Vec<AccountRecord> {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
        for (user, account, seconds) in tasks {
            b.push(&Task {
                submit: Time::ZERO,
                duration: Span::from_secs(*seconds),
                user,
                account: *account,
                amounts: &[1_000_000_000, 1_000_000_000],
                ..Task::default()
            });
        }
        let workload = b.finish().unwrap();
        // A task that holds the memory is worth all CPUs.
        let capacity = Capacity::new(workload.resources(), vec![Rational::from(4), Rational::from(1)]).unwrap();
        let weights = Weights::equal(workload.users().len());
        let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(&capacity, &weights)).unwrap();
        let tasks = UserTasks::new(&workload);
        let options = PoolOptions::default();
        let found = simulate(&workload, &tasks, &capacity, policy.as_mut(), options, &Progress::default()).unwrap();
        let processors = TaskProcessors::in_pool(&workload, &capacity);
        by_account(&workload, &tasks, tree.as_ref(), &found, processors.as_ref())
    }

    #[test]
    fn accounts_of_the_workload_have_the_tasks_charged_to_them() {
        // All submitted at once, so they start in the order of the list: at 0, 10, 30, 60.
        let tasks = [("ann", Some("x"), 10), ("bob", Some("y"), 20), ("ann", Some("y"), 30), ("cid", None, 40)];
        let found = run(&tasks, None);
        let named: Vec<_> = found.iter().map(|a| (a.name.as_deref(), a.parent)).collect();
        assert_eq!(named, [(None, None), (Some("x"), Some(0)), (Some("y"), Some(0))]);
        let waits: Vec<f64> = found.iter().map(|a| a.results.normalized.total_wait_s).collect();
        assert_eq!(waits, [100.0, 0.0, 40.0]);
        let y = &found[2];
        let users: Vec<_> = y.users.iter().map(|u| (u.name.as_str(), u.results.normalized.total_wait_s)).collect();
        assert_eq!(users, [("ann", 30.0), ("bob", 10.0)]);
        assert_eq!(found[0].users[0].name, "cid", "under no account");
        // 40 s over 50 CPU seconds; each task holds all memory, so it is worth 4 processors.
        assert_eq!(y.results.normalized.nuwt_per_cpu, Some(0.8));
        assert_eq!(y.results.normalized.squashed_area_pe_s, Some(200.0));
        assert_eq!(y.results.normalized.nuwt_per_pe, Some(0.2));
        assert_eq!(y.results.use_share, Some(0.5));
        // (30 + 30) / 30 and (10 + 20) / 20.
        assert!((y.results.mean_bounded_slowdown.unwrap() - 1.75).abs() < 1e-15);
        assert_eq!((y.results.mean_wait_s, y.results.totals.completed), (Some(20.0), 2));
        assert_eq!(y.entitlement, None);
    }

    #[test]
    fn accounts_of_a_file_include_the_accounts_below_them() {
        let account = |name: &str, parent| Account { name: name.into(), parent, shares: Rational::ONE };
        let accounts = vec![account("all", None), account("empty", None), account("part", Some(0))];
        let tree = AccountTree::new(accounts, vec![Some(0), Some(2)], vec![Rational::ONE; 2]).unwrap();
        // The trace's own accounts do not matter.
        let found = run(&[("ann", Some("x"), 10), ("bob", None, 20), ("ann", None, 30)], Some(tree));
        let waits: Vec<f64> = found.iter().map(|a| a.results.normalized.total_wait_s).collect();
        assert_eq!(waits, [40.0, 40.0, 0.0, 10.0]);
        let entitled: Vec<_> = found.iter().map(|a| a.entitlement.unwrap()).collect();
        assert_eq!(entitled, [1.0, 1.0, 0.0, 0.5]);
        assert_eq!(found[2].results.mean_wait_s, None);
        assert_eq!(found[3].parent, Some(1));
    }

    #[test]
    fn a_run_without_accounts_has_no_account_records() {
        assert!(run(&[("ann", None, 10)], None).is_empty());
    }
}
