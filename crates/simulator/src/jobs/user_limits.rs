//! What queues allow a user, and all users together, to hold at once.

use evenhand_model::Workload;

use super::site::{Jobs, NO_LIMIT};

/// What running jobs hold of the queues that limit it, and how many they are.
#[derive(Clone, Debug)]
pub(super) struct UserLimits<'a> {
    workload: &'a Workload,
    jobs: &'a Jobs,
    /// By queue: amounts by user and resource, and the number of jobs after them; empty for queues without a limit a
    /// user.
    of_users: Vec<Vec<u64>>,
    /// By queue: the same for all users; empty for queues without such a limit.
    of_queue: Vec<Vec<u64>>,
}

impl<'a> UserLimits<'a> {
    pub(super) fn new(workload: &'a Workload, jobs: &'a Jobs) -> UserLimits<'a> {
        let zeros = |limits: &Vec<u64>, users: usize| match limits.iter().any(|limit| *limit != NO_LIMIT) {
            true => vec![0; users * limits.len()],
            false => Vec::new(),
        };
        let users = workload.users().len();
        UserLimits {
            workload,
            jobs,
            of_users: jobs.max_user.iter().map(|limits| zeros(limits, users)).collect(),
            of_queue: jobs.max_queue.iter().map(|limits| zeros(limits, 1)).collect(),
        }
    }

    /// The queue of a job, unless it has no limits.
    fn queue_of(&self, row: u32) -> Option<usize> {
        if self.of_users.is_empty() {
            return None;
        }
        let queue = usize::from(self.jobs.kind_of(row).queue?);
        let is_limited = !self.of_users[queue].is_empty() || !self.of_queue[queue].is_empty();
        is_limited.then_some(queue)
    }

    /// What a job counts: its amounts, and one job.
    fn counts(&self, row: u32) -> impl Iterator<Item = u64> + 'a {
        self.workload.amounts(row as usize).iter().map(|a| a.0).chain([1])
    }

    /// Where the counts of the job's user begin.
    fn place_of_user(&self, queue: usize, row: u32) -> usize {
        self.workload.columns().user[row as usize].index() * self.jobs.max_user[queue].len()
    }

    /// Returns whether starting the job would exceed what its queue allows its user, or all users.
    pub(super) fn is_over(&self, row: u32) -> bool {
        let Some(queue) = self.queue_of(row) else { return false };
        let is_over = |limits: &[u64], used: &[u64]| {
            let sums = used.iter().zip(self.counts(row)).map(|(used, count)| used.saturating_add(count));
            limits.iter().zip(sums).any(|(limit, sum)| sum > *limit)
        };
        let of_user = self.of_users[queue].get(self.place_of_user(queue, row)..).unwrap_or_default();
        is_over(&self.jobs.max_user[queue], of_user) || is_over(&self.jobs.max_queue[queue], &self.of_queue[queue])
    }

    /// Adds what a job holds, which starts.
    pub(super) fn add(&mut self, row: u32) {
        self.change(row, |used, count| *used += count);
    }

    /// Removes what a job held, which has ended.
    pub(super) fn remove(&mut self, row: u32) {
        self.change(row, |used, count| *used -= count);
    }

    fn change(&mut self, row: u32, change: impl Fn(&mut u64, u64)) {
        let Some(queue) = self.queue_of(row) else { return };
        let (counts, place) = (self.counts(row), self.place_of_user(queue, row));
        let counts: Vec<u64> = counts.collect();
        let of_user = self.of_users[queue].get_mut(place..).unwrap_or_default();
        for used in [of_user, self.of_queue[queue].as_mut_slice()] {
            used.iter_mut().zip(&counts).for_each(|(used, count)| change(used, *count));
        }
    }
}
