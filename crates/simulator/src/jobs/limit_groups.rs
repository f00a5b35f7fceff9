//! A user's waiting jobs by what limits tell apart: finds the first that no limit holds back without going through all.

use std::collections::{BTreeSet, HashMap};

use evenhand_model::Workload;

use super::prepared_jobs::Jobs;

/// The groups of a workload's jobs: those of one user and kind that have the same limits and, if it is throttled, are of one
/// array. So a limit holds back all of a group, or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitGroups {
    /// By row; empty if nothing limits jobs.
    of_row: Vec<u32>,
    /// By group: the priority class of its kind.
    classes: Vec<u8>,
}

impl LimitGroups {
    /// Finds the group of each row.
    pub(crate) fn new(workload: &Workload, jobs: &Jobs) -> LimitGroups {
        let mut found = LimitGroups::default();
        if !jobs.limits.is_any() {
            return found;
        }
        let mut numbers = HashMap::new();
        for (row, (kind, user)) in jobs.kind.iter().zip(&workload.columns().user).enumerate() {
            let limits = jobs.limits.set_of(row);
            let array = jobs.limits.arrays.throttled(workload, row as u32);
            let group = *numbers.entry((*kind, *user, limits, array)).or_insert_with(|| {
                found.classes.push(jobs.kinds[*kind as usize].class);
                found.classes.len() as u32 - 1
            });
            found.of_row.push(group);
        }
        found
    }
}

/// The waiting jobs of each group.
#[derive(Clone, Debug)]
pub(crate) struct WaitingByLimits<'a> {
    groups: &'a LimitGroups,
    /// By group.
    rows: Vec<BTreeSet<u32>>,
    /// By user: the groups of which a job waits, in no order.
    of_user: Vec<Vec<u32>>,
}

impl<'a> WaitingByLimits<'a> {
    /// No job waits.
    pub(crate) fn new(groups: &'a LimitGroups, users: usize) -> WaitingByLimits<'a> {
        let users = if groups.of_row.is_empty() { 0 } else { users };
        WaitingByLimits { groups, rows: vec![BTreeSet::new(); groups.classes.len()], of_user: vec![Vec::new(); users] }
    }

    /// Adds a job of a user.
    pub(crate) fn submit(&mut self, user: u32, row: u32) {
        let Some(&group) = self.groups.of_row.get(row as usize) else { return };
        let rows = &mut self.rows[group as usize];
        if rows.is_empty() {
            self.of_user[user as usize].push(group);
        }
        rows.insert(row);
    }

    /// Removes a job of a user, which starts.
    pub(crate) fn start(&mut self, user: u32, row: u32) {
        let Some(&group) = self.groups.of_row.get(row as usize) else { return };
        let rows = &mut self.rows[group as usize];
        rows.remove(&row);
        if rows.is_empty() {
            self.of_user[user as usize].retain(|other| *other != group);
        }
    }

    /// The user's first job of a class, from row `from` on and other than `except`, that nothing holds back, where
    /// `is_over` says whether a limit holds back the group of a row. Takes as many steps as the user has groups that wait.
    pub(crate) fn first_within(
        &self,
        class: u8,
        user: u32,
        from: u32,
        except: u32,
        is_over: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut best = None;
        for &group in &self.of_user[user as usize] {
            if self.groups.classes[group as usize] != class {
                continue;
            }
            let first = self.rows[group as usize].range(from..).copied().find(|row| *row != except);
            if let Some(row) = first.filter(|row| best.is_none_or(|best| *row < best) && !is_over(*row)) {
                best = Some(row);
            }
        }
        best
    }
}
