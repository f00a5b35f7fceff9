//! A user's waiting jobs by group: finds the first that no limit holds back, or the one that a policy places last, without
//! going through all.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use evenhand_model::Workload;

use super::prepared_jobs::Jobs;

/// Groups of a workload's jobs.
///
/// Those of one user and kind that have the same limits and, if it is throttled, are of one array: a limit holds back all of
/// a group, or none. For a policy that [groups jobs](evenhand_policies::JobPriorities::group), only those of one such group.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobGroups {
    /// By row; empty if nothing asks for groups.
    of_row: Vec<u32>,
    /// By group: the priority class of its jobs.
    classes: Vec<u8>,
}

impl JobGroups {
    /// Returns the groups that limits tell apart; none if nothing limits jobs.
    pub(crate) fn by_limits(workload: &Workload, jobs: &Jobs) -> JobGroups {
        let mut found = JobGroups::default();
        if !jobs.limits.is_any() {
            return found;
        }
        let mut numbers = HashMap::new();
        for (row, (kind, user)) in jobs.kind.iter().zip(&workload.columns().user).enumerate() {
            let limits = jobs.limits.set_of(row);
            let array = jobs.limits.arrays.throttled(workload, row as u32);
            found.add((*kind, *user, limits, array), jobs.kinds[*kind as usize].class, &mut numbers);
        }
        found
    }

    /// Returns these groups divided by those of a policy, which are given by row.
    pub(crate) fn divided(&self, workload: &Workload, jobs: &Jobs, of_policy: &[u64]) -> JobGroups {
        let mut found = JobGroups::default();
        let mut numbers = HashMap::new();
        for (row, of_policy) in of_policy.iter().enumerate() {
            let class = jobs.kinds[jobs.kind[row] as usize].class;
            let by_limits = self.of_row.get(row).copied();
            found.add((workload.columns().user[row], class, by_limits, *of_policy), class, &mut numbers);
        }
        found
    }

    /// Adds a row to the group of a key, which may be new.
    fn add<Key: Eq + std::hash::Hash>(&mut self, key: Key, class: u8, numbers: &mut HashMap<Key, u32>) {
        let group = *numbers.entry(key).or_insert_with(|| {
            self.classes.push(class);
            self.classes.len() as u32 - 1
        });
        self.of_row.push(group);
    }
}

/// The waiting jobs of each group.
#[derive(Clone, Debug)]
pub(crate) struct WaitingGroups<'a> {
    groups: Cow<'a, JobGroups>,
    /// By group.
    rows: Vec<BTreeSet<u32>>,
    /// By user: the groups of which a job waits, in no order.
    of_user: Vec<Vec<u32>>,
}

/// Which of a user's waiting jobs are searched: those of a class, from one row up to another that is not before it, but one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among {
    pub(crate) class: u8,
    pub(crate) user: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) except: u32,
}

