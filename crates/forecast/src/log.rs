//! A log as the forecaster reads it: whole seconds, one size per job, names by number.

use evenhand_model::{Span, Time, Workload};
use thiserror::Error;

use crate::size::Size;

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
    /// How much it holds of what the site's pool counts, such as CPUs, memory and GPUs; of a workload the first resource alone, in the
    /// smallest unit of the log.
    pub size: Size,
    /// The wall time that it requested; [`Log::longest`] if it requested none.
    pub limit: i64,
    /// Its user, as numbered in the workload.
    pub user: u32,
    /// Its account, or [`NONE`].
    pub account: u32,
    /// Its queue, or [`NONE`].
    pub queue: u32,
    /// The pool in which it runs, from 0: jobs of other pools do not make it wait. One that the log does not have stands for the last.
    pub pool: u32,
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
    /// What each pool has; empty if that is not known, and then there is one pool.
    capacities: Vec<Size>,
    /// The jobs that requested no wall time.
    unlimited: Vec<bool>,
    /// When jobs became eligible; empty if each did at its submission.
    eligible: Vec<i64>,
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
        let released: Vec<i64> = workload.release_times().into_iter().map(Time::whole_secs).collect();
        let log = Log::submitted_at(workload, |row| workload.columns().submit[row].whole_secs())?;
        let eligible = |job: usize| released[log.row(job)].min(log.jobs[job].start);
        let eligible: Vec<i64> = (0..log.jobs.len()).map(eligible).collect();
        let is_later = eligible.iter().zip(&log.jobs).any(|(eligible, job)| *eligible > job.submit);
        Ok(Log { eligible: if is_later { eligible } else { Vec::new() }, ..log })
    }

    /// Takes the jobs of a workload that have a start, as if each had been submitted when it became eligible
    /// ([`Workload::release_times`]).
    ///
    /// # Errors
    /// Returns an error if no job has a start.
    pub fn released(workload: &Workload) -> Result<Log, LogError> {
        let released = workload.release_times();
        Log::submitted_at(workload, |row| released[row].whole_secs())
    }

    fn submitted_at(workload: &Workload, submit: impl Fn(usize) -> i64) -> Result<Log, LogError> {
        let columns = workload.columns();
        let id = |column: &Option<Vec<u32>>, row: usize| column.as_ref().map_or(NONE, |c| c[row]);
        let longest = columns.duration.iter().map(|d| d.whole_secs()).max().unwrap_or(0).max(1);
        let mut started: Vec<usize> = (0..workload.len()).filter(|&row| workload.start(row).is_some()).collect();
        started.sort_by_key(|&row| submit(row));
        let mut rows = Vec::new();
        let mut jobs = Vec::new();
        let mut unlimited = Vec::new();
        for row in started {
            let Some(start) = workload.start(row) else { continue };
            let submit = submit(row);
            let start = start.whole_secs().max(submit);
            let amounts = workload.amounts(row);
            let size = amounts.iter().map(|a| a.0 as i64).next().unwrap_or(0).max(1);
            let job = Job {
                submit,
                start,
                end: start + columns.duration[row].whole_secs(),
                size: Size::from(size),
                limit: workload.requested(row).map_or(longest, Span::whole_secs).max(1),
                user: columns.user[row].0,
                account: id(&columns.account, row),
                queue: id(&columns.queue, row),
                pool: 0,
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

    /// Takes jobs that are sorted by submission, of users numbered below `users`, at a site whose pools have so much; a site of one pool, of
    /// which that is not known, if there are none. A job without a limit has the limit 0. What has not happened yet happens after
    /// everything else.
    ///
    /// # Errors
    /// Returns an error if there is no job.
    pub fn from_jobs(mut jobs: Vec<Job>, users: usize, capacities: Vec<Size>) -> Result<Log, LogError> {
        if jobs.is_empty() {
            return Err(LogError::NoStarts);
        }
        let longest = jobs.iter().map(|job| job.limit).max().unwrap_or(1).max(86_400);
        let unlimited = jobs.iter().map(|job| job.limit <= 0).collect();
        jobs.iter_mut().filter(|job| job.limit <= 0).for_each(|job| job.limit = longest);
        let rows = (0..jobs.len() as u32).collect();
        Ok(Log { capacities, unlimited, ..Log::new(jobs, rows, users, longest, 1) })
    }

    fn new(jobs: Vec<Job>, rows: Vec<u32>, users: usize, longest: i64, steps: i64) -> Log {
        let by = |key: &dyn Fn(&Job) -> i64| {
            let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
            order.sort_by_key(|&j| key(&jobs[j as usize]));
            order
        };
        let (by_start, by_end) = (by(&|j| j.start), by(&Job::seen_ended));
        Log {
            by_start,
            by_end,
            rows,
            users,
            longest,
            steps,
            capacities: Vec::new(),
            unlimited: Vec::new(),
            eligible: Vec::new(),
            jobs,
        }
    }

    /// The jobs, by submission.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The row of the workload from which a job comes.
    pub fn row(&self, job: usize) -> usize {
        self.rows[job] as usize
    }

    /// Returns when a job became eligible: from then on it could have started.
    pub fn eligible(&self, job: usize) -> i64 {
        self.eligible.get(job).copied().unwrap_or(self.jobs[job].submit)
    }

    /// Returns whether a job became eligible after its submission.
    pub fn has_eligible_later(&self) -> bool {
        !self.eligible.is_empty()
    }

    /// Returns a job of another log of the same workload as a job of this one; `None` if this one does not have it.
    pub fn same_job(&self, other: &Log, job: usize) -> Option<usize> {
        let row = *other.rows.get(job)?;
        let place = |log: &Log| log.rows.iter().position(|of_job| *of_job == row);
        // The copies of a row are side by side.
        place(self).zip(place(other)).map(|(own, others)| own + job - others)
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

    /// Returns how many pools the site has.
    pub fn pools(&self) -> usize {
        self.capacities.len().max(1)
    }

    /// Returns the pool of a job, which need not be of the log.
    pub(crate) fn pool(&self, job: &Job) -> usize {
        (job.pool as usize).min(self.pools() - 1)
    }

    /// Returns what a pool has, if it is known.
    pub fn capacity(&self, pool: usize) -> Option<Size> {
        self.capacities.get(pool).copied().filter(|capacity| capacity.first() > 0)
    }

    /// Returns a number that jobs of about one size have: the same resource is the one of which they need the largest part of the pool, and they
    /// need as much of it but for a factor of 2. By the first resource if the capacity is not known.
    pub(crate) fn size_class(&self, job: &Job) -> u32 {
        let (resource, amount) = job.size.dominant(self.capacity(self.pool(job)).unwrap_or_default());
        i64::BITS * resource as u32 + amount.max(1).ilog2()
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
