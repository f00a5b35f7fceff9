//! Pending jobs in the order of submission.

use std::borrow::Cow;
use std::collections::BTreeSet;

use evenhand_model::{Time, UserId, Workload};

use super::job_limits::HeldOfLimits;
use super::kind::Kind;
use super::pending_kinds::PendingKinds;
use super::prepared_jobs::Jobs;
use super::waiting_groups::{Among, WaitingGroups};
use crate::UserTasks;
use crate::arrivals::{Reactions, SubmissionTimes, Submissions};

/// No row.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// The fields of a pending job that scheduling scans, side by side in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The row, or [`NO_ROW`] once it has started.
    pub(crate) row: u32,
    pub(crate) user: u32,
    pub(crate) kind: u32,
    pub(crate) class: u8,
    pub(crate) estimate: u64,
}

/// The waiting jobs and each user's first.
pub(crate) struct PendingJobs<'a> {
    workload: &'a Workload,
    tasks: &'a UserTasks,
    jobs: &'a Jobs,
    submissions: Submissions<'a>,
    entries: Vec<Entry>,
    /// By row: its place among the entries.
    place: Vec<u32>,
    gone: usize,
    /// By row: whether it has started or was refused.
    done: Vec<bool>,
    /// By class and user: the place in the user's rows of the first that is not done.
    next_of: Vec<u32>,
    /// By class: how many wait.
    count: Vec<usize>,
    /// By class and user: how many wait.
    count_of_user: Vec<u32>,
    /// By class: the users with a waiting job, ascending.
    users: Vec<BTreeSet<u32>>,
    /// By kind.
    pub(crate) kinds: PendingKinds,
    /// By what limits tell apart, and the policy if it groups jobs.
    groups: WaitingGroups<'a>,
}

