//! What queues allow a user to hold at once.

use evenhand_model::Workload;

use super::site::{Jobs, NO_LIMIT};

/// What the users' running jobs hold of the queues that limit it.
#[derive(Clone, Debug)]
pub(super) struct UserLimits<'a> {
    workload: &'a Workload,
    jobs: &'a Jobs,
    /// By queue: amounts by user and resource; empty for queues without a limit a user.
    used: Vec<Vec<u64>>,
}

impl<'a> UserLimits<'a> {
    pub(super) fn new(workload: &'a Workload, jobs: &'a Jobs) -> UserLimits<'a> {
        let amounts = workload.users().len() * workload.resources().len();
        let used = |limits: &Vec<u64>| match limits.iter().any(|limit| *limit != NO_LIMIT) {
            true => vec![0; amounts],
            false => Vec::new(),
        };
        UserLimits { workload, jobs, used: jobs.max_user.iter().map(used).collect() }
    }

    /// The queue of a job, its limits, and where its user's amounts begin; `None` if nothing limits it.
    fn of(&self, row: u32) -> Option<(usize, &'a [u64], usize)> {
        if self.used.is_empty() {
            return None;
        }
        let queue = usize::from(self.jobs.kind_of(row).queue?);
        let limits = self.jobs.max_user[queue].as_slice();
        let user = self.workload.columns().user[row as usize].index();
        (!self.used[queue].is_empty()).then_some((queue, limits, user * limits.len()))
    }

    /// Returns whether starting the job would exceed what its queue allows its user.
    pub(super) fn is_over(&self, row: u32) -> bool {
        let Some((queue, limits, at)) = self.of(row) else { return false };
        let held = self.used[queue][at..].iter().zip(self.workload.amounts(row as usize));
        limits.iter().zip(held).any(|(limit, (used, a))| used.saturating_add(a.0) > *limit)
    }

    /// Adds what a job holds, which starts.
    pub(super) fn add(&mut self, row: u32) {
        self.change(row, |used, amount| *used += amount);
    }

    /// Removes what a job held, which has ended.
    pub(super) fn remove(&mut self, row: u32) {
        self.change(row, |used, amount| *used -= amount);
    }

    fn change(&mut self, row: u32, change: impl Fn(&mut u64, u64)) {
        let Some((queue, limits, at)) = self.of(row) else { return };
        let used = &mut self.used[queue][at..at + limits.len()];
        used.iter_mut().zip(self.workload.amounts(row as usize)).for_each(|(used, a)| change(used, a.0));
    }
}