impl<'a> WaitingGroups<'a> {
    /// No job waits.
    pub(crate) fn new(groups: Cow<'a, JobGroups>, users: usize) -> WaitingGroups<'a> {
        let users = if groups.of_row.is_empty() { 0 } else { users };
        WaitingGroups { rows: vec![BTreeSet::new(); groups.classes.len()], of_user: vec![Vec::new(); users], groups }
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

    /// Returns the first of a user's jobs that nothing holds back, where `is_over` returns whether a limit holds back the
    /// group of a row. Takes as many steps as the user has groups that wait.
    pub(crate) fn first_within(&self, among: Among, is_over: impl Fn(u32) -> bool) -> Option<u32> {
        let mut best = None;
        for rows in self.of(among) {
            let first = rows.range(among.from..=among.to).copied().find(|row| *row != among.except);
            if let Some(row) = first.filter(|row| best.is_none_or(|best| *row < best) && !is_over(*row)) {
                best = Some(row);
            }
        }
        best
    }

    /// Returns that of a user's jobs that nothing holds back whose key is greatest, where keys of a group ascend with the row.
    /// Takes as many steps as the user has groups that wait.
    pub(crate) fn greatest_within<Key: Ord>(
        &self,
        among: Among,
        is_over: impl Fn(u32) -> bool,
        mut key: impl FnMut(u32) -> Key,
    ) -> Option<u32> {
        let lasts = self.of(among).filter_map(|rows| {
            let last = rows.range(among.from..=among.to).rev().copied().find(|row| *row != among.except)?;
            (!is_over(last)).then_some(last)
        });
        lasts.max_by_key(|row| key(*row))
    }

    /// Returns the first of a user's jobs that nothing holds back with a key above `bound`, where keys of a group ascend with
    /// the row. Takes, a group, as many steps as the row numbers have bits.
    pub(crate) fn first_above<Key: Ord>(
        &self,
        among: Among,
        bound: &Key,
        is_over: impl Fn(u32) -> bool,
        mut key: impl FnMut(u32) -> Key,
    ) -> Option<u32> {
        let mut best: Option<u32> = None;
        for rows in self.of(among) {
            let next = |from: u32| rows.range(from..=among.to).copied().find(|row| *row != among.except);
            if next(among.from).is_none_or(&is_over) {
                continue;
            }
            let (mut low, mut high) = (among.from, best.unwrap_or(among.to));
            while low < high {
                let middle = low + (high - low) / 2;
                match next(middle).is_none_or(|row| key(row) > *bound) {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            let found = next(low).filter(|row| key(*row) > *bound);
            best = [best, found].into_iter().flatten().min();
        }
        best
    }

    /// The user's groups of the class of which a job waits.
    fn of(&self, among: Among) -> impl Iterator<Item = &BTreeSet<u32>> {
        let groups = self.of_user[among.user as usize].iter().map(|group| *group as usize);
        groups.filter(move |group| self.groups.classes[*group] == among.class).map(|group| &self.rows[group])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows are of 2 users with 4 groups each, of which 2 are of each class.
    const GROUPS: usize = 8;

    proptest! {
        /// Against a list of all jobs.
        #[test]
        fn searches_find_what_a_plain_list_has(
            of_row in prop::collection::vec(0u32..GROUPS as u32, 1..60),
            submitted in prop::collection::vec(any::<bool>(), 60),
            started in prop::collection::vec(any::<bool>(), 60),
            over in prop::collection::vec(prop::bool::weighted(0.3), GROUPS),
            rank in prop::collection::vec(0u32..3, GROUPS),
            asks in prop::collection::vec((0u8..2, 0u32..2, 0u32..60, 0u32..60, 0u32..60, (0u32..3, 0u32..60)), 1..30),
        ) {
            let class = |group: u32| (group % 2) as u8;
            let user = |group: u32| group / 4;
            let classes = (0..GROUPS as u32).map(class).collect();
            let groups = JobGroups { of_row: of_row.clone(), classes };
            let mut waiting = WaitingGroups::new(Cow::Borrowed(&groups), 2);
            let all = 0..of_row.len() as u32;
            let group = |row: u32| of_row[row as usize];
            let is = |of: &[bool], row: u32| of[row as usize];
            all.clone().filter(|row| is(&submitted, *row)).for_each(|row| waiting.submit(user(group(row)), row));
            let waits = |row: &u32| is(&submitted, *row) && !is(&started, *row);
            let starts = all.clone().filter(|row| is(&submitted, *row) && is(&started, *row));
            starts.for_each(|row| waiting.start(user(group(row)), row));
            let key = |row: u32| (rank[group(row) as usize], row);
            let is_over = |row: u32| over[group(row) as usize];
            for (of_class, of_user, from, to, except, bound) in asks {
                let among = Among { class: of_class, user: of_user, from: from.min(to), to: from.max(to), except };
                let is_among = |row: &u32| {
                    let of = (class(group(*row)), user(group(*row)));
                    of == (of_class, of_user) && (among.from..=among.to).contains(row) && *row != except
                };
                let plain: Vec<u32> =
                    all.clone().filter(waits).filter(is_among).filter(|row| !is_over(*row)).collect();
                prop_assert_eq!(waiting.first_within(among, is_over), plain.first().copied());
                prop_assert_eq!(waiting.greatest_within(among, is_over, key), plain.iter().copied().max_by_key(|row| key(*row)));
                let above = plain.iter().copied().find(|row| key(*row) > bound);
                prop_assert_eq!(waiting.first_above(among, &bound, is_over, key), above);
            }
        }
    }
}
