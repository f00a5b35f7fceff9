//! A log as the forecaster reads it: whole seconds, one size per job, names by number.

use evenhand_model::{Time, Workload};
use thiserror::Error;

const NANOS: u64 = 1_000_000_000;

/// The number that stands for no account or no queue.
pub const NONE: u32 = u32::MAX;

/// A job of the log: when it was submitted, started and ended, and what it requested. Times are whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When it was submitted.
    pub submit: i64,
    /// When it started.
    pub start: i64,
    /// When it ended.
    pub end: i64,
    /// How much of the log's first resource it holds, in the smallest unit of the log.
    pub size: i64,
    /// The wall time that it requested; [`Log::longest`] if it requested none.
    pub limit: i64,
    /// Its user, as numbered in the workload.
    pub user: u32,
    /// Its account, or [`NONE`].
    pub account: u32,
    /// Its queue, or [`NONE`].
    pub queue: u32,
}

impl Job {
    /// Returns how long it waited.
    pub fn wait(&self) -> i64 {
        self.start - self.submit
    }

    /// When its end became known: a job that ends in the second in which it starts is seen a second later.
    pub(crate) fn seen_ended(&self) -> i64 {
        self.end.max(self.start + 1)
    }
}

/// The jobs of a log that started, by submission.
#[derive(Clone, Debug)]
pub struct Log {
    jobs: Vec<Job>,
    by_start: Vec<u32>,
    by_end: Vec<u32>,
    rows: Vec<u32>,
    users: usize,
    longest: i64,
    /// The sizes of one unit.
    steps: i64,
    /// What the site has, if it is known.
    capacity: Option<i64>,
    /// The jobs that requested no wall time.
    unlimited: Vec<bool>,
}

/// A log from which no start can be forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LogError {
    /// No job has a start.
    #[error("the log has no start times; expected when jobs started, beside when they were submitted")]
    NoStarts,
}

impl Log {
    /// Takes the jobs of a workload that have a start.
    ///
    /// # Errors
    /// Returns an error if no job has one.
    pub fn of(workload: &Workload) -> Result<Log, LogError> {
        let seconds = |nanos: u64| (nanos / NANOS) as i64;
        let columns = workload.columns();
        let id = |column: &Option<Vec<u32>>, row: usize| column.as_ref().map_or(NONE, |c| c[row]);
        let longest = columns.duration.iter().map(|d| seconds(d.nanos())).max().unwrap_or(0).max(1);
        let mut rows = Vec::new();
        let mut jobs = Vec::new();
        let mut unlimited = Vec::new();
        for row in 0..workload.len() {
            let Some(start) = workload.start(row).map(Time::nanos) else { continue };
            let submit = seconds(columns.submit[row].nanos());
            let start = seconds(start).max(submit);
            let amounts = workload.amounts(row);
            let size = amounts.iter().map(|a| a.0 as i64).next().unwrap_or(0).max(1);
            let job = Job {
                submit,
                start,
                end: start + seconds(columns.duration[row].nanos()),
                size,
                limit: workload.requested(row).map_or(longest, |r| seconds(r.nanos())).max(1),
                user: columns.user[row].0,
                account: id(&columns.account, row),
                queue: id(&columns.queue, row),
            };
            for _ in 0..workload.count(row) {
                rows.push(row as u32);
                jobs.push(job);
                unlimited.push(workload.requested(row).is_none());
            }
        }
        if jobs.is_empty() {
            return Err(LogError::NoStarts);
        }
        let steps = 10i64.pow(u32::from(workload.resources()[0].decimals));
        Ok(Log { unlimited, ..Log::new(jobs, rows, workload.users().len(), longest, steps) })
    }

    /// Takes jobs that are sorted by submission, of users numbered below `users`, at a site that has so much of the resource.
    /// A job without a limit has the limit 0. What has not happened yet happens after everything else.
    ///
    /// # Errors
    /// Returns an error if there is no job.
    pub fn from_jobs(mut jobs: Vec<Job>, users: usize, capacity: Option<i64>) -> Result<Log, LogError> {
        if jobs.is_empty() {
            return Err(LogError::NoStarts);
        }
        let longest = jobs.iter().map(|job| job.limit).max().unwrap_or(1).max(86_400);
        let unlimited = jobs.iter().map(|job| job.limit <= 0).collect();
        jobs.iter_mut().filter(|job| job.limit <= 0).for_each(|job| job.limit = longest);
        let rows = (0..jobs.len() as u32).collect();
        Ok(Log { capacity, unlimited, ..Log::new(jobs, rows, users, longest, 1) })
    }

    fn new(jobs: Vec<Job>, rows: Vec<u32>, users: usize, longest: i64, steps: i64) -> Log {
        let by = |key: &dyn Fn(&Job) -> i64| {
            let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
            order.sort_by_key(|&j| key(&jobs[j as usize]));
            order
        };
        let (by_start, by_end) = (by(&|j| j.start), by(&Job::seen_ended));
        Log { by_start, by_end, rows, users, longest, steps, capacity: None, unlimited: Vec::new(), jobs }
    }

    /// The jobs, by submission.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The row of the workload from which a job comes.
    pub fn row(&self, job: usize) -> usize {
        self.rows[job] as usize
    }

    /// The number of users.
    pub fn users(&self) -> usize {
        self.users
    }

    /// The size of a job that needs this many units, such as processors.
    pub fn size_of(&self, units: u32) -> i64 {
        i64::from(units).saturating_mul(self.steps)
    }

    /// The user of a job whose user is not in the log.
    pub fn stranger(&self) -> u32 {
        self.users as u32
    }

    /// Returns what the site has of the resource, if it is known.
    pub fn capacity(&self) -> Option<i64> {
        self.capacity
    }

    /// Returns the wall time that a job requested; `None` if it requested none.
    pub fn requested_limit(&self, job: usize) -> Option<i64> {
        let requested = !self.unlimited.get(job).copied().unwrap_or(false);
        self.jobs.get(job).filter(|_| requested).map(|job| job.limit)
    }

    /// The longest run time, which stands for the limit of a job without one.
    pub fn longest(&self) -> i64 {
        self.longest
    }

    /// The jobs by start, and by when their end became known.
    pub(crate) fn orders(&self) -> (&[u32], &[u32]) {
        (&self.by_start, &self.by_end)
    }

    /// The first job submitted at `time` or later.
    pub fn first_from(&self, time: i64) -> usize {
        self.jobs.partition_point(|j| j.submit < time)
    }
}
