//! The pool simulation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use evenhand_model::{Amount, Capacity, DemandId, NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::{Job, Policy};
use thiserror::Error;

use crate::pending_tasks::{PendingTasks, Task};
use crate::{EventQueue, JobOptions, Jobs, Layout, MachineResults, Rejection, Site, simulate_jobs};

/// How a pool is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Whether a task that does not fit stops all scheduling (Sadok et al. 2021, Algorithm 1), or only sets
    /// its user aside until the next finish or submission.
    pub blocking: bool,
    /// Stop after this instant; `None`: when every accepted task has finished.
    pub until: Option<Time>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions { blocking: true, until: None }
    }
}

/// State that a running simulation shares with its observers.
#[derive(Debug, Default)]
pub struct Progress {
    /// Tasks started or rejected so far, updated periodically.
    pub tasks: AtomicU64,
    /// Set to stop the simulation before its next decision.
    pub cancel: AtomicBool,
}

impl Progress {
    /// Returns an error if the simulation is to stop. Engines call this once for each decision: at one instant there may be
    /// as many decisions as there are waiting tasks, and each may take milliseconds.
    pub(crate) fn check(&self) -> Result<(), SimulationError> {
        if self.cancel.load(Ordering::Relaxed) { Err(SimulationError::Cancelled) } else { Ok(()) }
    }
}

/// The rows of each user, in submission order: made once, shared by all runs of a workload.
#[derive(Clone, Debug)]
pub struct UserTasks {
    pub(crate) offsets: Vec<usize>,
    pub(crate) rows: Vec<u32>,
}

impl UserTasks {
    /// Builds the index of a workload in which every row is one task.
    ///
    /// # Panics
    /// If the workload has rows with a count (see [`Workload::expanded`]) or 2^32 rows and more.
    pub fn new(workload: &Workload) -> UserTasks {
        let columns = workload.columns();
        assert!(columns.count.is_none(), "rows with a count are expanded before they are simulated");
        assert!(workload.len() < u32::MAX as usize, "fewer than 2^32 tasks");
        let mut offsets = vec![0; workload.users().len() + 1];
        for user in &columns.user {
            offsets[user.index() + 1] += 1;
        }
        for u in 1..offsets.len() {
            offsets[u] += offsets[u - 1];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; workload.len()];
        for (row, user) in columns.user.iter().enumerate() {
            rows[next[user.index()]] = row as u32;
            next[user.index()] += 1;
        }
        UserTasks { offsets, rows }
    }

    /// The rows of one user.
    pub fn of(&self, user: UserId) -> &[u32] {
        &self.rows[self.offsets[user.index()]..self.offsets[user.index() + 1]]
    }
}

/// Result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulated {
    /// When each row was submitted, in nanoseconds, or [`NO_TIME`]; `None` if at the times of the workload.
    pub submissions: Option<Vec<u64>>,
    /// When each row started, in nanoseconds, or [`NO_TIME`].
    pub starts: Vec<u64>,
    /// By row: why the task was rejected at submission; `None` if it was accepted.
    pub rejections: Vec<Option<Rejection>>,
    /// The last instant simulated.
    pub end: Time,
    /// How often the policy was asked and named a user.
    pub decisions: u64,
    /// The policy's [`order_events`](Policy::order_events).
    pub order_events: u64,
    /// Results on machines; `None` for a pool.
    pub machines: Option<MachineResults>,
}

impl Simulated {
    /// Returns whether the task of a row was rejected.
    pub fn is_rejected(&self, row: usize) -> bool {
        self.rejections[row].is_some()
    }

    /// Returns how long the task of a row ran, which on a fast machine is less than its `duration`.
    pub fn run_time(&self, row: usize, duration: Span) -> Span {
        match &self.machines {
            Some(on) if on.finishes[row] != NO_TIME => Span::from_nanos(on.finishes[row] - self.starts[row]),
            _ => duration,
        }
    }
}

