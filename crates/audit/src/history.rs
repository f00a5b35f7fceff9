//! The recorded history to audit: a workload and the start of each task.

use evenhand_model::{Amount, Capacity, CapacityError, NO_TIME, Rational, Resource, Time, UBig, Workload};
use thiserror::Error;

use crate::property_tracker::MAX_RESOURCES;

/// Stands for the absence of a row.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// A history: the tasks of a workload, the start of each task, and the events in order of time.
///
/// Tasks without a start are ignored and counted: it is unknown whether they ever ran or how long they waited.
#[derive(Clone, Debug)]
pub struct History<'a> {
    workload: &'a Workload,
    starts: &'a [u64],
    /// Rows with a start, sorted by start, ties by row.
    by_start: Vec<u32>,
    /// Rows with a start and a positive duration, sorted by finish, ties by row.
    by_finish: Vec<u32>,
    /// Maximum amount held at one time, in steps, for each resource.
    peak: Vec<u64>,
}

/// Why a history cannot be audited.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AuditError {
    /// No task has a start.
    #[error("no task has a start time, so there is no history to audit")]
    NoStarts,
    /// The amount held at one time exceeds 64 bits.
    #[error(
        "more than 18446744073709551615 steps of {resource} are held at one time; convert the trace to a larger unit"
    )]
    AmountOverflow {
        /// Name of the resource.
        resource: String,
    },
    /// The workload has too many rows.
    #[error("the workload has {rows} rows, but an audit supports at most 4294967294")]
    TooManyRows {
        /// Number of rows.
        rows: usize,
    },
    /// The workload has too many resources.
    #[error("the workload has {found} resources, but an audit supports at most {MAX_RESOURCES}")]
    TooManyResources {
        /// Number of resources.
        found: usize,
    },
    /// The common denominator of the weights is too large.
    #[error(
        "the users' weights, written as integers over a common denominator, add up to more than 9223372036854775807; \
         use weights with fewer digits"
    )]
    Weights,
}

impl<'a> History<'a> {
    /// Creates the history of a trace from its original starts.
    ///
    /// # Errors
    /// Returns an error if no task has a start, or if the workload exceeds a limit of [`AuditError`].
    pub fn original(workload: &'a Workload) -> Result<History<'a>, AuditError> {
        let starts = workload.columns().start.as_deref().ok_or(AuditError::NoStarts)?;
        History::with_starts(workload, starts)
    }

    /// Creates the history in which row `i` started at `starts[i]` nanoseconds ([`NO_TIME`] if it did not), such as the
    /// result of a simulation. Takes O(n log n) time for n rows.
    ///
    /// # Errors
    /// Returns an error if no task has a start, or if the workload exceeds a limit of [`AuditError`].
    ///
    /// # Panics
    /// Panics if `starts` does not have one entry per row.
    pub fn with_starts(workload: &'a Workload, starts: &'a [u64]) -> Result<History<'a>, AuditError> {
        assert_eq!(starts.len(), workload.len(), "one start per row");
        let found = workload.resources().len();
        if found > MAX_RESOURCES {
            return Err(AuditError::TooManyResources { found });
        }
        let rows = u32::try_from(starts.len())
            .ok()
            .filter(|&n| n != NO_ROW)
            .ok_or(AuditError::TooManyRows { rows: starts.len() })?;
        let mut by_start: Vec<u32> = (0..rows).filter(|&row| starts[row as usize] != NO_TIME).collect();
        if by_start.is_empty() {
            return Err(AuditError::NoStarts);
        }
        let mut history = History { workload, starts, by_start: Vec::new(), by_finish: Vec::new(), peak: Vec::new() };
        let lasting = |row: &u32| workload.columns().duration[*row as usize].nanos() > 0;
        let mut by_finish: Vec<u32> = by_start.iter().copied().filter(lasting).collect();
        by_start.sort_by_key(|&row| starts[row as usize]);
        by_finish.sort_by_key(|&row| history.finish(row));
        (history.by_start, history.by_finish) = (by_start, by_finish);
        history.peak = history.measure_peak()?;
        Ok(history)
    }