impl<'a> PendingJobs<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        tasks: &'a UserTasks,
        jobs: &'a Jobs,
        reactions: Option<&'a Reactions>,
    ) -> PendingJobs<'a> {
        PendingJobs {
            workload,
            tasks,
            jobs,
            submissions: Submissions::new(workload, tasks, reactions),
            entries: Vec::new(),
            place: vec![NO_ROW; workload.len()],
            gone: 0,
            done: jobs.rejections.iter().map(Option::is_some).collect(),
            next_of: vec![0; jobs.classes * workload.users().len()],
            count: vec![0; jobs.classes],
            count_of_user: vec![0; jobs.classes * workload.users().len()],
            users: vec![BTreeSet::new(); jobs.classes],
            kinds: PendingKinds::new(jobs.kinds.len()),
            groups: WaitingGroups::new(Cow::Borrowed(&jobs.limit_groups), workload.users().len()),
        }
    }

    /// The next submission.
    pub(crate) fn next_submission(&self) -> Option<Time> {
        self.submissions.next_time()
    }

    /// Removes the entries of started jobs once they are the majority; entries move.
    pub(crate) fn compact(&mut self) {
        if self.gone <= 8 || self.gone <= self.entries.len() / 2 {
            return;
        }
        self.entries.retain(|e| e.row != NO_ROW);
        self.gone = 0;
        for (at, e) in self.entries.iter().enumerate() {
            self.place[e.row as usize] = at as u32;
        }
    }

    /// When rows were submitted.
    pub(crate) fn submission_times(&self) -> SubmissionTimes<'a> {
        self.submissions.times()
    }

    /// Notes that a job has ended, to which its user may react.
    pub(crate) fn ended(&mut self, now: Time, row: u32) {
        self.submissions.ended(now, row);
    }

    /// Returns when each row was submitted; `None` if that is in the log.
    pub(crate) fn submissions_found(&self) -> Option<Vec<u64>> {
        self.submissions.found()
    }

    /// Submits the next row of this instant; whether it waits now.
    pub(crate) fn submit(&mut self, now: Time) -> Option<Entry> {
        let row = self.submissions.submit()? as usize;
        if self.done[row] {
            // It was rejected, which its user sees at once.
            self.submissions.ended(now, row as u32);
            return None;
        }
        Some(self.add(row))
    }

    /// A job that has started waits again; its user sees nothing of it.
    pub(crate) fn requeue(&mut self, row: u32) -> Entry {
        self.done[row as usize] = false;
        let entry = self.add(row as usize);
        let of_user = usize::from(entry.class) * self.workload.users().len() + entry.user as usize;
        let place = self.tasks.of(UserId(entry.user)).partition_point(|other| *other < row);
        self.next_of[of_user] = self.next_of[of_user].min(place as u32);
        entry
    }

    /// Adds a row to those that wait.
    fn add(&mut self, row: usize) -> Entry {
        let kind = self.jobs.kind[row];
        let of: &Kind = &self.jobs.kinds[kind as usize];
        let entry = Entry {
            row: row as u32,
            user: self.workload.columns().user[row].0,
            kind,
            class: of.class,
            estimate: self.jobs.estimate[row],
        };
        let class = entry.class;
        self.place[row] = self.entries.len() as u32;
        self.entries.push(entry);
        self.count[usize::from(class)] += 1;
        let of_user = usize::from(class) * self.workload.users().len() + entry.user as usize;
        self.count_of_user[of_user] += 1;
        if self.count_of_user[of_user] == 1 {
            self.users[usize::from(class)].insert(entry.user);
        }
        self.kinds.submit(kind, entry.user, row as u32, entry.estimate);
        self.groups.submit(entry.user, row as u32);
        entry
    }

    /// Takes a job that starts out.
    pub(crate) fn take(&mut self, row: u32) {
        let entry = &mut self.entries[self.place[row as usize] as usize];
        self.count[usize::from(entry.class)] -= 1;
        let of_user = usize::from(entry.class) * self.workload.users().len() + entry.user as usize;
        self.count_of_user[of_user] -= 1;
        if self.count_of_user[of_user] == 0 {
            self.users[usize::from(entry.class)].remove(&entry.user);
        }
        self.kinds.start(entry.kind, entry.user, row);
        self.groups.start(entry.user, row);
        entry.row = NO_ROW;
        self.done[row as usize] = true;
        self.gone += 1;
        while self.entries.last().is_some_and(|e| e.row == NO_ROW) {
            self.entries.pop();
            self.gone -= 1;
        }
    }

    /// All entries, those of started jobs among them.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a waiting job.
    pub(crate) fn entry(&self, row: u32) -> Entry {
        self.entries[self.place[row as usize] as usize]
    }

    /// The users with a waiting job of a class, in the order of their first.
    pub(crate) fn users_by_first(&mut self, class: u8) -> Vec<u32> {
        let users: Vec<u32> = self.users(class).collect();
        let mut users: Vec<(Option<u32>, u32)> =
            users.into_iter().map(|user| (self.first(class, user), user)).collect();
        users.sort_unstable();
        users.into_iter().map(|(_, user)| user).collect()
    }

    /// The highest class, from `highest` on, in which a job waits.
    pub(crate) fn top_class(&self, highest: u8) -> Option<u8> {
        let from = usize::from(highest);
        self.count.get(from..)?.iter().position(|c| *c > 0).map(|c| (from + c) as u8)
    }

    /// Whether any job waits.
    pub(crate) fn is_any(&self) -> bool {
        self.count.iter().any(|count| *count > 0)
    }

    /// How many jobs wait in a class.
    pub(crate) fn in_class(&self, class: u8) -> usize {
        self.count[usize::from(class)]
    }

    /// The user's first waiting job of a class.
    pub(crate) fn first(&mut self, class: u8, user: u32) -> Option<u32> {
        let at = usize::from(class) * self.workload.users().len() + user as usize;
        let rows = self.tasks.of(UserId(user));
        let next = &mut self.next_of[at];
        while let Some(&row) = rows.get(*next as usize) {
            let other = || self.jobs.kinds[self.jobs.kind[row as usize] as usize].class != class;
            if !self.done[row as usize] && (self.jobs.classes == 1 || !other()) {
                return self.submissions.is_submitted(row).then_some(row);
            }
            *next += 1;
        }
        None
    }

    /// Groups the jobs, none of which waits yet, by limits and by what a policy tells apart, which is given by row.
    pub(crate) fn group_by(&mut self, of_policy: &[u64]) {
        let groups = self.jobs.limit_groups.divided(self.workload, self.jobs, of_policy);
        self.groups = WaitingGroups::new(Cow::Owned(groups), self.workload.users().len());
    }

    /// The user's first waiting job of a class that limits do not hold back, from row `from` on and other than `except`.
    pub(crate) fn first_within(
        &self,
        limits: &HeldOfLimits<'_>,
        class: u8,
        user: u32,
        from: u32,
        except: u32,
    ) -> Option<u32> {
        if !self.jobs.limits.is_any() {
            return self.from(class, user, from).map(|entry| entry.row).find(|row| *row != except);
        }
        let among = Among { class, user, from, to: NO_ROW, except };
        self.groups.first_within(among, |row| limits.is_over(row))
    }

    /// Returns that of a user's waiting jobs that limits do not hold back whose key is greatest; the jobs are
    /// [grouped](PendingJobs::group_by), and the keys of a group ascend.
    pub(crate) fn greatest_within<Key: Ord>(
        &self,
        limits: &HeldOfLimits<'_>,
        among: Among,
        key: impl FnMut(u32) -> Key,
    ) -> Option<u32> {
        self.groups.greatest_within(among, |row| limits.is_over(row), key)
    }

    /// Returns the first of them with a key above `bound`.
    pub(crate) fn first_above<Key: Ord>(
        &self,
        limits: &HeldOfLimits<'_>,
        among: Among,
        bound: &Key,
        key: impl FnMut(u32) -> Key,
    ) -> Option<u32> {
        self.groups.first_above(among, bound, |row| limits.is_over(row), key)
    }

    /// Whether a job that was submitted waits.
    pub(crate) fn waits(&self, row: u32) -> bool {
        !self.done[row as usize]
    }

    /// The users with a waiting job of a class, ascending.
    pub(crate) fn users(&self, class: u8) -> impl Iterator<Item = u32> {
        self.users[usize::from(class)].iter().copied()
    }

    /// The user's waiting jobs of a class after `row`.
    pub(crate) fn after(&self, class: u8, user: u32, row: u32) -> impl Iterator<Item = Entry> + '_ {
        self.from(class, user, row.saturating_add(1))
    }

    /// The user's waiting jobs of a class from `row` on.
    pub(crate) fn from(&self, class: u8, user: u32, row: u32) -> impl Iterator<Item = Entry> + '_ {
        let rows = self.tasks.of(UserId(user));
        let submitted = |row: &&u32| self.submissions.is_submitted(**row);
        rows[rows.partition_point(|r| *r < row)..]
            .iter()
            .take_while(submitted)
            .filter(|row| !self.done[**row as usize])
            .map(|row| self.entries[self.place[*row as usize] as usize])
            .filter(move |e| e.class == class)
    }
}