/// Why a simulation did not finish.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// [`Progress::cancel`] was set.
    #[error("cancelled")]
    Cancelled,
    /// Conservative backfilling cannot respect limits on what jobs hold together.
    #[error(
        "a queue, an account or a user is limited in what its jobs may hold together (max_user, max_user_jobs, max, \
         max_jobs), and a reservation that is kept cannot know what else will run; use --scheduler easy, slurm or strict"
    )]
    UserLimits,
    /// A task would finish after the end of time.
    #[error("task {row} starts at {start} s and runs {duration} s, which is past the end of simulated time ({max} s)", max = Time::MAX)]
    TooLong {
        /// The task's row.
        row: usize,
        /// When it starts.
        start: Time,
        /// How long it runs.
        duration: Span,
    },
}

/// Replays `workload` on a pool under `policy`.
///
/// # Errors
/// If cancelled, or if simulated time would pass [`Time::MAX`].
pub fn simulate(
    workload: &Workload,
    tasks: &UserTasks,
    capacity: &Capacity,
    policy: &mut dyn Policy,
    options: PoolOptions,
    progress: &Progress,
) -> Result<Simulated, SimulationError> {
    // By demand: why a task with it can never run.
    let rejected: Vec<Option<Rejection>> =
        workload.demands().rows().map(|(_, demand)| larger_than_pool(capacity, demand)).collect();
    if !policy.depends_on_job_details() {
        return Pool::new(workload, tasks, capacity, rejected, progress).run(policy, options);
    }
    // The fast pool passes only users and demands to the policy.
    let site = Site::pool(capacity);
    let jobs = Jobs::new(workload, &site, Layout::Auto);
    let PoolOptions { blocking, until } = options;
    let options = JobOptions { blocking, until, ..JobOptions::default() };
    let run = simulate_jobs(workload, tasks, &site, &jobs, policy, options, progress)?;
    Ok(Simulated { machines: None, ..run })
}

/// Returns the first resource of which `demand` exceeds the pool, as a rejection.
fn larger_than_pool(capacity: &Capacity, demand: &[Amount]) -> Option<Rejection> {
    let resource = demand.iter().zip(capacity.amounts()).position(|(d, c)| d > c)?;
    Some(Rejection::Resource(resource.min(255) as u8))
}

/// User and demand of a running task, packed in one word, which the event queue moves faster than two.
#[derive(Clone, Copy)]
struct Running(u64);

impl Running {
    #[inline]
    fn new(user: UserId, demand: DemandId) -> Running {
        Running(u64::from(user.0) << 32 | u64::from(demand.0))
    }

    #[inline]
    fn user(self) -> UserId {
        UserId((self.0 >> 32) as u32)
    }

    #[inline]
    fn demand(self) -> DemandId {
        DemandId(self.0 as u32)
    }
}

struct Pool<'a> {
    workload: &'a Workload,
    progress: &'a Progress,
    /// By demand.
    rejected: Vec<Option<Rejection>>,
    /// Free amounts, in steps.
    free: Vec<u64>,
    /// Each user's tasks that have neither started nor been rejected.
    upcoming: PendingTasks<'a>,
    starts: Vec<u64>,
    running: EventQueue<Running>,
    /// Rows below this are submitted.
    submitted: usize,
    set_aside: Vec<UserId>,
    done: u64,
    decisions: u64,
}

/// How many events pass between updates of [`Progress::tasks`].
const EVENTS_BETWEEN_PROGRESS_UPDATES: u64 = 1 << 14;