    /// Returns the workload.
    pub fn workload(&self) -> &'a Workload {
        self.workload
    }

    /// Returns the number of rows that are ignored because they have no start.
    pub fn left_out(&self) -> usize {
        self.starts.len() - self.by_start.len()
    }

    /// Returns the maximum amount of each resource that was held at one time.
    pub fn peak(&self) -> Vec<Amount> {
        self.peak.iter().map(|&p| Amount(p)).collect()
    }

    /// Returns the capacity to assume if it is unknown: for each resource the [peak](Self::peak), or the demand of the
    /// largest task if that is larger (a task of zero duration is never held). A resource without demand blocks no task;
    /// its capacity is one unit.
    ///
    /// # Errors
    /// Never fails, since no capacity is zero; the error type is that of [`Capacity::new`].
    pub fn peak_capacity(&self) -> Result<Capacity, CapacityError> {
        let resources = self.workload.resources();
        let units = resources.iter().enumerate().map(|(r, resource)| {
            let largest = self.workload.demands().rows().map(|(_, demand)| demand[r].0).max().unwrap_or(0);
            match self.peak[r].max(largest) {
                0 => Rational::ONE,
                steps => units(resource, steps),
            }
        });
        Capacity::new(resources, units.collect())
    }

    /// Returns the start of `row`, which must have one, in nanoseconds.
    pub(crate) fn start(&self, row: u32) -> u64 {
        self.starts[row as usize]
    }

    /// Returns whether `row` has a start.
    pub(crate) fn has_start(&self, row: u32) -> bool {
        self.starts[row as usize] != NO_TIME
    }

    /// Returns the finish of `row`, which must have a start, in nanoseconds.
    pub(crate) fn finish(&self, row: u32) -> u64 {
        // Both terms are at most 2^62.
        self.starts[row as usize] + self.workload.columns().duration[row as usize].nanos()
    }

    /// Returns the submission of `row` in nanoseconds.
    pub(crate) fn submit(&self, row: u32) -> u64 {
        self.workload.columns().submit[row as usize].nanos()
    }

    /// Returns the rows with a start, sorted by start.
    pub(crate) fn by_start(&self) -> &[u32] {
        &self.by_start
    }

    /// Returns the rows with a start and a positive duration, sorted by finish.
    pub(crate) fn by_finish(&self) -> &[u32] {
        &self.by_finish
    }

    /// Returns the first row of each user in submission order, and each row's successor of the same user, both
    /// [`NO_ROW`] if there is none. Rows without a start are skipped.
    pub(crate) fn rows_of_users(&self) -> (Vec<u32>, Vec<u32>) {
        let users = self.workload.users().len();
        self.rows_of_parties(users, &(0..users as u32).collect::<Vec<_>>())
    }

    /// Returns the same for `parties` parties, where user u belongs to party `of_user[u]`.
    pub(crate) fn rows_of_parties(&self, parties: usize, of_user: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![NO_ROW; parties];
        let mut next = vec![NO_ROW; self.starts.len()];
        for (row, user) in self.workload.columns().user.iter().enumerate().rev() {
            if self.starts[row] != NO_TIME {
                next[row] = std::mem::replace(&mut first[of_user[user.index()] as usize], row as u32);
            }
        }
        (first, next)
    }

    /// Returns the times of the first and the last event.
    pub(crate) fn time_range(&self) -> (Time, Time) {
        let started = self.by_start.iter().map(|&row| self.submit(row).min(self.start(row)));
        let finish = self.by_finish.last().map(|&row| self.finish(row));
        let last = self.by_start.last().map(|&row| self.start(row)).max(finish);
        (Time::from_nanos(started.min().unwrap_or(0)), Time::from_nanos(last.unwrap_or(0)))
    }

    /// Returns for each resource the peak plus the demand of the largest task, in steps.
    pub(crate) fn max_amounts(&self) -> Vec<u64> {
        let held = |(r, &peak): (usize, &u64)| u64::try_from(u128::from(peak) + self.largest(r)).unwrap_or(u64::MAX);
        self.peak.iter().enumerate().map(held).collect()
    }

    fn measure_peak(&self) -> Result<Vec<u64>, AuditError> {
        let resources = self.workload.resources();
        let mut held = vec![0u128; resources.len()];
        let mut peak = held.clone();
        let mut finishes = self.by_finish.iter().copied().peekable();
        // At one instant finishes come first, so that consecutive tasks are not held together.
        for &row in self.by_start.iter().filter(|&&row| self.workload.columns().duration[row as usize].nanos() > 0) {
            while let Some(done) = finishes.next_if(|&done| self.finish(done) <= self.start(row)) {
                self.amounts(done).zip(&mut held).for_each(|(amount, h)| *h -= amount);
            }
            for ((amount, h), p) in self.amounts(row).zip(&mut held).zip(&mut peak) {
                *h += amount;
                *p = (*p).max(*h);
            }
        }
        let overflow = |r: &Resource| AuditError::AmountOverflow { resource: r.name.clone() };
        // The amount held plus one more task must not overflow either.
        let limit = |r: usize| u128::from(u64::MAX) - self.largest(r);
        let checked = |(r, p): (usize, u128)| {
            u64::try_from(p).ok().filter(|&p| u128::from(p) <= limit(r)).ok_or_else(|| overflow(&resources[r]))
        };
        peak.into_iter().enumerate().map(checked).collect()
    }

    /// Returns the largest demand of one task for resource `r`, in steps.
    fn largest(&self, r: usize) -> u128 {
        self.workload.demands().rows().map(|(_, demand)| u128::from(demand[r].0)).max().unwrap_or(0)
    }

    /// Returns the amounts that all copies of `row` hold together.
    fn amounts(&self, row: u32) -> impl Iterator<Item = u128> {
        let count = u128::from(self.workload.count(row as usize));
        self.workload.amounts(row as usize).iter().map(move |a| u128::from(a.0) * count)
    }
}

fn units(resource: &Resource, steps: u64) -> Rational {
    Rational::from_parts(steps.into(), UBig::from(resource.steps()))
}