impl<'a> Pool<'a> {
    fn new(
        workload: &'a Workload,
        tasks: &'a UserTasks,
        capacity: &Capacity,
        rejected: Vec<Option<Rejection>>,
        progress: &'a Progress,
    ) -> Pool<'a> {
        Pool {
            workload,
            progress,
            upcoming: PendingTasks::new(workload, tasks, &rejected),
            rejected,
            free: capacity.amounts().iter().map(|c| c.0).collect(),
            starts: vec![NO_TIME; workload.len()],
            running: EventQueue::new(),
            submitted: 0,
            set_aside: Vec::new(),
            done: 0,
            decisions: 0,
        }
    }

    fn run(mut self, policy: &mut dyn Policy, options: PoolOptions) -> Result<Simulated, SimulationError> {
        let columns = self.workload.columns();
        let mut end = columns.submit.first().copied().unwrap_or_default();
        let mut events = 0u64;
        loop {
            self.progress.check()?;
            let submission = columns.submit.get(self.submitted).copied();
            let now = match (self.running.next_time(), submission) {
                (Some(f), Some(s)) => f.min(s),
                (Some(t), None) | (None, Some(t)) => t,
                (None, None) => break,
            };
            if let Some(until) = options.until.filter(|until| now > *until) {
                end = until;
                break;
            }
            end = now;
            if self.running.next_time() == Some(now) {
                let (free, demands) = (&mut self.free, self.workload.demands());
                self.running.take_next(|running| {
                    let (user, demand) = (running.user(), demands.row(running.demand()));
                    free.iter_mut().zip(demand).for_each(|(f, d)| *f += d.0);
                    policy.finished(now, &Job::new(user, demand));
                    events += 1;
                });
            }
            events += self.submit(now, policy);
            self.schedule(now, policy, options.blocking)?;
            if events >= EVENTS_BETWEEN_PROGRESS_UPDATES {
                events = 0;
                self.progress.tasks.store(self.done, Ordering::Relaxed);
            }
        }
        self.progress.tasks.store(self.done, Ordering::Relaxed);
        Ok(Simulated {
            submissions: None,
            starts: self.starts,
            rejections: columns.demand.iter().map(|demand| self.rejected[demand.index()]).collect(),
            end,
            decisions: self.decisions,
            order_events: policy.order_events(),
            machines: None,
        })
    }

    /// Submits every task of this instant, in file order; returns how many.
    fn submit(&mut self, now: Time, policy: &mut dyn Policy) -> u64 {
        let columns = self.workload.columns();
        let before = self.submitted;
        while columns.submit.get(self.submitted) == Some(&now) {
            let row = self.submitted;
            self.submitted += 1;
            if self.rejected[columns.demand[row].index()].is_some() {
                self.done += 1;
            } else if self.upcoming.first(columns.user[row]).row == row as u32 {
                let demand = self.workload.demands().row(columns.demand[row]);
                policy.set_first_pending(
                    columns.user[row],
                    Some(&Job::new(columns.user[row], demand).at(now, row as u64)),
                );
            }
        }
        (self.submitted - before) as u64
    }

    /// Notifies the policy of the user's first pending task.
    #[inline]
    fn notify_first_pending(&self, user: UserId, policy: &mut dyn Policy) {
        let first = self.upcoming.first_waiting(user, self.submitted);
        let job =
            |task: &Task| Job::new(user, self.workload.demands().row(task.demand)).at(task.submit, u64::from(task.row));
        policy.set_first_pending(user, first.map(job).as_ref());
    }

    fn schedule(&mut self, now: Time, policy: &mut dyn Policy, blocking: bool) -> Result<(), SimulationError> {
        while let Some(user) = policy.next(now) {
            self.progress.check()?;
            self.decisions += 1;
            let task = *self.upcoming.first(user);
            let demand = self.workload.demands().row(task.demand);
            if !demand.iter().zip(&self.free).all(|(d, f)| d.0 <= *f) {
                if blocking {
                    return Ok(());
                }
                policy.set_first_pending(user, None);
                self.set_aside.push(user);
                continue;
            }
            let (row, duration) = (task.row as usize, task.duration);
            let finish = now.checked_add(duration).ok_or(SimulationError::TooLong { row, start: now, duration })?;
            self.free.iter_mut().zip(demand).for_each(|(f, d)| *f -= d.0);
            self.running.push(finish, Running::new(user, task.demand));
            self.starts[row] = now.nanos();
            self.done += 1;
            self.upcoming.advance(user, &self.rejected);
            policy.started(now, &Job::new(user, demand).at(task.submit, u64::from(task.row)));
            self.notify_first_pending(user, policy);
        }
        for user in std::mem::take(&mut self.set_aside) {
            self.notify_first_pending(user, policy);
        }
        Ok(())
    }
}
